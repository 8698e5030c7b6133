//! `plan`: what a sweep would do.

use anyhow::Result;
use clap::Args;
use smalt_sweeper::error::exit;

use super::common::{self, Common};
use super::progress;
use crate::show;

#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    /// The whole plan as JSON.
    #[arg(long, conflicts_with = "csv")]
    pub(crate) json: bool,
    /// The blobs that would go, or need attention, as CSV.
    #[arg(long)]
    pub(crate) csv: bool,
    /// Name at most this many blobs; totals cover all.
    #[arg(long, default_value_t = smalt_sweeper::plan::ROWS_MAX)]
    pub(crate) rows: usize,
    #[command(flatten)]
    pub(crate) common: Common,
}

/// Plans, and prints the plan.
pub(crate) async fn plan(args: &PlanArgs) -> Result<u8> {
    let (sweeper, settings) = common::sweeper(&args.common)?;
    let bar = progress::spinner("planning");
    let told = bar.clone();
    let progress = move |plan: &smalt_sweeper::Plan| {
        let seen: u64 = plan.containers.values().map(|c| c.totals.seen).sum();
        told.set_message(format!("{seen} blobs seen"));
        told.tick();
    };
    let planned = sweeper.plan(settings.prices, args.rows, progress).await;
    bar.finish_and_clear();
    let plan = planned?;
    if args.json {
        println!("{}", serde_json::to_string_pretty(&plan)?);
    } else if args.csv {
        print!("{}", plan.csv());
    } else {
        print!("{}", show::plan(&plan));
    }
    let failed = plan.containers.values().any(|c| c.error.is_some());
    Ok(if failed { exit::FAILED_ITEMS } else { exit::OK })
}
