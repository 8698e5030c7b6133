//! The command line: what can be said, and how it is carried out.

mod ambient;
mod bench;
mod cost;
mod dry_run;
mod exit;
mod flags;
mod inspect;
mod listen;
mod notify;
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
mod trigger;
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

use clap::{ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use smalt_listener::config::ConfigError;
use smalt_listener::config::connection::ConnectionLayer;
use smalt_listener::config::file::{ConfigFile, load};
use smalt_worker::access::Auth;
use smalt_worker::log;
use smalt_worker::process::Process;
use smalt_worker::secret::Secret;

use self::flags::WorkFlags;

const EXAMPLES: &str = "\
Examples:
  Show every message of a local emulator's queue, then exit:
    smalt-listener once --connection-string UseDevelopmentStorage=true --queue orders --exec cat

  Put messages, one per line of a file:
    smalt-listener send --queue orders < orders.txt

  Process a queue, ten minutes per message at most, by an HTTP endpoint:
    smalt-listener run --queue orders --http http://127.0.0.1:8080/orders --timeout 10m

  See what waits, and what failed; put back what failed:
    smalt-listener stats --queue orders --watch
    smalt-listener poison list --queue orders
    smalt-listener poison requeue --queue orders --all --dry-run

  See what a file, the environment and the flags come to, before a start; then what they meet:
    smalt-listener validate --config listener.toml
    smalt-listener run --config listener.toml --dry-run

  Everything in a file (flags win over it):
    smalt-listener run --config listener.toml

Exit codes: 0 done or stopped in order, 1 some messages were not handled, 2 usage or configuration,
3 access denied, 4 storage or queue not there, 5 the day's budget is spent, 7 grace time exceeded,
130 second interrupt.";

/// Processes Azure Storage queues with a command or an HTTP endpoint, and scales itself.
#[derive(Parser)]
#[command(name = "smalt-listener", version, after_help = EXAMPLES)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Flags of every command.
#[derive(Args, Clone)]
pub(crate) struct Common {
    /// Configuration file (TOML).
    #[arg(long, global = true, value_name = "FILE", env = "LISTENER_CONFIG")]
    pub(crate) config: Option<String>,
    #[command(flatten)]
    connection: ConnectionFlags,
    /// How log lines are written, to standard error.
    #[arg(long, global = true, default_value = "text", env = "LISTENER_LOG")]
    pub(crate) log: log::Format,
    /// What is logged: error, warn, info, debug, trace, or a filter of tracing.
    /// When absent: info for `run` and `once`, warn for the others.
    #[arg(long, global = true, value_name = "LEVEL", env = "LISTENER_LOG_LEVEL")]
    pub(crate) log_level: Option<String>,
}

/// Which account. A secret may be written as `env:NAME` or `file:/path`.
#[derive(Args, Clone)]
#[command(next_help_heading = "Account")]
struct ConnectionFlags {
    /// Connection string; also from AZURE_STORAGE_CONNECTION_STRING.
    #[arg(long, global = true, value_name = "STRING")]
    connection_string: Option<String>,
    /// Account name.
    #[arg(long, global = true, value_name = "NAME", env = "LISTENER_ACCOUNT")]
    account: Option<String>,
    /// Account key, Base64.
    #[arg(long, global = true, value_name = "KEY", env = "LISTENER_ACCOUNT_KEY")]
    #[arg(hide_env_values = true)]
    account_key: Option<String>,
    /// Shared access signature.
    #[arg(long, global = true, value_name = "SAS", env = "LISTENER_SAS")]
    #[arg(hide_env_values = true, conflicts_with = "account_key")]
    sas: Option<String>,
    /// Open the account by a token of Entra ID, over https.
    #[arg(long, global = true, value_enum, env = "LISTENER_AUTH")]
    #[arg(conflicts_with_all = ["account_key", "sas", "connection_string"])]
    auth: Option<Auth>,
    /// Queue endpoint, when it is not Azure's for the account.
    #[arg(long, global = true, value_name = "URL", env = "LISTENER_ENDPOINT")]
    endpoint: Option<String>,
    /// Certificates (PEM) that are trusted besides the web's authorities.
    #[arg(long, global = true, value_name = "FILE", env = "LISTENER_CA_FILE")]
    ca_file: Option<String>,
    /// Connect here, whatever the endpoint says; name and certificate check stay.
    #[arg(
        long,
        global = true,
        value_name = "HOST:PORT",
        env = "LISTENER_CONNECT_TO"
    )]
    connect_to: Option<String>,
}

impl Common {
    /// The configuration file; an empty one where none is named.
    pub(crate) fn file(&self) -> Result<ConfigFile, ConfigError> {
        match &self.config {
            Some(path) => load(path, &Process),
            None => Ok(ConfigFile::default()),
        }
    }

    /// The account's name, when a flag gives it.
    pub(crate) fn account_flag(&self) -> Option<String> {
        self.connection.account.clone()
    }

    /// The connection flags as a layer over the file.
    pub(crate) fn connection_layer(&self) -> ConnectionLayer {
        let c = self.connection.clone();
        ConnectionLayer {
            connection_string: c.connection_string.as_deref().map(Secret::parse),
            account: c.account,
            account_key: c.account_key.as_deref().map(Secret::parse),
            sas: c.sas.as_deref().map(Secret::parse),
            auth: c.auth.map(Into::into),
            endpoint: c.endpoint,
            ca_file: c.ca_file,
            connect_to: c.connect_to,
            allow_inline_secrets: true,
        }
    }
}

/// What to do.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Process queues until told to stop (SIGTERM, SIGHUP or Ctrl-C drains, a second SIGTERM or
    /// Ctrl-C aborts).
    Run(WorkFlags),
    /// Process queues until they are empty, then exit.
    Once(WorkFlags),
    /// Put messages: from arguments, files, or the lines of standard input.
    Send(send::SendFlags),
    /// Show waiting messages without taking them.
    Peek(inspect::PeekFlags),
    /// Count the messages of a queue and of its poison queue; their age, and how fast they change.
    Stats(stats::StatsFlags),
    /// Look into the poison queue, put messages back, or delete them.
    Poison(poison::PoisonFlags),
    /// Show the queues of a partitioned queue, or change how many there are.
    Partitions(partitions::PartitionFlags),
    /// Wake a listener in another process: after the last message was put.
    Notify(notify::NotifyFlags),
    /// Estimate polling costs, and the throughput of one queue.
    #[command(after_help = cost::EXAMPLES)]
    Cost(cost::CostFlags),
    /// Check flags, environment and file as `run` would take them; show each value's source.
    Validate(validate::ValidateFlags),
    /// Measure this listener beside a bare get/delete loop, on a queue of its own.
    Bench(bench::BenchFlags),
    /// Print a completion script for a shell.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

/// Reads the command line and carries it out.
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
        Command::Run(_) | Command::Once(_) => "info",
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
        Err(error) => return exit::failed(&anyhow::Error::new(error).context("no runtime")),
    };
    let code = match runtime.block_on(carry_out(cli, &matches)) {
        Ok(code) => code,
        Err(error) => exit::failed(&error),
    };
    // Drops what still runs (and with it the handlers' processes), but does not wait for a read of
    // standard input that never ends.
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
