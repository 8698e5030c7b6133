//! The commands `harness check sweep`, `harness check listen` and `harness seed`.
#![expect(
    clippy::disallowed_methods,
    reason = "a trace goes to a file; names in a shared service are made unique by the time"
)]

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use anyhow::Context as _;
use smalt_protocol::connection_string::{EMULATOR_ACCOUNT_KEY, EMULATOR_ACCOUNT_NAME};
use smalt_sleeve::{Account, Credential, HyperTransport, HyperTransportSettings};

use super::actor::Actor;
use super::campaign::{self, Run, Scenario};
use super::listen::Listen;
use super::sweep::Sweep;
use super::wire::Service;
use super::world::{self, Engine, World};
use super::{history, seed, sockets};
use crate::check::{self, Cases, exit_code};

/// Options of `harness check sweep` and `harness check listen`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// The seeds to run: by default 200 in process, each run twice, or 3 over sockets, where time
    /// is real. With 200 or more in process, the check also fails when the runs never showed
    /// something that they must show.
    #[command(flatten)]
    cases: Cases,
    /// Storage engine of the emulator that runs in process.
    #[arg(long, value_enum, default_value_t, conflicts_with = "url")]
    engine: Engine,
    /// Write the history of the last case to this file, as NDJSON.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    #[command(flatten)]
    place: Place,
}

/// Options of `harness seed`.
#[derive(Clone, Debug, clap::Args)]
pub struct SeedOptions {
    #[command(flatten)]
    place: Place,
}

/// A service that is reached over sockets.
#[derive(Clone, Debug, clap::Args)]
struct Place {
    /// Test this service: the blob endpoint (sweep, seed) or the queue endpoint (listen), with the
    /// account in the path, such as `http://127.0.0.1:10000/devstoreaccount1`.
    #[arg(long)]
    url: Option<String>,
    /// Connect to this address instead of the URL's; the host name and the certificate check still
    /// follow the URL.
    #[arg(long, value_name = "HOST:PORT", requires = "url")]
    connect_to: Option<std::net::SocketAddr>,
    /// Trust the certificates in this PEM file as well.
    #[arg(long, value_name = "FILE", requires = "url")]
    ca_file: Option<PathBuf>,
    /// Name of the account at `--url`.
    #[arg(long, default_value = EMULATOR_ACCOUNT_NAME)]
    account: String,
    /// Key of the account, in Base64; the emulator's well-known key by default.
    #[arg(long, default_value = EMULATOR_ACCOUNT_KEY, hide_default_value = true)]
    #[arg(env = "SMALT_SCENARIO_KEY", hide_env_values = true)]
    key: String,
}

/// Default number of cases in process.
const CASES: u64 = 200;
/// Default number of cases over sockets.
const CASES_OVER_SOCKETS: u64 = 3;

/// Runs `harness check sweep`. Must not be called from within a runtime: every case has its own.
///
/// # Errors
/// When the service cannot be reached or a file cannot be written.
pub fn run_sweep(options: &Options) -> anyhow::Result<ExitCode> {
    run::<Sweep>(options)
}

/// Runs `harness check listen`; like [`run_sweep`], not from within a runtime.
///
/// # Errors
/// The same as [`run_sweep`].
pub fn run_listen(options: &Options) -> anyhow::Result<ExitCode> {
    run::<Listen>(options)
}

fn run<S: sockets::OverSockets>(options: &Options) -> anyhow::Result<ExitCode> {
    match options.place.url {
        Some(_) => over_sockets::<S>(options),
        None => in_process::<S>(options),
    }
}

