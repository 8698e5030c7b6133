//! `tag`: sets or removes a time to live.

use anyhow::{Result, bail};
use clap::Args;
use smalt_sweeper::mark::{Edit, Marked, Marking, Marks};
use smalt_sweeper::{SweepError, Target};
use smalt_worker::exit;
use smalt_worker::process::wall_clock;

use super::common::{self, Common, print_json};
use super::progress;
use crate::show::printable;

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("change").required(true).multiple(true))]
pub(crate) struct TagArgs {
    /// Blob, as CONTAINER/BLOB or URL; with --all, CONTAINER or CONTAINER/PREFIX.
    #[arg(value_name = "URL|CONTAINER/BLOB")]
    target: String,
    /// Change every blob whose name starts with the prefix.
    #[arg(long)]
    all: bool,
    /// Time to live: a duration after this change (P7D) or an instant (2027-01-01T00:00:00Z).
    #[arg(long, value_name = "TTL", group = "change")]
    ttl: Option<String>,
    /// Destination of the dead blob: dbc, dbc/prefix/ or dbc/exact-name.
    #[arg(long, value_name = "PLACE", group = "change")]
    dead: Option<String>,
    /// Remove both values. The blob is then swept only if a rule matches it.
    #[arg(long, group = "change", conflicts_with_all = ["ttl", "dead"])]
    remove: bool,
    /// Show what would change without changing anything.
    #[arg(long)]
    dry_run: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    common: Common,
}

impl TagArgs {
    fn marking(&self) -> Marking {
        let edit = |value: &Option<String>| match value {
            Some(text) => Edit::Set(text.clone()),
            None if self.remove => Edit::Remove,
            None => Edit::Keep,
        };
        Marking {
            ttl: edit(&self.ttl),
            dead: edit(&self.dead),
        }
    }
}

pub(crate) async fn tag(args: &TagArgs) -> Result<u8> {
    let (sweeper, settings) = common::sweeper(&args.common)?;
    let marking = args.marking();
    let checked = marking.check(&settings.sweeper.policy);
    checked.map_err(SweepError::Config)?;
    if marking.is_over(&settings.sweeper.policy, wall_clock()) {
        eprintln!("warning: this time is in the past; the next sweep will remove these blobs");
    }
    let marks = match args.all {
        false => {
            let target: Target = args.target.parse()?;
            sweeper.mark(&target, &marking, args.dry_run).await?
        }
        true => {
            if args.target.contains("://") {
                bail!("--all takes CONTAINER or CONTAINER/PREFIX");
            }
            let (container, prefix) = args.target.split_once('/').unwrap_or((&args.target, ""));
            let bar = progress::spinner("marking");
            let told = bar.clone();
            let heard = move |marks: &Marks| {
                let changed = marks.count(Marked::Changed);
                let all: u64 = marks.outcomes.values().sum();
                told.set_message(format!("{changed} of {all} blobs marked"));
            };
            let dry_run = args.dry_run;
            let marked = sweeper.mark_all(container, prefix, &marking, dry_run, heard);
            let marked = marked.await;
            bar.finish_and_clear();
            marked?
        }
    };
    match args.json {
        true => print_json(&marks)?,
        false => print!("{}", text(&marks)),
    }
    let failed = marks.count(Marked::Failed) + marks.count(Marked::Leased);
    let found: u64 = marks.outcomes.values().sum();
    if found == 0 {
        eprintln!("error: no blob name starts with {}", args.target);
    }
    Ok(if failed > 0 || found == 0 {
        exit::FAILED_ITEMS
    } else {
        exit::OK
    })
}

pub(super) fn text(marks: &Marks) -> String {
    let mut text = String::new();
    for (blob, reason) in &marks.failures {
        text.push_str(&printable(&format!("{blob}: {reason}\n")));
    }
    let changed = match marks.dry_run {
        true => "would be changed",
        false => "changed",
    };
    text.push_str(&format!("{} {changed}", marks.count(Marked::Changed)));
    for (marked, said) in [
        (Marked::Unchanged, "unchanged"),
        (Marked::Directory, "directories"),
        (Marked::Leased, "leased"),
        (Marked::Gone, "removed in the meantime"),
        (Marked::Failed, "failed"),
    ] {
        match marks.count(marked) {
            0 => {}
            count => text.push_str(&format!(", {count} {said}")),
        }
    }
    let due = marks
        .due
        .as_ref()
        .filter(|_| marks.count(Marked::Changed) > 0);
    if let Some(due) = due {
        text.push_str(&format!("; due at about {due}"));
    }
    text + "\n"
}
