//! The command line of `smalt`: Azurite's flags and a few of its own.
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

/// Azurite's environment variable for `--accounts`; `SMALT_ACCOUNTS` takes precedence.
const AZURITE_ACCOUNTS: &str = "AZURITE_ACCOUNTS";

/// The output of `--version`. A build with test hooks, such as one together with the harness, names
/// them; ci/build.sh rejects such a build for a release.
#[cfg(not(any(feature = "schedule", feature = "failpoints")))]
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");
#[cfg(any(feature = "schedule", feature = "failpoints"))]
pub(crate) const VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    " with test hooks (for a release: cargo build --release -p smalt)"
);

/// The whole command line.
#[derive(Debug, Parser)]
#[command(
    name = "smalt",
    version = VERSION,
    disable_version_flag = true,
    args_conflicts_with_subcommands = true,
    // The last occurrence of a flag wins, so that a wrapper can append flags.
    args_override_self = true,
    about = "A local Azure Storage emulator: Blob, Queue and Table REST, durable by default.",
    long_about = "A local Azure Storage emulator: Blob, Queue and Table REST, durable by \
        default.\n\n\
        Starts on Azurite's ports with Azurite's account and key; its flags and AZURITE_ACCOUNTS \
        are accepted. Without any flag it listens on 127.0.0.1:10000 (blob), 10001 (queue), \
        10002 (table) and 10003 (control) and keeps its data in ./smalt-data.\n\n\
        Started as azurite, azurite-blob, azurite-queue or azurite-table, or with one of these as \
        its first argument, smalt prints what that program prints and starts its services.",
    after_help = "Examples:\n  \
        smalt                                  start with defaults\n  \
        smalt --inMemoryPersistence            keep nothing on disk\n  \
        smalt --location /tmp/store --mode fast\n  \
        smalt --cert cert.pem --key key.pem    serve https\n  \
        smalt --devCert --oauth basic          serve https, accept bearer tokens\n  \
        smalt azurite --silent --location data start as Azurite\n  \
        smalt --completions bash               print a completion script"
)]
pub struct Cli {
    /// The subcommand; `None` to serve.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// The flags for serving.
    #[command(flatten)]
    pub flags: Flags,
    /// Print the version.
    #[arg(short = 'v', short_alias = 'V', long, action = clap::ArgAction::Version)]
    version: Option<bool>,
}

impl Cli {
    /// Parses the arguments, of which the first is the program name, and the environment.
    ///
    /// # Errors
    /// When they are invalid; also for `--help` and `--version`, with the text to print.
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

    /// Returns the clap command with the environment variables and aliases of all flags.
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
    fn unknown_flag_suggests_the_nearest_one() {
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
    fn last_occurrence_of_a_flag_wins_in_either_spelling() {
        let flags = read("--blobPort 1 --silent --blob-port 2 --silent")
            .unwrap()
            .flags;
        assert_eq!(flags.blob_port, 2);
    }

    #[test]
    fn subcommand_rejects_serving_flags() {
        assert!(matches!(
            read("version").unwrap().command,
            Some(Command::Version)
        ));
        assert!(read("--silent version").is_err());
    }

    #[test]
    fn help_shows_the_name_of_the_program() {
        let cli = read("azurite-queue --silent").unwrap();
        assert_eq!(
            cli.flags.services().collect::<Vec<_>>(),
            [smalt_protocol::Service::Queue]
        );
        let help = read("azurite --help").unwrap_err().to_string();
        assert!(help.contains("Usage: azurite "), "{help}");
    }
}
