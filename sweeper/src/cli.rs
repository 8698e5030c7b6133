//! The command line. Each command has its own file.

pub(crate) mod common;
mod cost;
mod explain;
mod plan;
mod progress;
mod report;
mod signals;
mod state;
mod sweep;
mod tag;
mod undo;
mod validate;

#[cfg(test)]
#[path = "cli/hostile_tests.rs"]
mod hostile_tests;

use anyhow::Result;
use clap::{CommandFactory, Parser, Subcommand};
use smalt_sweeper::SweepError;
use smalt_worker::exit;

use common::Common;

const AFTER_HELP: &str = "\
A blob's metadata decide when it is removed: TimeToLive is an instant (2026-11-21T10:00:00Z) or a
duration after the last change (P7D). If DeadBlobContainer is set (`dbc`, `dbc/old/` or
`dbc/exact-name`), the blob is moved there instead of being deleted.

Examples:
  Preview a sweep without changing anything:
    smalt-sweeper plan --connection-string UseDevelopmentStorage=true --container events
  Sweep two containers once, the second one only by prefix:
    smalt-sweeper once --account acct --sas env:SAS --container events --container logs/app/
  Use this machine's managed identity instead of a key:
    smalt-sweeper once --account acct --auth managed-identity --container events
  Move blobs to an archive instead of deleting them:
    smalt-sweeper once --container events --dead-container archive/events/
  Run as a service every ten minutes, with any number of instances:
    smalt-sweeper run --config sweeper.toml --log json

Settings come from flags, then environment (SWEEPER_*, AZURE_STORAGE_CONNECTION_STRING), then
--config.
Exit codes: 0 success, 1 some blobs failed, 2 invalid usage or configuration, 3 access denied,
4 storage or state unreachable, 5 circuit breaker or budget, 6 clock skew, 7 stop took too long,
130 second interrupt.";

/// Deletes or moves Azure blobs whose TimeToLive has passed.
#[derive(Debug, Parser)]
#[command(name = "smalt-sweeper", version, about, after_help = AFTER_HELP)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Sweep on schedule until stopped by SIGTERM or Ctrl-C; a second signal aborts.
    Run(Common),
    /// Sweep one cycle now and exit. Prints the report as JSON, or nothing if the sweep is refused.
    Once(Common),
    /// Show what a sweep would do, with bytes, transactions and cost. Changes nothing.
    Plan(plan::PlanArgs),
    /// Explain what will happen to one blob, when and why. Changes nothing.
    Explain(explain::ExplainArgs),
    /// Set or remove a blob's time to live and its destination.
    Tag(tag::TagArgs),
    /// Restore moved blobs to their original places.
    Undo(undo::UndoArgs),
    /// Summarize what was swept per container, from the state document or from a JSON log.
    Report(report::ReportArgs),
    /// Show the configuration, the source of each value, and every error in it.
    Validate(validate::ValidateArgs),
    /// Estimate the cost of sweeping from counts or from a plan.
    Cost(cost::CostArgs),
    /// Create, show, convert or unlock the state document that the workers share.
    State {
        #[command(subcommand)]
        command: state::StateCommand,
    },
    /// Print shell completions, for example: smalt-sweeper completions bash.
    Completions {
        /// Shell to generate completions for.
        shell: clap_complete::Shell,
    },
}

pub(crate) fn exit_code(error: &anyhow::Error) -> u8 {
    match error.downcast_ref::<SweepError>() {
        Some(error) => error.exit_code(),
        None => exit::USAGE,
    }
}

/// Returns advice for an error that the user can fix.
pub(crate) fn hint(error: &anyhow::Error) -> Option<&'static str> {
    let SweepError::Storage(error) = error.downcast_ref()? else {
        return None;
    };
    let forbidden = "check the account key, the SAS permissions, or the roles of the identity";
    exit::hint(error, forbidden)
}

