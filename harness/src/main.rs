//! The binary `harness`: every check of the project behind one command line.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use smalt_harness::{
    bench, cases, certificate, crash, diff, drivers, interrupt, planted, replay, scenario, traces,
};

/// That of the server: what is measured beside it, and in this process, has the same.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Proves that smalt behaves as Azure Storage does.
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
    /// Record what a client and a service say to each other, without secrets, as a trace.
    Record(traces::Options),
    /// Ask two services the same, and explain every difference by a ledger.
    Diff(diff::Options),
    /// Run the same scenarios against any endpoint, and show on one page what came of them.
    Conform(cases::Options),
    /// Run cases out of seeds and judge what they show.
    Check(drivers::Options),
    /// The process that `check crash` lets die.
    #[command(hide = true)]
    CrashChild(crash::ChildOptions),
    /// Make a store of this release for the tests of later ones, or show what is in one.
    StoreFixture(crash::FixtureOptions),
    /// Send requests that no client should send, and check each answer.
    Malformed(cases::malformed::Options),
    /// Measure smalt beside a bare hyper server, and beside Azurite.
    Bench(bench::Options),
    /// The bare server of `bench`.
    #[command(hide = true)]
    Echo(bench::echo::Options),
    /// Put one blob of each kind into the container `seeded`, for the sweeper's binary.
    Seed(scenario::SeedOptions),
    /// Switch on one planted bug after the other and see that a check catches it.
    Planted(planted::Options),
    /// Make a throw-away certificate authority and a server certificate for Azure's host names.
    Certificate(certificate::Certificate),
    /// Print a shared access signature of an account.
    Sas(certificate::AccountSas),
}

/// Worker threads: two recordings at a time, and room for a call that never returns.
const WORKER_THREADS: usize = 4;
/// The exit code of a shell's command that Ctrl-C ended.
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
        Command::Record(options) => block_on(traces::run_command(&options)),
        Command::Diff(options) => block_on(unless_interrupted(diff::run_command(&options))),
        Command::Conform(options) => block_on(cases::run_command(&options)),
        Command::StoreFixture(options) => block_on(crash::run_fixture(&options)),
        Command::CrashChild(options) => block_on(crash::run_child(&options)),
        Command::Malformed(options) => {
            block_on(unless_interrupted(cases::malformed::run_command(&options)))
        }
        Command::Bench(options) => block_on(unless_interrupted(bench::run_command(&options))),
        Command::Echo(options) => block_on(bench::echo::run_command(&options)),
    }
}

/// What starts other processes ends them when it is dropped, not when it is killed.
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
