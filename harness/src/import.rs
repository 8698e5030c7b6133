//! Recordings of other tools as traces.
use std::process::ExitCode;

/// Options of `harness import`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {}

/// Imports.
///
/// # Errors
/// None yet.
pub fn run_command(_: &Options) -> anyhow::Result<ExitCode> {
    Ok(ExitCode::SUCCESS)
}
