//! The command line of `smalt`: Azurite's flags where there are such, and a few of its own.
//!
//! [`Cli::read`] turns the arguments and the environment into a [`Cli`]. Each long flag has an
//! environment variable and a spelling in kebab-case; `spelling` derives both from its name.
//!
//! To add a subcommand, add a variant to [`Command`] and call its logic in [`Command::run`].

mod accounts;
mod addresses;
mod command;
mod flags;
mod offline;
mod program;
mod spelling;

use std::ffi::OsString;

use clap::{CommandFactory as _, FromArgMatches as _, Parser};

pub use addresses::resolve;
pub use command::Command;
pub use flags::{Durability, Flags, LogFormat, OAuthLevel};
pub use program::Program;

/// Azurite's variable for `--accounts`; `SMALT_ACCOUNTS` wins.
const AZURITE_ACCOUNTS: &str = "AZURITE_ACCOUNTS";

/// What `--version` says. A binary that has parts for tests says so: a build together with the
/// harness has, and ci/build.sh sees to it that what ships has not.
#[cfg(not(any(feature = "schedule", feature = "failpoints")))]
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");
#[cfg(any(feature = "schedule", feature = "failpoints"))]
pub(crate) const VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    " with parts for tests (the product: cargo build --release -p smalt)"
);

/// A whole command line.
#[derive(Debug, Parser)]
#[command(
    name = "smalt",
    version = VERSION,
    disable_version_flag = true,
    args_conflicts_with_subcommands = true,
    // The last one counts, so that a wrapper can add to what it was given.
    args_override_self = true,
    about = "A local Azure Storage: Blob, Queue and Table REST, durable by default.",
    long_about = "A local Azure Storage: Blob, Queue and Table REST, durable by default.\n\n\
        Starts on Azurite's ports with Azurite's account and key; its flags and AZURITE_ACCOUNTS \
        are accepted. Without any flag it listens on 127.0.0.1:10000 (blob), 10001 (queue), \
        10002 (table) and 10003 (control) and keeps its data in ./smalt-data.\n\n\
        Called as azurite, azurite-blob, azurite-queue or azurite-table, or with one of these as \
        its first argument, smalt prints what that program prints and starts its services.",
    after_help = "Examples:\n  \
        smalt                                  start with defaults\n  \
        smalt --inMemoryPersistence            keep nothing on disk\n  \
        smalt --location /tmp/store --mode fast\n  \
        smalt --cert cert.pem --key key.pem    serve https\n  \
        smalt --devCert --oauth basic          serve https, take bearer tokens\n  \
        smalt azurite --silent --location data start as Azurite\n  \
        smalt --completions bash               print a completion script"
)]
pub struct Cli {
    /// What to do instead of serving.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// How to serve.
    #[command(flatten)]
    pub flags: Flags,
    /// Print the version.
    #[arg(short = 'v', short_alias = 'V', long, action = clap::ArgAction::Version)]
    version: Option<bool>,
}

impl Cli {
    /// Reads arguments, the name of the program first, and the environment.
    ///
    /// # Errors
    /// What is wrong with them, or the text of `--help` or `--version`.
    pub fn read(arguments: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        let (program, arguments) = Program::of(arguments);
        let command = Self::complete_command().bin_name(program.name());
        let mut cli = Self::from_arg_matches(&command.try_get_matches_from(arguments)?)?;
        cli.flags.program = program;
        if cli.flags.accounts.is_none() {
            cli.flags.accounts = std::env::var(AZURITE_ACCOUNTS).ok();
        }
        Ok(cli)
    }

    /// The command line with the environment variables and the further spellings of its flags.
    pub fn complete_command() -> clap::Command {
        spelling::complete(Self::command())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(arguments: &str) -> Result<Cli, clap::Error> {
        let all = ["smalt"].into_iter().chain(arguments.split_whitespace());
        Cli::read(all.map(OsString::from))
    }

    #[test]
    fn an_unknown_flag_names_the_nearest_one() {
        for (given, nearest) in [
            ("--bloobPort 1", "--blobPort"),
            ("azurite --inMemoryPersistance", "--inMemoryPersistence"),
            ("--skip-api-version", "--skip-api-version-check"),
            ("versoin", "version"),
        ] {
            let error = read(given).unwrap_err().to_string();
            assert!(error.contains(&format!("'{nearest}'")), "{error}");
        }
    }

    #[test]
    fn the_last_of_several_counts_in_either_spelling() {
        let flags = read("--blobPort 1 --silent --blob-port 2 --silent")
            .unwrap()
            .flags;
        assert_eq!(flags.blob_port, 2);
    }

    #[test]
    fn a_subcommand_takes_no_flags_of_serving() {
        assert!(matches!(
            read("version").unwrap().command,
            Some(Command::Version)
        ));
        assert!(read("--silent version").is_err());
    }

    #[test]
    fn the_name_is_that_of_the_program() {
        let cli = read("azurite-queue --silent").unwrap();
        assert_eq!(
            cli.flags.services().collect::<Vec<_>>(),
            [smalt_protocol::Service::Queue]
        );
        let help = read("azurite --help").unwrap_err().to_string();
        assert!(help.contains("Usage: azurite "), "{help}");
    }
}
