//! `plan`: shows what a sweep would do.

use std::time::Duration;

use anyhow::Result;
use clap::Args;
use smalt_sweeper::Plan;
use smalt_sweeper::plan::Totals;

use super::common::{self, Common, print_json};
use super::progress::{self, Far};
use crate::show;

#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    /// Print the whole plan as JSON.
    #[arg(long, conflicts_with = "csv")]
    pub(crate) json: bool,
    /// Print the blobs that would be removed or need attention as CSV.
    #[arg(long)]
    pub(crate) csv: bool,
    /// Maximum number of blobs to list; totals always cover all blobs. Default: all with --json or
    /// --csv, otherwise 20.
    #[arg(long, value_name = "N")]
    pub(crate) rows: Option<usize>,
    /// Also check each blob for snapshots, where policy refuses them, and each move for another
    /// blob at its destination. Costs one listing per blob to remove and one HEAD per move; the
    /// plan shows the total.
    #[arg(long)]
    pub(crate) deep: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

impl PlanArgs {
    /// Returns the row limit; `--json` and `--csv` are unlimited by default.
    fn rows_max(&self) -> usize {
        let whole = self.json || self.csv;
        let most = if whole { usize::MAX } else { show::ROWS_SHOWN };
        self.rows.unwrap_or(most)
    }
}

pub(crate) async fn plan(args: &PlanArgs) -> Result<u8> {
    let (sweeper, settings) = common::sweeper(&args.common)?;
    let bar = progress::spinner("planning");
    let told = bar.clone();
    let progress = move |plan: &Plan| progress::show(&told, far(plan, told.elapsed()));
    let rows_max = args.rows_max();
    let planned = match args.deep {
        true => sweeper.plan_deep(settings.prices, rows_max, progress).await,
        false => sweeper.plan(settings.prices, rows_max, progress).await,
    };
    bar.finish_and_clear();
    let plan = planned?;
    if args.json {
        print_json(&plan)?;
    } else if args.csv {
        print!("{}", plan.csv());
        if plan.truncated {
            eprintln!("note: only the first {rows_max} blobs are listed; use --rows for more");
        }
    } else {
        print!("{}", show::plan(&plan));
    }
    Ok(plan.exit_code())
}

fn far(plan: &Plan, since: Duration) -> Far {
    let sum =
        |of: fn(&Totals) -> u64| -> u64 { plan.containers.values().map(|c| of(&c.totals)).sum() };
    let (seen, due) = (sum(|t| t.seen), sum(|t| t.delete + t.r#move));
    let rate = progress::rate(seen, since);
    Far {
        done: plan.containers_done,
        all: plan.containers_all,
        words: format!("{seen} blobs seen, {due} due, {rate}"),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command};

    #[test]
    fn machine_readable_output_is_complete() {
        for (flags, expected) in [
            ("", show::ROWS_SHOWN),
            ("--rows 30", 30),
            ("--csv", usize::MAX),
            ("--json", usize::MAX),
            ("--csv --rows 1000", 1_000),
        ] {
            let line = format!("smalt-sweeper plan {flags}");
            let Command::Plan(args) = Cli::parse_from(line.split_whitespace()).command else {
                panic!("the command is plan");
            };
            assert_eq!(args.rows_max(), expected, "{flags}");
        }
    }
}
