//! The binary `harness`: every check of the project behind one command line.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use smalt_harness::{
    bench, bursts, cases, certificate, crash, diff, fleet, histories, interrupt, planted, replay,
    scenario, soak, traces,
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
    /// Kill the server in the middle of work, again and again, and look for what was acknowledged.
    Crash(crash::Options),
    /// The process that `crash` lets die.
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
    /// Run both workers among rivals, faults and crashes, and judge them by their history.
    Scenario(scenario::Options),
    /// Run random histories and compare every answer with the model's.
    Histories(histories::Options),
    /// Run a few clients at once and look for an order of their calls that explains every answer.
    Bursts(bursts::Options),
    /// Work a queue off by listeners that are killed at random, and account for every message.
    Fleet(fleet::Options),
    /// Run clients for long and account for everything that they did.
    Soak(soak::Options),
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
        // Every case has a runtime of its own, with a clock of its own.
        Command::Scenario(options) => scenario::run_command(&options),
        Command::Bursts(options) => bursts::run_command(&options),
        Command::Soak(options) => soak::run_command(&options),
        Command::Histories(options) => histories::run_command(&options),
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
        Command::Crash(options) => block_on(unless_interrupted(crash::run_command(&options))),
        Command::StoreFixture(options) => block_on(crash::run_fixture(&options)),
        Command::CrashChild(options) => block_on(crash::run_child(&options)),
        Command::Fleet(options) => block_on(unless_interrupted(fleet::run_command(&options))),
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
            eprintln!("interrupted: what was started is ended");
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
