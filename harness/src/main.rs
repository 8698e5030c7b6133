//! The binary `harness`: all checks of the project, one subcommand each.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use smalt_harness::{
    bench, cases, certificate, crash, diff, drivers, facts, interrupt, planted, replay, scenario,
    traces,
};

/// The server uses the same allocator, so in-process measurements are comparable with it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Checks that smalt behaves as Azure Storage does, and measures how fast it is.
#[derive(Parser)]
#[command(name = "harness", version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Replay recorded traffic of the real service and compare every answer.
    Replay(replay::Options),
    /// Compare the table of facts about the real service with recordings, or write it.
    Facts(facts::Options),
    /// Record the traffic between a client and a service as a trace, without secrets.
    Record(traces::Options),
    /// Send the same requests to two services and explain every difference from a ledger.
    Diff(diff::Options),
    /// Run the conformance scenarios against one or more endpoints and write a report.
    Conform(cases::Options),
    /// Run cases generated from seeds and check the results.
    Check(drivers::Options),
    /// The child process that `check crash` kills.
    #[command(hide = true)]
    CrashChild {
        /// Options as JSON.
        options: String,
    },
    /// Write a store in the format of this release, for the tests of later ones, or show the
    /// content of one.
    StoreFixture(crash::FixtureOptions),
    /// Send malformed requests and check each answer.
    Malformed(cases::malformed::Options),
    /// Measure smalt against a bare hyper server and, on request, Azurite.
    Bench(bench::Options),
    /// The bare hyper server that `bench` measures.
    #[command(hide = true)]
    Echo(bench::echo::Options),
    /// Put one blob of each kind into the container `seeded`, as input for the sweeper binary.
    Seed(scenario::SeedOptions),
    /// Switch on each planted bug in turn and verify that a check catches it.
    Planted(planted::Options),
    /// Create a throw-away certificate authority and a server certificate for Azure's host names.
    Certificate(certificate::Certificate),
    /// Print a shared access signature (SAS) of an account.
    Sas(certificate::AccountSas),
}

/// Two for the recordings that are played at a time, and two spare in case a call never returns.
const WORKER_THREADS: usize = 4;
/// The exit code that shells give a command ended by Ctrl-C.
const INTERRUPTED: u8 = 130;

fn main() -> anyhow::Result<ExitCode> {
    match Cli::parse().command {
        Command::Check(options) => {
            drivers::run_command(&options, |run| block_on(unless_interrupted(run)))
        }
        Command::Seed(options) => scenario::put_seed(&options),
        Command::Planted(options) => planted::run_command(&options),
        Command::Certificate(options) => {
            certificate::certificate(&options)?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Sas(options) => {
            println!("{}", certificate::account_sas(&options)?);
            Ok(ExitCode::SUCCESS)
        }
        Command::Replay(options) => block_on(replay::run_command(&options)),
        Command::Facts(options) => facts::run_command(&options),
        Command::Record(options) => block_on(traces::run_command(&options)),
        Command::Diff(options) => block_on(unless_interrupted(diff::run_command(&options))),
        Command::Conform(options) => block_on(cases::run_command(&options)),
        Command::StoreFixture(options) => block_on(crash::run_fixture(&options)),
        Command::CrashChild { options } => block_on(crash::run_child(&options)),
        Command::Malformed(options) => {
            block_on(unless_interrupted(cases::malformed::run_command(&options)))
        }
        Command::Bench(options) => block_on(unless_interrupted(bench::run_command(&options))),
        Command::Echo(options) => block_on(bench::echo::run_command(&options)),
    }
}

/// Drops `run` on an interrupt: child processes end when their handles are dropped, but would
/// survive if this process were killed.
async fn unless_interrupted(
    run: impl Future<Output = anyhow::Result<ExitCode>>,
) -> anyhow::Result<ExitCode> {
    tokio::select! {
        done = run => done,
        asked = interrupt::interrupted() => {
            asked?;
            eprintln!("interrupted; stopped the processes that were started");
            Ok(ExitCode::from(INTERRUPTED))
        }
    }
}

fn block_on(run: impl Future<Output = anyhow::Result<ExitCode>>) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKER_THREADS)
        .enable_all()
        .build()?;
    let code = runtime.block_on(run)?;
    // A call that hangs must not keep the process alive after the report is out.
    runtime.shutdown_background();
    Ok(code)
}
