//! The command line: what can be said, and how it is carried out.

mod ambient;
mod exit;
mod inspect;
mod listen;
mod log;
mod send;
mod signals;
mod storage;

use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use smalt_listener::config::Policy;
use smalt_listener::config::connection::ConnectionLayer;
use smalt_listener::config::duration;
use smalt_listener::config::file::{HandlerLayer, IdleLayer, PoisonLayer, QueueLayer, TasksLayer};
use smalt_listener::config::idle_tasks::IdleTasks;
use smalt_listener::handler::exec::CommandLine;

const EXAMPLES: &str = "\
Examples:
  Show every message of a local emulator's queue, then exit:
    smalt-listener once --connection-string UseDevelopmentStorage=true --queue orders --exec cat

  Put messages, one per line of a file:
    smalt-listener send --queue orders < orders.txt

  Work a queue off for good, ten minutes per message at most, by an HTTP endpoint:
    smalt-listener run --queue orders --http http://127.0.0.1:8080/orders --timeout 10m

  See what waits, and what failed:
    smalt-listener stats --queue orders
    smalt-listener peek --queue orders-poison --count 5

  Everything in a file (flags win over it):
    smalt-listener run --config listener.toml

Exit codes: 0 done or stopped in order, 1 some messages were not handled, 2 usage or configuration,
3 access denied, 4 storage or queue not there, 7 grace time exceeded, 130 second interrupt.";

/// Works Azure Storage queues off with a command or an HTTP endpoint, scaling itself.
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
    pub(crate) log: LogFormat,
    /// What is logged: error, warn, info, debug, trace, or a filter of tracing.
    #[arg(
        long,
        global = true,
        default_value = "info",
        env = "LISTENER_LOG_LEVEL"
    )]
    pub(crate) log_level: String,
}

/// How log lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// One JSON object per line.
    Json,
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
    /// The connection flags as a layer over the file.
    pub(crate) fn connection_layer(&self) -> ConnectionLayer {
        let c = self.connection.clone();
        ConnectionLayer {
            connection_string: c.connection_string,
            account: c.account,
            account_key: c.account_key,
            sas: c.sas,
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
    /// Work queues off until told to stop (SIGTERM or Ctrl-C drains, a second one aborts).
    Run(ListenFlags),
    /// Work queues off until they are empty, then exit.
    Once(ListenFlags),
    /// Put messages: from arguments, files, or the lines of standard input.
    Send(send::SendFlags),
    /// Show waiting messages without taking them.
    Peek(inspect::PeekFlags),
    /// Count the messages of a queue and of its poison queue.
    Stats(inspect::StatsFlags),
    /// Print a completion script for a shell.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

/// How the body is written into the text of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Encoding {
    /// As it is.
    Text,
    /// Base64, as several SDKs do by default.
    Base64,
}

impl From<Encoding> for smalt_listener::config::Encoding {
    fn from(encoding: Encoding) -> Self {
        match encoding {
            Encoding::Text => Self::Text,
            Encoding::Base64 => Self::Base64,
        }
    }
}

/// How the number of tasks is chosen.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum PolicyFlag {
    /// Little's law.
    Little,
    /// Fixed steps by depth.
    Seed,
    /// Always the most.
    Fixed,
    /// Additive increase, multiplicative decrease.
    Aimd,
}

/// Flags of `run` and `once`.
#[derive(Args, Clone)]
pub(crate) struct ListenFlags {
    /// Queue to work off; with a file, only this one of its queues. May be repeated.
    #[arg(
        long,
        value_name = "NAME",
        env = "LISTENER_QUEUE",
        value_delimiter = ','
    )]
    pub(crate) queue: Vec<String>,
    /// Command per message: body on standard input, facts in MSG_*; exit 0 ok, 65 reject, else
    /// retry.
    #[arg(
        long,
        value_name = "COMMAND",
        env = "LISTENER_EXEC",
        conflicts_with = "http"
    )]
    exec: Option<String>,
    /// URL to post each message to: 2xx ok, 409 and 422 reject, 429 and 503 retry.
    #[arg(long, value_name = "URL", env = "LISTENER_HTTP")]
    http: Option<String>,
    /// Most time for one message.
    #[arg(long, value_name = "TIME", env = "LISTENER_TIMEOUT", value_parser = duration::parse)]
    timeout: Option<Duration>,
    /// How long a taken message is hidden at a time; renewed at half.
    #[arg(long, value_name = "TIME", env = "LISTENER_VISIBILITY", value_parser = duration::parse)]
    visibility: Option<Duration>,
    /// Attempts before a message goes to the poison queue.
    #[arg(long, value_name = "N", env = "LISTENER_MAX_DEQUEUE")]
    max_dequeue: Option<u32>,
    /// Delays before further attempts, like 1s,10s,1m.
    #[arg(
        long,
        value_name = "TIMES",
        env = "LISTENER_RETRY",
        value_delimiter = ','
    )]
    #[arg(value_parser = duration::parse)]
    retry: Option<Vec<Duration>>,
    /// Poison queue; by default the queue's name with -poison.
    #[arg(long, value_name = "NAME", env = "LISTENER_POISON_QUEUE")]
    poison_queue: Option<String>,
    /// How bodies are written into messages.
    #[arg(long, env = "LISTENER_ENCODING")]
    encoding: Option<Encoding>,
    /// Create the queue when it is missing.
    #[arg(long, env = "LISTENER_CREATE_QUEUE", num_args = 0..=1, default_missing_value = "true")]
    create_queue: Option<bool>,
    #[command(flatten)]
    scale: ScaleFlags,
}

