//! The command `harness scenario`.
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
use super::bent::Bend;
use super::campaign::{self, Run, Scenario};
use super::listen::Listen;
use super::sweep::Sweep;
use super::wire::Service;
use super::world::{self, World};
use super::{history, seed, sockets};

/// Options of `harness scenario`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    #[command(subcommand)]
    which: Which,
}

#[derive(Clone, Debug, clap::Subcommand)]
enum Which {
    /// The sweeper: blobs expire and move while owners change their minds.
    Sweep(Args),
    /// The listener: messages are handled, retried, poisoned.
    Listen(Args),
    /// Put one blob of each kind into the container `seeded` of --url, for the sweeper's binary.
    Seed(Args),
}

/// What both take.
#[derive(Clone, Debug, clap::Args)]
struct Args {
    /// First seed.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// How many seeds, from there on: 200 in process, each of them run twice; 3 over sockets, where
    /// time is real. From 200 on the campaign fails, too, when it has never seen what it must see.
    #[arg(long, alias = "cases", value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    seeds: Option<u64>,
    /// How many run at a time, each on its thread.
    #[arg(long, default_value_t = 1, value_name = "N")]
    threads: u64,
    /// Write the history of the last case, or of the smallest that fails, to this file as NDJSON.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Run each seed once, and leave a failing plan as it is: for a look at a planted bug.
    #[arg(long, conflicts_with = "url")]
    quick: bool,
    /// Do not run the scenario but show that the properties catch mistakes made on purpose.
    #[arg(long, conflicts_with = "url")]
    bent: bool,
    /// Run against this service: endpoint of blobs (sweep) or queues (listen) with the account in
    /// its path, as http://127.0.0.1:10000/devstoreaccount1.
    #[arg(long)]
    url: Option<String>,
    /// Connect here, whatever the URL says; name and certificate check stay.
    #[arg(long, value_name = "HOST:PORT")]
    connect_to: Option<std::net::SocketAddr>,
    /// Trust these certificates, too (PEM).
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
    /// Its account.
    #[arg(long, default_value = EMULATOR_ACCOUNT_NAME)]
    account: String,
    /// The account's key.
    #[arg(long, default_value = EMULATOR_ACCOUNT_KEY, hide_default_value = true)]
    #[arg(env = "SMALT_SCENARIO_KEY", hide_env_values = true)]
    key: String,
}

/// Cases in process.
const CASES: u64 = 200;
/// Cases over sockets.
const CASES_OVER_SOCKETS: u64 = 3;

/// Runs the command. Not to be called from within a runtime: every case has its own.
///
/// # Errors
/// When a service cannot be reached or a file not be written.
pub fn run_command(options: &Options) -> anyhow::Result<ExitCode> {
    match &options.which {
        Which::Seed(args) => put_seed(args),
        Which::Sweep(args) if args.bent => {
            let bends = [&Bend::OF_THE_SWEEPER[..], &Bend::OF_THE_MOVER[..]].concat();
            Ok(bent::<Sweep>(args, &bends))
        }
        Which::Listen(args) if args.bent => Ok(bent::<Listen>(args, &Bend::OF_THE_LISTENER)),
        Which::Sweep(args) if args.url.is_some() => over_sockets::<Sweep>(args),
        Which::Listen(args) if args.url.is_some() => over_sockets::<Listen>(args),
        Which::Sweep(args) if args.quick => Ok(quick::<Sweep>(args)),
        Which::Listen(args) if args.quick => Ok(quick::<Listen>(args)),
        Which::Sweep(args) => in_process::<Sweep>(args),
        Which::Listen(args) => in_process::<Listen>(args),
    }
}

