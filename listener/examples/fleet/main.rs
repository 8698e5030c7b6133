//! Estimates what a large fleet of listeners costs, and how long its messages wait: the listener's
//! own code on a virtual clock, with an in-memory service that refuses what a queue cannot carry.
//!
//! `cargo run --release -p smalt-listener --example fleet -- --listeners 1000`
//!
//! Prints three tables: an idle hour, a steady load, and a burst. The time of a request is an
//! assumption; docs/listener.md says what is left out.

mod simulation;
#[path = "../../tests/support/mod.rs"]
mod support;

use std::time::Duration;

use anyhow::ensure;
use clap::{Parser, ValueEnum};
use simulation::{Measured, Mode, Phase, Plan, measure};
use smalt_listener::rules::cost::{
    Calendar, DAYS_PER_MONTH, EXAMPLE_PRICE_PER_10K, IDLE_HOURS, cost,
};
use smalt_worker::span;

/// Messages of which the cost is printed.
const MILLION: f64 = 1_000_000.0;

/// Estimates the requests and waits of many listeners.
#[derive(Parser)]
struct Flags {
    /// Processes with a listener for each queue.
    #[arg(long, default_value_t = 1_000)]
    listeners: u64,
    /// Queues that share the messages.
    #[arg(long, default_value_t = 1)]
    queues: u64,
    /// How the fleets learn of messages; by default one fleet for each mode.
    #[arg(long, value_enum, value_delimiter = ',')]
    modes: Vec<Mode>,
    /// Length of the idle time, which is extrapolated to an hour.
    #[arg(long, default_value = "1h", value_parser = span::parse)]
    idle: Duration,
    /// Messages a second of the steady load.
    #[arg(long, default_value_t = 100)]
    rate: u64,
    /// Length of the steady load.
    #[arg(long, default_value = "10m", value_parser = span::parse)]
    steady: Duration,
    /// Messages of the burst.
    #[arg(long, default_value_t = 20_000)]
    burst: u64,
}

fn main() -> anyhow::Result<()> {
    let flags = Flags::parse();
    ensure!(
        flags.listeners > 0 && flags.queues > 0,
        "--listeners and --queues must be at least 1"
    );
    let plan = Plan {
        listeners: flags.listeners,
        queues: flags.queues,
        idle: flags.idle,
        steady: (flags.rate, flags.steady),
        burst: flags.burst,
    };
    let modes = match flags.modes.is_empty() {
        true => Mode::value_variants().to_vec(),
        false => flags.modes,
    };
    let mut fleets = Vec::new();
    for mode in modes {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()?;
        fleets.push((mode, runtime.block_on(measure(mode, &plan))?));
    }
    println!("{} listeners, queues: {}\n", plan.listeners, plan.queues);
    show_idle(&fleets, &plan);
    println!(
        "\n{} messages a second for {} s",
        flags.rate,
        flags.steady.as_secs()
    );
    show_load(&fleets, |fleet| &fleet.steady);
    println!("\n{} messages at once", flags.burst);
    show_load(&fleets, |fleet| &fleet.burst);
    Ok(())
}

fn named(mode: Mode) -> String {
    mode.to_possible_value()
        .map_or_else(String::new, |value| value.get_name().to_owned())
}

/// Prints the idle hour, and its cost in the article's month.
fn show_idle(fleets: &[(Mode, Measured)], plan: &Plan) {
    let month = Calendar {
        working_days: DAYS_PER_MONTH,
        idle_hours: IDLE_HOURS,
        idle_days: 0.0,
    };
    println!(
        "| idle hour | requests | by formula | pollers | lease: requests | taken | 503 | month |"
    );
    println!("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    for (mode, fleet) in fleets {
        let idle = &fleet.idle;
        println!(
            "| {} | {:.0} | {:.0} | {} | {} | {} | {} | {:.2} |",
            named(*mode),
            idle.requests_per_hour(),
            mode.idle_requests(plan),
            idle.pollers,
            idle.leases.0,
            idle.leases.1,
            idle.busy,
            cost(
                idle.requests_per_hour() * month.hours(),
                EXAMPLE_PRICE_PER_10K
            ),
        );
    }
}

/// Prints the requests and waits of a load, and the cost of a million such messages.
fn show_load(fleets: &[(Mode, Measured)], of: impl Fn(&Measured) -> &Phase) {
    println!("| mode | done in | requests each | 503 each | median | p99 | repeated | a million |");
    println!("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    for (mode, fleet) in fleets {
        let load = of(fleet);
        let each = |count: u64| count as f64 / load.messages.max(1) as f64;
        println!(
            "| {} | {:.0} s | {:.2} | {:.2} | {:.2} s | {:.2} s | {} | {:.2} |",
            named(*mode),
            load.took.as_secs_f64(),
            each(load.requests),
            each(load.busy),
            load.wait(0.5).as_secs_f64(),
            load.wait(0.99).as_secs_f64(),
            load.repeated,
            cost(each(load.requests) * MILLION, EXAMPLE_PRICE_PER_10K),
        );
    }
}
