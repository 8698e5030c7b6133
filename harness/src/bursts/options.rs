//! The command `harness bursts`.

use std::process::ExitCode;

use indicatif::ProgressBar;

use super::burst::{Outcome, Shape, burst};

/// Options of `harness bursts`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// First seed.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// How many bursts, from there on.
    #[arg(long, default_value_t = 3_000)]
    bursts: u64,
    /// Clients at once; two to six by turns if it is not given.
    #[arg(long)]
    clients: Option<usize>,
    /// Operations of each client.
    #[arg(long, default_value_t = 4)]
    operations: usize,
    /// Let every answer wait for the disk.
    #[arg(long)]
    durable: bool,
}

/// Worker threads: as many clients as can truly run at once.
const WORKER_THREADS: usize = 4;
/// Most clients of a burst.
const CLIENTS_MAX: u64 = 6;

/// Runs the command.
///
/// # Errors
/// When the runtime does not start.
pub fn run_command(options: &Options) -> anyhow::Result<ExitCode> {
    let bar = ProgressBar::new(options.bursts);
    let seeds = options.seed..options.seed + options.bursts;
    let outcome = campaign(
        seeds,
        options.clients,
        options.operations,
        options.durable,
        &|| {
            bar.inc(1);
        },
    );
    bar.finish_and_clear();
    match outcome {
        Ok(sum) => {
            println!(
                "{} bursts: {} calls, {} overlaps, {} answers lost, all in some order the model's",
                options.bursts, sum.calls, sum.overlaps, sum.lost
            );
            Ok(ExitCode::SUCCESS)
        }
        Err(report) => {
            eprintln!("{report}");
            Ok(ExitCode::FAILURE)
        }
    }
}

/// Runs the bursts of these seeds.
///
/// # Errors
/// The report of the first one that no order explains.
pub fn campaign(
    seeds: std::ops::Range<u64>,
    clients: Option<usize>,
    operations: usize,
    durable: bool,
    done: &dyn Fn(),
) -> Result<Outcome, String> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKER_THREADS)
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    let mut sum = Outcome {
        calls: 0,
        lost: 0,
        overlaps: 0,
    };
    for seed in seeds {
        let turn = usize::try_from(2 + seed % (CLIENTS_MAX - 1)).unwrap_or(2);
        let shape = Shape {
            clients: clients.unwrap_or(turn),
            operations,
            durable,
        };
        let outcome = runtime.block_on(burst(seed, shape))?;
        sum.calls += outcome.calls;
        sum.lost += outcome.lost;
        sum.overlaps += outcome.overlaps;
        done();
    }
    Ok(sum)
}
