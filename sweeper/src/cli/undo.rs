//! `undo`: bringing blobs back from the places for dead blobs.

use anyhow::{Result, bail};
use clap::Args;
use smalt_protocol::Timestamp;
use smalt_sweeper::decide::Policy;
use smalt_sweeper::ttl::{self, TimeToLive, TtlFormat};
use smalt_sweeper::undo::{Undo, UndoReport, Undone};
use smalt_sweeper::{Collision, destination};
use smalt_worker::exit;

use super::common::{self, Common, print_json};
use super::progress;
use crate::show::printable;

/// Blobs that are named on a screen; `--json` names more.
const ROWS_SHOWN: usize = 50;

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("which").required(true))]
pub(crate) struct UndoArgs {
    /// Blobs that were moved at this time or later, for example 2026-11-21T10:00:00Z.
    #[arg(long, value_name = "TIME", value_parser = instant, group = "which")]
    since: Option<Timestamp>,
    /// Blobs that this cycle moved.
    #[arg(long, value_name = "N", group = "which")]
    cycle: Option<u64>,
    /// Everything that a sweep has ever moved there.
    #[arg(long, group = "which")]
    all: bool,
    /// Where the dead blobs are, in the account for them; those of the configuration otherwise.
    #[arg(long, value_name = "CONTAINER[/PREFIX]")]
    from: Vec<String>,
    /// Only blobs whose old place begins so.
    #[arg(long, value_name = "CONTAINER[/PREFIX]")]
    prefix: Option<String>,
    /// Bring back blobs of which the service has no record that they were copied from where their
    /// metadata say. Whoever may write to a place for dead blobs can forge those.
    #[arg(long)]
    trust_metadata: bool,
    /// Say what would come back, and write nothing.
    #[arg(long)]
    dry_run: bool,
    /// The report as JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    common: Common,
}

fn instant(text: &str) -> Result<Timestamp, String> {
    match ttl::parse(text, &[TtlFormat::Rfc3339]) {
        Some(TimeToLive::At(at)) => Ok(at),
        _ => Err("write an instant such as 2026-11-21T10:00:00Z".to_owned()),
    }
}

/// Brings blobs back, and says what became of each.
pub(crate) async fn undo(args: &UndoArgs) -> Result<u8> {
    let (sweeper, settings) = common::sweeper(&args.common)?;
    let undo = Undo {
        from: places(&args.from, &settings.sweeper.policy)?,
        since: args.since,
        cycle: args.cycle,
        place: args.prefix.clone(),
        // The flag alone: what is configured for moves says nothing about the way back.
        on_collision: match args.common.on_collision() {
            Some("suffix") => Collision::Suffix,
            Some("overwrite") => Collision::Overwrite,
            _ => Collision::Fail,
        },
        trust_metadata: args.trust_metadata,
        dry_run: args.dry_run,
    };
    let bar = progress::spinner("looking for dead blobs");
    let told = bar.clone();
    let heard = move |report: &UndoReport| {
        let back = report.count(Undone::Restored) + report.count(Undone::CopyKept);
        told.set_message(format!("{back} blobs back, {} not", report.failed()));
    };
    let undone = sweeper.undo(&undo, heard).await;
    bar.finish_and_clear();
    let report = undone?;
    match args.json {
        true => print_json(&report)?,
        false => print!("{}", text(&report)),
    }
    let others = report.count(Undone::NoHistory);
    let found = report.outcomes.values().sum::<u64>() > others;
    if !found {
        eprintln!("error: no dead blob there is one that was asked for");
    }
    Ok(match report.failed() {
        0 if found => exit::OK,
        _ => exit::FAILED_ITEMS,
    })
}

/// The containers for dead blobs that were named, else those of the configuration.
fn places(given: &[String], policy: &Policy) -> Result<Vec<(String, String)>> {
    let mut places: Vec<String> = match given.is_empty() {
        true => policy.destinations().map(str::to_owned).collect(),
        false => given.to_vec(),
    };
    places.sort();
    places.dedup();
    if places.is_empty() {
        bail!("no place for dead blobs is configured; name one with --from CONTAINER");
    }
    let split = |place: &String| {
        let (container, prefix) = place.split_once('/').unwrap_or((place, ""));
        if !destination::is_container_name(container) {
            bail!("`{container}` is not a container name");
        }
        Ok((container.to_owned(), prefix.to_owned()))
    };
    places.iter().map(split).collect()
}

pub(super) fn text(report: &UndoReport) -> String {
    let mut text = String::new();
    for row in report.blobs.iter().take(ROWS_SHOWN) {
        let detail = row.detail.iter().map(|detail| format!("  ({detail})"));
        let detail: String = detail.collect();
        let name = row.outcome.name();
        let line = format!("{name:<13} {} -> {}{detail}\n", row.from, row.to);
        text.push_str(&printable(&line));
    }
    let total: u64 = report.outcomes.values().sum();
    let named = report.count(Undone::NoHistory) + report.blobs.len().min(ROWS_SHOWN) as u64;
    if total > named {
        text.push_str("... and more; --json names them\n");
    }
    let back = report.count(Undone::Restored) + report.count(Undone::CopyKept);
    let would = if report.dry_run {
        "would be back"
    } else {
        "back"
    };
    let bytes = smalt_sweeper::plan::bytes(report.bytes);
    text.push_str(&format!(
        "{back} blobs {would} ({bytes}), {} not",
        report.failed()
    ));
    match report.count(Undone::NoHistory) {
        0 => {}
        others => text.push_str(&format!(", {others} that no sweep moved are left alone")),
    }
    text + "\n"
}