pub(crate) async fn command(command: Command) -> Result<u8> {
    match command {
        Command::Run(common) => sweep::run(&common).await,
        Command::Once(common) => sweep::once(&common).await,
        Command::Plan(args) => plan::plan(&args).await,
        Command::Explain(args) => explain::explain(&args).await,
        Command::Tag(args) => tag::tag(&args).await,
        Command::Undo(args) => undo::undo(&args).await,
        Command::Report(args) => report::report(&args).await,
        Command::Validate(args) => validate::validate(&args).await,
        Command::Cost(args) => cost::cost(&args).await,
        Command::State { command } => state::state(command).await,
        Command::Completions { shell } => {
            let mut command = Cli::command();
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut command, "smalt-sweeper", &mut script);
            print!("{}", String::from_utf8_lossy(&script));
            Ok(exit::OK)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn command_line_definition_is_valid() {
        Cli::command().debug_assert();
    }

    /// Invalid command lines fail before any request, with the exit code for usage.
    #[tokio::test]
    async fn invalid_command_lines_exit_with_usage() {
        let dev = "--connection-string UseDevelopmentStorage=true --log-level off";
        for line in [
            "explain",
            "explain events {dev}",
            "explain ftp://a/b/c {dev}",
            "explain https://elsewhere/c/b --state-account",
            "tag events/a {dev}",
            "tag events/a --ttl tomorrow {dev}",
            "tag events/a --ttl P1M {dev}",
            "tag events/a --dead DBC {dev}",
            "tag events/a --remove --ttl P7D {dev}",
            "tag Events --all --ttl P7D {dev}",
            "tag https://a/c --all --ttl P7D {dev}",
            "undo {dev}",
            "undo --all {dev}",
            "undo --cycle x --from dbc {dev}",
            "undo --since yesterday --from dbc {dev}",
            "undo --cycle 1 --since 2026-11-21T10:00:00Z --from dbc {dev}",
            "undo --all --from DBC {dev}",
            "cost --blobs many {dev}",
            "cost --moves 5 {dev}",
            "report --from-log /nowhere/sweep.log {dev}",
            "validate",
            "validate --page-size 0 {dev}",
            "validate --on-collision maybe {dev}",
            "validate --profile old {dev}",
            "validate --auth entra {dev}",
            "validate --account acct --auth somebody",
            "validate --account acct --auth entra --sas sig=x",
            "validate --endpoint http://127.0.0.1:1/acct --auth managed-identity",
            "state migrate --state nowhere {dev}",
            "state unlock --force=yes {dev}",
        ] {
            let line = format!("smalt-sweeper {}", line.replace("{dev}", dev));
            let code = match Cli::try_parse_from(line.split_whitespace()) {
                Err(error) => u8::try_from(error.exit_code()).unwrap(),
                Ok(cli) => match command(cli.command).await {
                    Ok(code) => code,
                    Err(error) => exit_code(&error),
                },
            };
            assert_eq!(code, exit::USAGE, "{line}");
        }
    }

    #[test]
    fn every_flag_maps_to_a_setting() {
        let line = "smalt-sweeper once --connection-string UseDevelopmentStorage=true --ca-file f \
            --connect-to localhost:1 --container events --container logs/a/ --dead-container dbc \
            --dead-account default --on-collision suffix --ttl-grace 1h --approve --state abc/d \
            --dead-connection-string UseDevelopmentStorage=true --state-backend etag --every 1m \
            --page-size 5 --parallelism 3 --page-deadline 1m --rate 7.5 --grace 5s --worker-id w \
            --seed 9 --health 127.0.0.1:0 --metrics 127.0.0.1:0 --profile compat";
        let cli = Cli::try_parse_from(line.split_whitespace()).unwrap();
        let Command::Once(common) = cli.command else {
            panic!("the command is once");
        };
        let settings = smalt_sweeper::settings::gather(None, [], common.flags()).unwrap();
        assert_eq!(settings.seed, Some(9));
        assert_eq!(settings.sweeper.containers.len(), 2);
        assert_eq!(settings.sweeper.page_size, 5);
        assert!(settings.connect_to.is_some());
    }
}
