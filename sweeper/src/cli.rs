//! The command line: what can be said. Each command has a file of its own.

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
Blobs say themselves when they go: metadata TimeToLive (2026-11-21T10:00:00Z, or P7D after the last
change), and optionally DeadBlobContainer (where to: `dbc`, `dbc/old/`, `dbc/exact-name`).

Examples:
  Look first, nothing is changed:
    smalt-sweeper plan --connection-string UseDevelopmentStorage=true --container events
  One sweep of two containers, the second by prefix:
    smalt-sweeper once --account acct --sas env:SAS --container events --container logs/app/
  By the identity of this machine in place of a key:
    smalt-sweeper once --account acct --auth managed-identity --container events
  Archive instead of deleting:
    smalt-sweeper once --container events --dead-container archive/events/
  A service, as many instances as you like, every ten minutes:
    smalt-sweeper run --config sweeper.toml --log json

Settings come from flags, then environment (SWEEPER_*, AZURE_STORAGE_CONNECTION_STRING), then
--config.
Exit codes: 0 done, 1 some blobs failed, 2 usage, 3 not allowed, 4 storage or state unreachable,
5 circuit breaker or budget, 6 clock skew, 7 stop took too long, 130 second interrupt.";

/// Deletes or moves blobs whose TimeToLive has passed.
#[derive(Debug, Parser)]
#[command(name = "smalt-sweeper", version, about, after_help = AFTER_HELP)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Sweep at every mark until told to stop (SIGTERM or Ctrl-C; twice to abort).
    Run(Common),
    /// Sweep one cycle now, then exit; prints the report as JSON, or nothing when it is refused.
    Once(Common),
    /// Show what a sweep would do, with bytes, transactions and cost. Changes nothing.
    Plan(plan::PlanArgs),
    /// Say for one blob what will happen, when and why. Changes nothing.
    Explain(explain::ExplainArgs),
    /// Give blobs a time to live or a place for the dead blob, or take them away.
    Tag(tag::TagArgs),
    /// Bring blobs back from the places for dead blobs.
    Undo(undo::UndoArgs),
    /// What was swept, by container: from the state document, or from a JSON log.
    Report(report::ReportArgs),
    /// Show the configuration, where each value comes from, and what is wrong with it.
    Validate(validate::ValidateArgs),
    /// What sweeping costs, from counts or from a plan.
    Cost(cost::CostArgs),
    /// Look at or create the state document that the workers share.
    State {
        #[command(subcommand)]
        command: state::StateCommand,
    },
    /// Print completions for a shell, for example: smalt-sweeper completions bash.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

/// The exit code for an error.
pub(crate) fn exit_code(error: &anyhow::Error) -> u8 {
    match error.downcast_ref::<SweepError>() {
        Some(error) => error.exit_code(),
        None => exit::USAGE,
    }
}

/// What may help.
pub(crate) fn hint(error: &anyhow::Error) -> Option<&'static str> {
    let SweepError::Storage(error) = error.downcast_ref()? else {
        return None;
    };
    let forbidden = "check the key, what the SAS permits, or the roles of the identity";
    exit::hint(error, forbidden)
}

/// Does what was asked; gives the exit code.
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
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    /// What is asked wrongly is refused before any request, with the exit code for usage.
    #[tokio::test]
    async fn what_is_asked_wrongly_is_usage() {
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

    /// Every flag leads to a setting that exists.
    #[test]
    fn every_flag_is_a_setting() {
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
