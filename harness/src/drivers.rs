//! The command `harness check`: drivers make cases out of seeds, run them, and judge the results.

use std::pin::Pin;
use std::process::ExitCode;

use crate::{bursts, crash, fleet, histories, scenario, soak};

/// Options of `harness check`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    #[command(subcommand)]
    driver: Driver,
}

/// What makes the cases and runs them.
#[derive(Clone, Debug, clap::Subcommand)]
enum Driver {
    /// Run random histories of one client and compare every answer with the model's.
    Histories(histories::Options),
    /// Run a few clients at once and look for an order of their calls that explains every answer.
    Bursts(bursts::Options),
    /// Run clients of one queue for long and account for every message.
    Soak(soak::Options),
    /// Kill the service in the middle of work and look for what was acknowledged.
    Crash(crash::Options),
    /// Run worker processes that are killed at random, and account for every message or blob.
    Fleet(Box<fleet::Options>),
    /// Run the sweeper among rivals, faults and crashes: blobs expire and move while owners change
    /// their minds.
    Sweep(scenario::Options),
    /// Run the listener among rivals, faults and crashes: messages are handled, retried, poisoned.
    Listen(scenario::Options),
}

/// Runs the command; `block_on` runs what starts other processes until it ends or is interrupted.
/// Not to be called from within a runtime: every other case has its own.
///
/// # Errors
/// Those of the driver.
pub fn run_command(
    options: &Options,
    block_on: impl FnOnce(Run<'_>) -> anyhow::Result<ExitCode>,
) -> anyhow::Result<ExitCode> {
    match &options.driver {
        Driver::Histories(options) => histories::run_command(options),
        Driver::Bursts(options) => bursts::run_command(options),
        Driver::Soak(options) => soak::run_command(options),
        Driver::Crash(options) => block_on(Box::pin(crash::run_command(options))),
        Driver::Fleet(options) => block_on(Box::pin(fleet::run_command(options))),
        Driver::Sweep(options) => scenario::run_sweep(options),
        Driver::Listen(options) => scenario::run_listen(options),
    }
}

/// A driver under way.
pub type Run<'a> = Pin<Box<dyn Future<Output = anyhow::Result<ExitCode>> + 'a>>;
