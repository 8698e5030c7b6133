//! The command `harness check fleet`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use smalt_protocol::connection_string::{EMULATOR_ACCOUNT_KEY, EMULATOR_ACCOUNT_NAME};
use tokio::time::Instant;

use super::account::{Account, Evidence};
use super::handler::Handler;
use super::herd::{Herd, Plan};
use super::ledger::Ledger;
use super::place::{Address, start_smalt};
use super::run::{self, Queues, Times};
use super::sweep;
use crate::check::exit_code;
use crate::servers::smalt::{binary, named_or_beside};

/// Environment variable from which a listener reads the key of its account.
const KEY_VARIABLE: &str = "LISTENER_ACCOUNT_KEY";

/// Options of `harness check fleet`.
#[derive(Clone, Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Options {
    /// Run a fleet of another kind instead of listeners.
    #[command(subcommand)]
    part: Option<Part>,
    /// Number of messages to process.
    #[arg(long, default_value_t = 2_000, value_parser = clap::value_parser!(u64).range(1..))]
    messages: u64,
    /// Number of concurrent listener processes.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=64))]
    processes: u32,
    /// Seed that determines which process is killed when.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Mean time in milliseconds between two kills of a listener process; 0 kills none.
    #[arg(long, default_value_t = 1_500, value_name = "MS")]
    kill_every: u64,
    /// The handler never accepts one in this many messages, so that they become poison; 0 for none.
    #[arg(long, default_value_t = 100, value_name = "N")]
    poison: u64,
    /// Attempts before a message goes to the poison queue.
    #[arg(long, default_value_t = 4, value_name = "N")]
    max_dequeue: u32,
    /// Visibility timeout in seconds of the messages that a listener gets.
    #[arg(long, default_value_t = 5, value_name = "S")]
    visibility: u64,
    /// Give up after this many seconds without progress, and count the remaining messages as left.
    #[arg(long, default_value_t = 60, value_name = "S")]
    patience: u64,
    /// Name of the queue; its poison queue has the suffix `-poison`. Both are cleared first.
    #[arg(long, default_value = "fleet")]
    queue: String,
    /// The `smalt` binary, which runs in durable mode on free ports; by default the one next to
    /// this program.
    #[arg(long, value_name = "FILE", conflicts_with = "endpoint")]
    smalt: Option<PathBuf>,
    /// The `smalt-listener` binary; by default the one next to this program.
    #[arg(long, value_name = "FILE")]
    listener: Option<PathBuf>,
    /// Use this queue service instead of starting smalt. An emulator's endpoint has the account in
    /// its path, such as `http://127.0.0.1:10001/devstoreaccount1`.
    #[arg(long, value_name = "URL")]
    endpoint: Option<String>,
    /// Name of the account at `--endpoint`.
    #[arg(long, default_value = EMULATOR_ACCOUNT_NAME)]
    account: String,
    /// Key of the account, in Base64; the emulator's well-known key by default.
    #[arg(long, default_value = EMULATOR_ACCOUNT_KEY, hide_default_value = true)]
    #[arg(env = "SMALT_FLEET_KEY", hide_env_values = true)]
    key: String,
    /// Trust the certificates in this PEM file as well.
    #[arg(long, value_name = "FILE", requires = "endpoint")]
    ca_file: Option<PathBuf>,
    /// Connect to this address instead of the endpoint's; the host name and the certificate check
    /// still follow the endpoint.
    #[arg(long, value_name = "HOST:PORT", requires = "endpoint")]
    connect_to: Option<SocketAddr>,
}

/// Fleets other than listeners.
#[derive(Clone, Debug, clap::Subcommand)]
enum Part {
    /// Kill sweepers that share a sweep, and account for every blob.
    Sweep(sweep::Options),
}

impl Options {
    fn queues(&self) -> Queues {
        Queues {
            work: self.queue.clone(),
            poison: format!("{}-poison", self.queue),
        }
    }

