//! What `smalt` does instead of serving.

use std::process::ExitCode;

use clap::Subcommand;

use super::offline::{Check, Salvage};

/// A subcommand.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Print the version.
    Version,
    /// Check whether a store is whole, without changing it.
    Check(Check),
    /// Save what is readable of a store that does not open, as plain files.
    Salvage(Salvage),
}

impl Command {
    /// Does it. The exit code is the command's own; an error is printed by the caller.
    ///
    /// # Errors
    /// Why it could not be done.
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
