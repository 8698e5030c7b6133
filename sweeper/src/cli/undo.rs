//! `undo`: restores moved blobs to their original places.

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

/// Blobs listed in text output; `--json` lists more.
const ROWS_SHOWN: usize = 50;

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("which").required(true))]
pub(crate) struct UndoArgs {
    /// Restore blobs that were moved at or after this time, for example 2026-11-21T10:00:00Z.
    #[arg(long, value_name = "TIME", value_parser = instant, group = "which")]
    since: Option<Timestamp>,
    /// Restore blobs that this cycle moved.
    #[arg(long, value_name = "N", group = "which")]
    cycle: Option<u64>,
    /// Restore all blobs that any sweep moved.
    #[arg(long, group = "which")]
    all: bool,
    /// Search this container of the account for dead blobs. Default: the configured destinations.
    #[arg(long, value_name = "CONTAINER[/PREFIX]")]
    from: Vec<String>,
    /// Restore only blobs whose original place starts with this.
    #[arg(long, value_name = "CONTAINER[/PREFIX]")]
    prefix: Option<String>,
    /// Also restore blobs whose origin only their metadata claims, without the service's record of
    /// the copy. Anyone who can write to the dead container can forge such metadata.
    #[arg(long)]
    trust_metadata: bool,
    /// Show what would be restored without writing anything.
    #[arg(long)]
    dry_run: bool,
    /// Print the report as JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    common: Common,
}

fn instant(text: &str) -> Result<Timestamp, String> {
    match ttl::parse(text, &[TtlFormat::Rfc3339]) {
        Some(TimeToLive::At(at)) => Ok(at),
        _ => Err("use an instant such as 2026-11-21T10:00:00Z".to_owned()),
    }
}

pub(crate) async fn undo(args: &UndoArgs) -> Result<u8> {
    let (sweeper, settings) = common::sweeper(&args.common)?;
    let undo = Undo {
        from: places(&args.from, &settings.sweeper.policy)?,
        since: args.since,
        cycle: args.cycle,
        place: args.prefix.clone(),
        // Only the flag counts: the configured policy is meant for moves, not for the way back.
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
        told.set_message(format!("{back} blobs restored, {} not", report.failed()));
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
        eprintln!("error: no matching dead blob was found");
    }
    Ok(match report.failed() {
        0 if found => exit::OK,
        _ => exit::FAILED_ITEMS,
    })
}

/// Returns the given containers, or the configured destinations if none is given.
fn places(given: &[String], policy: &Policy) -> Result<Vec<(String, String)>> {
    let mut places: Vec<String> = match given.is_empty() {
        true => policy.destinations().map(str::to_owned).collect(),
        false => given.to_vec(),
    };
    places.sort();
    places.dedup();
    if places.is_empty() {
        bail!("no container for dead blobs is configured; name one with --from CONTAINER");
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
        let line = format!("{:<13} {} -> {}{detail}\n", row.outcome, row.from, row.to);
        text.push_str(&printable(&line));
    }
    let total: u64 = report.outcomes.values().sum();
    let named = report.count(Undone::NoHistory) + report.blobs.len().min(ROWS_SHOWN) as u64;
    if total > named {
        text.push_str("... and more; use --json to list them\n");
    }
    let back = report.count(Undone::Restored) + report.count(Undone::CopyKept);
    let would = if report.dry_run {
        "would be restored"
    } else {
        "restored"
    };
    let bytes = smalt_sweeper::plan::bytes(report.bytes);
    text.push_str(&format!(
        "{back} blobs {would} ({bytes}), {} not",
        report.failed()
    ));
    match report.count(Undone::NoHistory) {
        0 => {}
        others => text.push_str(&format!(", ignored {others} that no sweep moved")),
    }
    text + "\n"
}
