//! The subcommands of `smalt`.

use std::process::ExitCode;

use clap::Subcommand;

use super::offline::{Check, Salvage};

/// A subcommand; without one, `smalt` serves.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Print the version.
    Version,
    /// Check whether a store is intact, without changing it.
    Check(Check),
    /// Save the readable data of a store that does not open, as plain files.
    Salvage(Salvage),
}

impl Command {
    /// Runs the subcommand and returns its exit code. The caller prints an error.
    ///
    /// # Errors
    /// When the subcommand fails.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            Command::Version => {
                println!("smalt {}", super::VERSION);
                Ok(ExitCode::SUCCESS)
            }
            Command::Check(check) => check.run(),
            Command::Salvage(salvage) => salvage.run(),
        }
    }
}
