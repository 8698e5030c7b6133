//! `report`: summarizes what was swept, from the state document or from a JSON log.

use std::io::{BufRead, BufReader};

use anyhow::{Context, Result};
use clap::Args;
use smalt_sweeper::summary::{LogSummary, StateSummary};
use smalt_worker::exit;
use smalt_worker::process::open;

use super::common::{self, Common, print_json};
use crate::show;

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Summarize this file of JSON log lines (`--log json`) instead; `-` reads standard input.
    #[arg(long, value_name = "FILE")]
    from_log: Option<String>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    common: Common,
}

pub(crate) async fn report(args: &ReportArgs) -> Result<u8> {
    if let Some(path) = &args.from_log {
        let summary = of_log(path)?;
        match args.json {
            true => print_json(&summary)?,
            false => print!("{}", show::log_summary(&summary)),
        }
        return Ok(match summary.failed() {
            0 => exit::OK,
            _ => exit::FAILED_ITEMS,
        });
    }
    let (sweeper, _) = common::sweeper(&args.common)?;
    let summary = StateSummary::of(&sweeper.state().await?);
    match args.json {
        true => print_json(&summary)?,
        false => print!("{}", show::state_summary(&summary)),
    }
    Ok(match summary.troubled() {
        0 => exit::OK,
        _ => exit::FAILED_ITEMS,
    })
}

fn of_log(path: &str) -> Result<LogSummary> {
    let input: Box<dyn BufRead> = match path {
        "-" => Box::new(std::io::stdin().lock()),
        path => Box::new(BufReader::new(
            open(path).with_context(|| format!("cannot read {path}"))?,
        )),
    };
    let mut summary = LogSummary::default();
    for line in input.lines() {
        let line = line.with_context(|| format!("cannot read {path}"))?;
        summary.line(&line);
    }
    if summary.blobs == 0 && summary.cycles == 0 {
        anyhow::bail!("{path} contains no log line of a sweep; write the log with `--log json`");
    }
    Ok(summary)
}
