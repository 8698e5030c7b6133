//! The command `harness histories`.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use indicatif::ProgressBar;
use proptest::strategy::Strategy as _;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use proptest_state_machine::ReferenceStateMachine as _;
use smalt_model::vocabulary::Operation;

use super::coverage::Coverage;
use super::machine::Histories;
use super::run::{Failure, run};
use super::server::Server;

/// Options of `harness histories`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Seed: the same one makes the same histories.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// How many histories.
    #[arg(long, default_value_t = 2_000)]
    histories: u32,
    /// Longest history, in operations.
    #[arg(long, default_value_t = 50)]
    operations: usize,
    /// Keep the state on disk, and stop and start the service in between.
    #[arg(long)]
    restarts: bool,
    /// Print how often each outcome of each operation was reached.
    #[arg(long)]
    coverage: bool,
}

/// Runs the command. Not to be called from within a runtime: every history has its own.
///
/// # Errors
/// When the generator gives up.
pub fn run_command(options: &Options) -> anyhow::Result<ExitCode> {
    let bar = ProgressBar::new(u64::from(options.histories));
    let mut coverage = Coverage::default();
    let outcome = campaign(
        options.seed,
        options.histories,
        options.operations,
        options.restarts,
        &mut coverage,
        &|| bar.inc(1),
    );
    bar.finish_and_clear();
    if options.coverage {
        print!("{coverage}");
    }
    println!(
        "{} operations in histories, {} % done, {} outcomes reached",
        coverage.steps(),
        coverage.done_percent(),
        coverage.cells()
    );
    match outcome {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(report) => {
            eprintln!("{report}");
            Ok(ExitCode::FAILURE)
        }
    }
}

/// Runs histories of a seed; the report of the smallest one that fails.
///
/// # Errors
/// That report.
pub fn campaign(
    seed: u64,
    histories: u32,
    operations: usize,
    restarts: bool,
    coverage: &mut Coverage,
    done: &dyn Fn(),
) -> Result<(), String> {
    let config = Config {
        cases: histories,
        failure_persistence: None,
        max_shrink_iters: 20_000,
        ..Config::default()
    };
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let reached = std::cell::RefCell::new(Coverage::default());
    let judge = |history: &[Operation], seen: Option<Arc<AtomicUsize>>| {
        let mut cells = Coverage::default();
        let judged = one(history, restarts, &mut cells);
        // What comes after the failing step need not be shrunk one by one.
        if let (Err(failure), Some(seen)) = (&judged, seen) {
            seen.store(failure.step + 1, Ordering::SeqCst);
        }
        reached.borrow_mut().add(&cells);
        done();
        judged.map_err(|failure| TestCaseError::fail(failure.difference))
    };
    let strategy = if restarts {
        Histories::<true>::sequential_strategy(1..=operations).boxed()
    } else {
        Histories::<false>::sequential_strategy(1..=operations).boxed()
    };
    let outcome = runner.run(&strategy, |(_, history, seen)| judge(&history, seen));
    coverage.add(&reached.into_inner());
    outcome.map_err(|error| match error {
        TestError::Fail(_, (_, smallest, _)) => report(seed, restarts, &smallest),
        TestError::Abort(reason) => format!("seed {seed}: the generator gave up: {reason}"),
    })
}

/// Runs one history on a fresh server, on a runtime of its own.
///
/// # Errors
/// The step that was answered wrongly.
pub fn one(
    history: &[Operation],
    restarts: bool,
    coverage: &mut Coverage,
) -> Result<(), Box<Failure>> {
    let refused = |difference: String| {
        Box::new(Failure {
            step: 0,
            operation: Operation::Restart,
            difference,
            transcript: String::new(),
        })
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| refused(error.to_string()))?;
    let server = if restarts {
        Server::on_disk(false)
    } else {
        Server::in_memory()
    };
    let server = server.map_err(refused)?;
    runtime
        .block_on(run(server, history, coverage))
        .map_err(Box::new)
}

fn report(seed: u64, restarts: bool, history: &[Operation]) -> String {
    match one(history, restarts, &mut Coverage::default()) {
        Err(failure) => format!(
            "seed {seed}: {} steps, the last one is wrong\n\n{}\n{:?}\n{}",
            history.len(),
            failure.transcript,
            failure.operation,
            failure.difference
        ),
        Ok(()) => format!("seed {seed}: a history failed once, and not again: {history:?}"),
    }
}