#[derive(Args, Clone)]
#[command(next_help_heading = "Scale")]
struct ScaleFlags {
    /// Fewest dequeue tasks while there is work.
    #[arg(long, value_name = "N", env = "LISTENER_TASKS_MIN")]
    tasks_min: Option<u32>,
    /// Most dequeue tasks.
    #[arg(long, value_name = "N", env = "LISTENER_TASKS_MAX")]
    tasks_max: Option<u32>,
    /// Messages that one task handles at once (1 to 32).
    #[arg(long, value_name = "N", env = "LISTENER_SLOTS")]
    slots: Option<u32>,
    /// Tasks that go on polling while idle; 0 leaves only the watchdog, `sentinel` one poller for
    /// the whole fleet.
    #[arg(long, value_name = "N", env = "LISTENER_IDLE_TASKS")]
    idle_tasks: Option<IdleTasks>,
    /// Longest idle interval.
    #[arg(long, value_name = "TIME", env = "LISTENER_IDLE_MAX", value_parser = duration::parse)]
    idle_max: Option<Duration>,
    /// How the number of tasks is chosen.
    #[arg(long, env = "LISTENER_POLICY")]
    policy: Option<PolicyFlag>,
    /// Most requests per second to the queue.
    #[arg(long, value_name = "N", env = "LISTENER_RATE")]
    rate: Option<u32>,
    /// Most time for running handlers after the order to stop.
    #[arg(long, value_name = "TIME", env = "LISTENER_GRACE", value_parser = duration::parse)]
    grace: Option<Duration>,
    /// Name of this worker in logs and requests.
    #[arg(long, value_name = "NAME", env = "LISTENER_WORKER_ID")]
    worker_id: Option<String>,
    /// Seed of all randomness.
    #[arg(long, value_name = "N", env = "LISTENER_SEED")]
    seed: Option<u64>,
}

impl ListenFlags {
    /// The flags as a layer over the file.
    fn layer(&self) -> QueueLayer {
        let human = |d: Option<Duration>| d.map(duration::Human);
        let s = &self.scale;
        QueueLayer {
            visibility: human(self.visibility),
            max_dequeue: self.max_dequeue,
            retry: self
                .retry
                .as_ref()
                .map(|delays| delays.iter().copied().map(duration::Human).collect()),
            idle: IdleLayer {
                min: None,
                max: human(s.idle_max),
            },
            tasks: TasksLayer {
                min: s.tasks_min,
                max: s.tasks_max,
            },
            slots: s.slots,
            idle_tasks: s.idle_tasks,
            policy: s.policy.map(|policy| match policy {
                PolicyFlag::Little => Policy::Little,
                PolicyFlag::Seed => Policy::Seed,
                PolicyFlag::Fixed => Policy::Fixed,
                PolicyFlag::Aimd => Policy::Aimd,
            }),
            rate: s.rate,
            poison: PoisonLayer {
                queue: self.poison_queue.clone(),
            },
            encoding: self.encoding.map(Into::into),
            create_queue: self.create_queue,
            handler: HandlerLayer {
                exec: self.exec.clone().map(CommandLine::Shell),
                http: self.http.clone(),
                timeout: human(self.timeout),
                ..HandlerLayer::default()
            },
            ..QueueLayer::default()
        }
    }
}

/// Reads the command line and carries it out.
pub(crate) fn main() -> ExitCode {
    let cli = Cli::parse();
    if let Command::Completions { shell } = cli.command {
        clap_complete::generate(
            shell,
            &mut Cli::command(),
            "smalt-listener",
            &mut std::io::stdout(),
        );
        return ExitCode::SUCCESS;
    }
    if let Err(error) = log::init(&cli.common) {
        return exit::failed(&error);
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return exit::failed(&anyhow::Error::new(error).context("no runtime")),
    };
    let code = match runtime.block_on(carry_out(cli)) {
        Ok(code) => code,
        Err(error) => exit::failed(&error),
    };
    // Drops what still runs (and with it the handlers' processes), but does not wait for a read of
    // standard input that never ends.
    runtime.shutdown_timeout(Duration::from_secs(1));
    code
}

async fn carry_out(cli: Cli) -> anyhow::Result<ExitCode> {
    match cli.command {
        Command::Run(flags) => listen::listen(&cli.common, &flags, false).await,
        Command::Once(flags) => listen::listen(&cli.common, &flags, true).await,
        Command::Send(flags) => send::send(&cli.common, flags).await,
        Command::Peek(flags) => inspect::peek(&cli.common, &flags).await,
        Command::Stats(flags) => inspect::stats(&cli.common, &flags).await,
        Command::Completions { .. } => Ok(ExitCode::SUCCESS),
    }
}

#[cfg(test)]
#[path = "cli/tests.rs"]
mod tests;