fn in_process<S: Scenario>(args: &Args) -> anyhow::Result<ExitCode> {
    let last = Mutex::new(None);
    let cases = args.seeds.unwrap_or(CASES);
    let bar = if std::io::stderr().is_terminal() {
        indicatif::ProgressBar::new(cases)
    } else {
        indicatif::ProgressBar::hidden()
    };
    let summary = campaign::run_on_threads::<S>(args.threads, args.seed, cases, |_, run| {
        bar.inc(1);
        if args.trace.is_some() {
            *last.lock().unwrap_or_else(PoisonError::into_inner) = Some(run.clone());
        }
    });
    bar.finish_and_clear();
    let last = last.into_inner().unwrap_or_else(PoisonError::into_inner);
    match summary {
        Ok(summary) => {
            print!("{}", summary.table::<S>());
            write_trace(args, last.as_ref())?;
            let missing = summary.missing::<S>();
            missing
                .iter()
                .for_each(|what| println!("{}: {what}", S::NAME));
            Ok(ExitCode::from(u8::from(!missing.is_empty())))
        }
        Err(failure) => {
            println!("{}", failure.story);
            write_trace(args, failure.run.as_deref())?;
            Ok(ExitCode::FAILURE)
        }
    }
}

fn quick<S: Scenario>(args: &Args) -> ExitCode {
    let cases = args.seeds.unwrap_or(CASES);
    let found = campaign::cases_to_catch::<S>(None, args.seed, cases);
    let text = match &found {
        Ok(None) => format!("{cases} seeds pass"),
        Ok(Some((case, violation))) => format!("seed {case} of them: {violation}"),
        Err(why) => why.clone(),
    };
    println!("{}: {text}", S::NAME);
    ExitCode::from(u8::from(found != Ok(None)))
}

fn bent<S: Scenario>(args: &Args, bends: &[Bend]) -> ExitCode {
    let mut all = true;
    for bend in bends {
        let cases = args.seeds.unwrap_or(CASES);
        match campaign::cases_to_catch::<S>(Some(*bend), args.seed, cases) {
            Ok(Some((case, violation))) => println!("{bend:?}: case {case}: {violation}"),
            Ok(None) => {
                all = false;
                println!("{bend:?}: NOT CAUGHT in {cases} cases");
            }
            Err(why) => {
                all = false;
                println!("{bend:?}: {why}");
            }
        }
    }
    if all {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn over_sockets<S: sockets::OverSockets>(args: &Args) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let since = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    let mut last = None;
    let mut failed = false;
    for seed in args.seed..args.seed + args.seeds.unwrap_or(CASES_OVER_SOCKETS) {
        let name = format!("s{}-{seed}", since.as_millis());
        let world = world_over_sockets(args)?;
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
        // One line per case that two services must agree on.
        println!("{} seed {seed}: {}", S::NAME, S::result(&run));
        last = Some(run);
    }
    write_trace(args, last.as_ref())?;
    Ok(if failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

fn put_seed(args: &Args) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let world = world_over_sockets(args)?;
    let storage = world
        .storage(world::Which::Main, &Actor::owner(), args.seed, None)
        .map_err(anyhow::Error::msg)?;
    let put = runtime.block_on(seed::put_all(storage.as_ref(), world.wire.now()));
    println!("seeded {} blobs", put.map_err(anyhow::Error::msg)?);
    Ok(ExitCode::SUCCESS)
}

fn world_over_sockets(args: &Args) -> anyhow::Result<World> {
    let url = args.url.as_deref().unwrap_or_default();
    let credential = Credential::key(&args.key)?;
    let account = Account::new(&args.account, Some(url), Some(url), credential)
        .with_context(|| format!("--url {url}"))?;
    let mut settings = HyperTransportSettings::default();
    if let Some(path) = &args.ca_file {
        settings.extra_ca_pem = std::fs::read(path).with_context(|| path.display().to_string())?;
    }
    if let Some(address) = args.connect_to {
        let parsed: http::Uri = url.parse()?;
        let host = parsed.host().context("--url has no host")?;
        settings.resolve.insert(host.to_owned(), address);
    }
    let transport = HyperTransport::new(settings)?;
    let service = Service::Sockets(transport);
    Ok(World::over_sockets(service, account.clone(), account))
}

fn write_trace(args: &Args, run: Option<&Run>) -> anyhow::Result<()> {
    let (Some(path), Some(run)) = (&args.trace, run) else {
        return Ok(());
    };
    std::fs::write(path, history::ndjson(&run.history)).with_context(|| path.display().to_string())
}
