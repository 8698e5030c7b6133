//! The command line: commands, flags shared by all of them, and dispatch.

mod agent;
mod ambient;
mod bench;
mod common;
mod cost;
mod dry_run;
mod exit;
mod flags;
mod inspect;
mod listen;
mod notify;
mod on;
mod partitions;
mod plan;
mod poison;
mod program;
mod progress;
mod send;
mod serve;
mod stats;
mod storage;
mod token;
mod validate;
mod web;

#[cfg(test)]
#[path = "cli/log_tests.rs"]
mod log_tests;
#[cfg(test)]
#[path = "../tests/support/mod.rs"]
mod support;

use std::process::ExitCode;
use std::time::Duration;

use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand};
use smalt_worker::log;

pub(crate) use self::common::Common;
use self::flags::WorkFlags;

const EXAMPLES: &str = "\
Examples:
  Show every message of a local emulator's queue, then exit:
    smalt-listener once --connection-string UseDevelopmentStorage=true --queue orders --exec cat

  Put messages, one per line of a file:
    smalt-listener send --queue orders < orders.txt

  Process a queue with an HTTP endpoint, with at most ten minutes per message:
    smalt-listener run --queue orders --http http://127.0.0.1:8080/orders --timeout 10m

  Watch a queue, list its failed messages, and preview putting them back:
    smalt-listener stats --queue orders --watch
    smalt-listener poison list --queue orders
    smalt-listener poison requeue --queue orders --all --dry-run

  Check the settings of a file, the environment and the flags; then check the account as well:
    smalt-listener validate --config listener.toml
    smalt-listener run --config listener.toml --dry-run

  Take the settings from a file (flags override it):
    smalt-listener run --config listener.toml

Exit codes: 0 done or stopped, 1 some messages were not handled, 2 usage or configuration error,
3 access denied, 4 storage or queue not found, 5 daily budget spent, 7 grace time exceeded,
130 second interrupt.";

/// Processes Azure Storage queues with a command or an HTTP endpoint, and scales the number of
/// tasks with the load.
///
/// Flags override environment variables, which override the configuration file, which overrides the
/// profile. Times need a unit: `500ms`, `90s`, `10m`, `2h`, `7d`.
#[derive(Parser)]
#[command(name = "smalt-listener", version, after_help = EXAMPLES)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Process queues until stopped. SIGTERM, SIGHUP or Ctrl-C finishes the messages in hand and
    /// exits; a second SIGTERM or Ctrl-C aborts.
    Run(WorkFlags),
    /// Process queues until they are empty, then exit.
    Once(WorkFlags),
    /// Put messages from arguments, files or the lines of standard input.
    Send(send::SendFlags),
    /// Show visible messages without receiving them.
    Peek(inspect::PeekFlags),
    /// Count the messages of a queue and of its poison queue; show the oldest age and the rate of
    /// change.
    Stats(stats::StatsFlags),
    /// List, show, requeue or delete the messages of a poison queue.
    Poison(poison::PoisonFlags),
    /// Show the queues of a partitioned queue, or change their number.
    Partitions(partitions::PartitionFlags),
    /// Start and stop instances of a listener by the length of its queue, the age of its oldest
    /// message, and how busy the instances are.
    Agent(agent::AgentFlags),
    /// Wake a listener in another process. Use it after putting the last message.
    Notify(notify::NotifyFlags),
    /// Estimate the monthly cost of polling and the throughput of one queue.
    #[command(after_help = cost::EXAMPLES)]
    Cost(cost::CostFlags),
    /// Check flags, environment and file as `run` does; print each setting with its source.
    Validate(validate::ValidateFlags),
    /// Measure this listener against a bare get/delete loop, on a temporary queue.
    Bench(bench::BenchFlags),
    /// Print a completion script for a shell.
    Completions {
        /// Shell to print the script for.
        shell: clap_complete::Shell,
    },
}

pub(crate) fn main() -> ExitCode {
    let matches = Cli::command().get_matches();
    let cli = match Cli::from_arg_matches(&matches) {
        Ok(cli) => cli,
        Err(error) => error.exit(),
    };
    if let Command::Completions { shell } = cli.command {
        clap_complete::generate(
            shell,
            &mut Cli::command(),
            "smalt-listener",
            &mut std::io::stdout(),
        );
        return ExitCode::SUCCESS;
    }
    let by_default = match cli.command {
        Command::Run(_) | Command::Once(_) | Command::Agent(_) => "info",
        _ => "warn",
    };
    let level = cli.common.log_level.as_deref().unwrap_or(by_default);
    if let Err(error) = log::start(cli.common.log, level) {
        return exit::failed(&error.into());
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return exit::failed(&anyhow::Error::new(error).context("no async runtime")),
    };
    let code = match runtime.block_on(carry_out(cli, &matches)) {
        Ok(code) => code,
        Err(error) => exit::failed(&error),
    };
    // Drops running tasks, and with them the handlers' processes, without waiting for a blocked
    // read of standard input.
    runtime.shutdown_timeout(Duration::from_secs(1));
    code
}

async fn carry_out(cli: Cli, matches: &ArgMatches) -> anyhow::Result<ExitCode> {
    match cli.command {
        Command::Run(flags) => listen::listen(&cli.common, &flags, false).await,
        Command::Once(flags) => listen::listen(&cli.common, &flags, true).await,
        Command::Send(flags) => send::send(&cli.common, flags).await,
        Command::Peek(flags) => inspect::peek(&cli.common, &flags).await,
        Command::Stats(flags) => stats::stats(&cli.common, &flags).await,
        Command::Poison(flags) => poison::poison(&cli.common, &flags).await,
        Command::Partitions(flags) => partitions::show(&cli.common, &flags).await,
        Command::Agent(flags) => agent::agent(&cli.common, flags).await,
        Command::Notify(flags) => notify::notify(&cli.common, &flags).await,
        Command::Cost(flags) => cost::print(&flags).await,
        Command::Validate(flags) => validate::validate(&cli.common, &flags, matches).await,
        Command::Bench(flags) => bench::bench(&cli.common, &flags).await,
        Command::Completions { .. } => Ok(ExitCode::SUCCESS),
    }
}

#[cfg(test)]
#[path = "cli/tests.rs"]
mod tests;
