//! `cost`: estimates the cost of sweeping from counts or from a plan.

use anyhow::{Context, Result};
use clap::Args;
use serde_json::json;
use smalt_sweeper::cost::{self, Cost, Counts};
use smalt_sweeper::settings::Settings;
use smalt_worker::exit;
use smalt_worker::span;

use super::common::{self, Common, print_json};
use super::progress;
use crate::connect;

#[derive(Debug, Args)]
pub(crate) struct CostArgs {
    /// Blobs listed per cycle. Without it, a plan counts the blobs.
    #[arg(long, value_name = "N")]
    blobs: Option<u64>,
    /// Containers that hold these blobs.
    #[arg(long, value_name = "N", default_value_t = 1, requires = "blobs")]
    in_containers: u64,
    /// Blobs moved per day. Deletes are free.
    #[arg(long, value_name = "N", default_value_t = 0, requires = "blobs")]
    moves: u64,
    /// Number of workers.
    #[arg(long, value_name = "N", default_value_t = 1)]
    workers: u64,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    common: Common,
}

pub(crate) async fn cost(args: &CostArgs) -> Result<u8> {
    let (settings, counts) = match args.blobs {
        Some(blobs) => {
            common::log(&args.common)?;
            let (config, flags) = (args.common.config.as_deref(), args.common.flags());
            let settings = connect::settings(config, flags)?;
            let counts = Counts {
                blobs,
                containers: args.in_containers,
                page_size: u64::from(settings.sweeper.page_size),
                moves: args.moves,
                workers: args.workers,
            };
            (settings, counts)
        }
        None => planned(args).await?,
    };
    let every = settings.sweeper.schedule.every;
    let cost = cost::cost(&counts, every, &settings.prices);
    match args.json {
        true => {
            let all = json!({ "counts": counts, "prices": settings.prices, "cost": cost });
            print_json(&all)?;
        }
        false => print!("{}", text(&counts, &settings, &cost)),
    }
    Ok(exit::OK)
}

async fn planned(args: &CostArgs) -> Result<(Settings, Counts)> {
    let (sweeper, settings) = common::sweeper(&args.common)?;
    let bar = progress::spinner("counting");
    let plan = sweeper.plan(settings.prices, 0, |_| {}).await;
    bar.finish_and_clear();
    let plan = plan?;
    if let Some((label, error)) = plan
        .containers
        .iter()
        .find_map(|(label, c)| Some((label, c.error.as_ref()?)))
    {
        return Err(anyhow::anyhow!(error.clone())).context(format!("container {label}"));
    }
    let page_size = u64::from(settings.sweeper.page_size);
    let counts = Counts::of_plan(&plan, page_size, args.workers);
    Ok((settings, counts))
}

fn text(counts: &Counts, settings: &Settings, cost: &Cost) -> String {
    let price = settings.prices.per_10k_transactions;
    let every = span::format(settings.sweeper.schedule.every);
    format!(
        "{} blobs in {} containers, {} a page: {} pages\n\
         a cycle: {} pages x {} + {} workers x {} + {} moves x {} = {} charged calls, {:.6}\n\
         a day:   {:.0} cycles, one every {every}, the moves once = {:.0} charged calls, {:.4}\n\
         a month: {:.2} (30 days; {price} per 10,000 calls, a setting)\n",
        counts.blobs,
        counts.containers,
        counts.page_size,
        cost.pages,
        cost.pages,
        smalt_sweeper::plan::CALLS_PER_PAGE,
        counts.workers,
        cost::CALLS_PER_LOOK,
        counts.moves,
        smalt_sweeper::plan::CALLS_PER_MOVE,
        cost.transactions,
        cost.per_cycle,
        cost.cycles_per_day,
        cost.transactions_per_day,
        cost.per_day,
        cost.per_month,
    )
}