fn in_process<S: Scenario>(options: &Options) -> anyhow::Result<ExitCode> {
    let last = Mutex::new(None);
    let seeds = options.cases.seeds(CASES);
    let bar = if std::io::stderr().is_terminal() {
        indicatif::ProgressBar::new(seeds.count)
    } else {
        indicatif::ProgressBar::hidden()
    };
    let summary = campaign::run_cases::<S>(&seeds, options.engine, |run| {
        bar.inc(1);
        if options.trace.is_some() {
            *last.lock().unwrap_or_else(PoisonError::into_inner) = Some(run.clone());
        }
    });
    bar.finish_and_clear();
    let last = last.into_inner().unwrap_or_else(PoisonError::into_inner);
    match summary {
        Ok(summary) => {
            print!("{}", summary.table::<S>());
            write_trace(options, last.as_ref())?;
            let missing = summary.missing::<S>();
            missing
                .iter()
                .for_each(|what| println!("{}: {what}", S::NAME));
            Ok(exit_code(missing.is_empty()))
        }
        Err((seed, failure)) => {
            println!("{}", failure.story);
            if let Some(run) = failure.run {
                let path = options.cases.file(S::NAME, seed);
                check::save(&path, &history::ndjson(&run.history))?;
                println!("saved: {}", path.display());
            }
            Ok(ExitCode::FAILURE)
        }
    }
}

fn over_sockets<S: sockets::OverSockets>(options: &Options) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let since = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    let mut last = None;
    let mut failed = false;
    for seed in
        options.cases.seed..options.cases.seed + options.cases.cases.unwrap_or(CASES_OVER_SOCKETS)
    {
        let name = format!("s{}-{seed}", since.as_millis());
        let world = world_over_sockets(&options.place)?;
        let plan = campaign::plan_of::<S>(seed).map_err(anyhow::Error::msg)?;
        let run = runtime.block_on(S::run_over(&world, &plan, &name));
        let run = run.map_err(anyhow::Error::msg)?;
        for violation in &run.violations {
            failed = true;
            println!("{} seed {seed}: {violation}", S::NAME);
        }
        if !run.violations.is_empty() {
            for (number, event) in run.history.iter().enumerate() {
                println!("{}", history::brief(number, event));
            }
        }
        // The line on which two services must agree.
        println!("{} seed {seed}: {}", S::NAME, S::result(&run));
        last = Some(run);
    }
    write_trace(options, last.as_ref())?;
    Ok(exit_code(!failed))
}

/// Runs `harness seed`: puts one blob of each kind into the container `seeded`.
pub fn put_seed(options: &SeedOptions) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let world = world_over_sockets(&options.place)?;
    let storage = world
        .storage(world::Which::Main, &Actor::owner(), 0)
        .map_err(anyhow::Error::msg)?;
    let put = runtime.block_on(seed::put_all(storage.as_ref(), world.wire.now()));
    println!("seeded {} blobs", put.map_err(anyhow::Error::msg)?);
    Ok(ExitCode::SUCCESS)
}

fn world_over_sockets(place: &Place) -> anyhow::Result<World> {
    let url = place.url.as_deref().unwrap_or_default();
    let credential = Credential::key(&place.key)?;
    let account = Account::new(&place.account, Some(url), Some(url), credential)
        .with_context(|| format!("--url {url}"))?;
    let mut settings = HyperTransportSettings::default();
    if let Some(path) = &place.ca_file {
        settings.extra_ca_pem = std::fs::read(path).with_context(|| path.display().to_string())?;
    }
    if let Some(address) = place.connect_to {
        let parsed: http::Uri = url.parse()?;
        let host = parsed.host().context("--url has no host")?;
        settings.resolve.insert(host.to_owned(), address);
    }
    let transport = HyperTransport::new(settings)?;
    let service = Service::Sockets(transport);
    Ok(World::over_sockets(service, account.clone(), account))
}

fn write_trace(options: &Options, run: Option<&Run>) -> anyhow::Result<()> {
    let (Some(path), Some(run)) = (&options.trace, run) else {
        return Ok(());
    };
    std::fs::write(path, history::ndjson(&run.history)).with_context(|| path.display().to_string())
}
