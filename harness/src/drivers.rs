//! The command `harness check`: drivers generate cases from seeds, run them, and check the results.

use std::pin::Pin;
use std::process::ExitCode;

use crate::{bursts, crash, fleet, histories, scenario, soak};

/// Options of `harness check`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    #[command(subcommand)]
    driver: Driver,
}

#[derive(Clone, Debug, clap::Subcommand)]
enum Driver {
    /// Run random histories of one client and compare every answer with the model's.
    Histories(histories::Options),
    /// Run a few clients concurrently and search for an order of their calls that explains every
    /// answer.
    Bursts(bursts::Options),
    /// Run clients of one queue for a long time and account for every message.
    Soak(soak::Options),
    /// Kill the service at work and verify that everything it acknowledged is still there.
    Crash(crash::Options),
    /// Run worker processes that are killed at random, and account for every message or blob.
    Fleet(Box<fleet::Options>),
    /// Run the sweeper with rival sweepers, faults and crashes while blobs expire and move and
    /// their owners change them.
    Sweep(scenario::Options),
    /// Run the listener with rival listeners, faults and crashes while messages are handled,
    /// retried and moved to the poison queue.
    Listen(scenario::Options),
}

/// Runs the command; `block_on` runs drivers that start other processes until they end or are
/// interrupted. Must not be called from within a runtime, because the other drivers create their
/// own.
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

/// A driver in progress.
pub type Run<'a> = Pin<Box<dyn Future<Output = anyhow::Result<ExitCode>> + 'a>>;
