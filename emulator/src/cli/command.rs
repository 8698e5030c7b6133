//! What `smalt` does instead of serving.

use std::process::ExitCode;

use clap::Subcommand;

/// A subcommand.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Print the version.
    Version,
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
        }
    }
}