    fn plan(&self, address: &Address, handler: SocketAddr) -> anyhow::Result<Plan> {
        let mut arguments = vec!["run".to_owned()];
        arguments.extend(address.flags());
        let queues = self.queues();
        for (flag, value) in [
            ("--queue", queues.work),
            ("--poison-queue", queues.poison),
            ("--http", format!("http://{handler}/")),
            ("--visibility", format!("{}s", self.visibility)),
            ("--max-dequeue", self.max_dequeue.to_string()),
            ("--retry", "1s".to_owned()),
            ("--idle-max", "1s".to_owned()),
            ("--encoding", "text".to_owned()),
            ("--log-level", "error".to_owned()),
        ] {
            arguments.extend([flag.to_owned(), value]);
        }
        Ok(Plan {
            binary: named_or_beside(self.listener.as_deref(), "smalt-listener")?,
            arguments,
            environment: vec![(KEY_VARIABLE, address.key.clone())],
            processes: usize::try_from(self.processes)?,
            kill_every: (self.kill_every > 0).then(|| Duration::from_millis(self.kill_every)),
            seed: self.seed,
        })
    }
}

pub(super) fn bar(total: u64, what: &'static str) -> ProgressBar {
    let bar = ProgressBar::new(total);
    let template = "{prefix:6} {bar:30} {pos}/{len} {msg} ({elapsed}, {eta} to go)";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.with_prefix(what)
}

async fn go(options: &Options, address: &Address) -> anyhow::Result<(Evidence, Times)> {
    let queues = options.queues();
    let storage = address.open()?;
    let ledger = Arc::new(Ledger::new(options.poison));
    let handler = Handler::start(ledger.clone()).await?;
    let plan = options.plan(address, handler.address)?;
    run::prepare(storage.as_ref(), &queues).await?;

    let begun = Instant::now();
    let puts = bar(options.messages, "put");
    run::put_all(&storage, &queues.work, options.messages, &ledger, &puts).await?;
    puts.finish_and_clear();
    let put_s = begun.elapsed().as_secs_f64();

    let begun = Instant::now();
    let mut herd = Herd::start(plan)?;
    let patience = Duration::from_secs(options.patience);
    let works = bar(options.messages, "work");
    let notes = (ledger.as_ref(), patience);
    let left = run::work_off(storage.as_ref(), &queues.work, &mut herd, notes, &works).await?;
    works.finish_and_clear();
    let times = Times {
        put_s,
        work_s: begun.elapsed().as_secs_f64(),
        killed: herd.killed,
    };
    run::look_after(&mut herd, &ledger)?;
    herd.end().await?;
    let closing = (ledger.as_ref(), left);
    let evidence = run::close(storage.as_ref(), &queues.poison, closing).await?;
    Ok((evidence, times))
}

/// Runs `harness check fleet`.
pub async fn run_command(options: &Options) -> anyhow::Result<ExitCode> {
    if let Some(Part::Sweep(options)) = &options.part {
        return sweep::run_command(options).await;
    }
    let temporary = tempfile::tempdir()?;
    let (smalt, address) = match &options.endpoint {
        Some(endpoint) => {
            let address = Address {
                endpoint: endpoint.clone(),
                account: options.account.clone(),
                key: options.key.clone(),
                ca_file: options.ca_file.clone(),
                connect_to: options.connect_to,
            };
            (None, address)
        }
        None => {
            let binary = binary(options.smalt.as_deref())?;
            let (smalt, address) = start_smalt(binary, temporary.path()).await?;
            (Some(smalt), address)
        }
    };
    let (evidence, times) = go(options, &address).await?;
    if let Some(smalt) = smalt {
        smalt.process.kill().await?;
    }
    let account = Account::of(&evidence);
    let rate = |count: usize, seconds: f64| count as f64 / seconds.max(f64::EPSILON);
    println!(
        "{} processes, {} killed, seed {}: put {:.0}/s, processed {:.0}/s in {:.1} s",
        options.processes,
        times.killed,
        options.seed,
        rate(account.put, times.put_s),
        rate(account.done + account.quarantined, times.work_s),
        times.work_s,
    );
    println!("{account}");
    Ok(exit_code(account.is_clean()))
}
