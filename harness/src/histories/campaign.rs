//! Many histories of one seed, in rounds: each round targets what the earlier ones did not reach.

use std::cell::RefCell;
use std::fmt::{self, Display};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use proptest_state_machine::ReferenceStateMachine as _;
use smalt_model::outcomes::Cell;
use tokio::runtime::Runtime;

use super::coverage::Coverage;
use super::failure::Failed;
use super::generate::{Space, Step};
use super::machine::{Histories, aim};
use super::run::{Failure, Judging, run};
use super::server::Server;
use super::shrink;

/// Number of histories in a round.
const ROUND: u32 = 250;
/// Maximum number of histories that proptest may run to shrink a failure.
const SHRINK_MAX: u32 = 3_000;

/// The kind of histories.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum About {
    /// Containers, blobs and queues.
    Account,
    /// Tables and entities.
    Tables,
    /// A hierarchical account, through both of its interfaces.
    Lake,
}

impl About {
    fn of(cell: &Cell) -> Self {
        match (cell.is_of_tables(), cell.is_of_lake()) {
            (true, _) => About::Tables,
            (_, true) => About::Lake,
            _ => About::Account,
        }
    }

    fn server(self, restarts: bool) -> Result<Server, String> {
        let server = server(restarts)?;
        match self {
            About::Lake => server.lake(),
            About::Account | About::Tables => Ok(server),
        }
    }

    /// Returns the space of such histories.
    pub fn space(self, restarts: bool) -> Space {
        let space = match self {
            About::Account => Space::HISTORY,
            About::Tables => Space::TABLES,
            About::Lake => Space::LAKE,
        };
        space.restarting(restarts)
    }
}

/// The parameters of a campaign.
#[derive(Clone, Copy, Debug)]
pub struct Campaign {
    /// Kind of its histories.
    pub about: About,
    /// Seed, which determines the histories.
    pub seed: u64,
    /// Number of histories.
    pub histories: u32,
    /// Maximum length of a history, in operations.
    pub operations: usize,
    /// Whether the state is on disk and histories restart the service.
    pub restarts: bool,
    /// Number of operations after which invariants are checked, besides the end.
    pub invariants_every: usize,
    /// Runs only the generator and the model, without a service.
    pub dry: bool,
}

/// The speed of a campaign.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pace {
    /// Number of operations in histories, without those of invariants.
    pub operations: u64,
    /// Total time.
    pub whole: Duration,
}

/// The results of a campaign.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The cells of the matrix that were reached.
    pub coverage: Coverage,
    /// Number of histories that ran.
    pub histories: u32,
    /// The reduced failing history, or why not all histories could run.
    pub failed: Option<Failed>,
    /// Speed of the campaign.
    pub pace: Pace,
}

/// Results of a round so far.
#[derive(Default)]
struct Round {
    coverage: Coverage,
    histories: u32,
    has_failed: bool,
}

impl Campaign {
    /// Runs the campaign on this thread.
    pub fn run(&self, done: &dyn Fn()) -> Outcome {
        let begun = tokio::time::Instant::now();
        let mut outcome = Outcome::default();
        let mut left = self.histories;
        let mut number = 0;
        while left > 0 && outcome.failed.is_none() {
            // The first round shows what is reached without targets.
            let wishes = match left == self.histories {
                true => Vec::new(),
                false => self.wishes(&outcome.coverage),
            };
            aim(self.about.space(self.restarts), wishes);
            let mut runner = self.runner(number, left.min(ROUND));
            outcome.failed = self.round(&mut runner, &mut outcome, done);
            left = left.saturating_sub(ROUND);
            number += 1;
        }
        outcome.pace = Pace {
            operations: outcome.coverage.steps(),
            whole: begun.elapsed(),
        };
        outcome
    }

    /// Returns the cells that histories should target.
    fn wishes(&self, coverage: &Coverage) -> Vec<Cell> {
        let mut unreached = coverage.unreached();
        unreached.retain(|cell| About::of(cell) == self.about);
        unreached
    }

    fn runner(&self, round: u64, cases: u32) -> TestRunner {
        let config = Config {
            cases,
            failure_persistence: None,
            max_shrink_iters: SHRINK_MAX,
            ..Config::default()
        };
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&self.seed.to_le_bytes());
        bytes[8..16].copy_from_slice(&round.to_le_bytes());
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
        TestRunner::new_with_rng(config, rng)
    }

    /// Runs the campaign on several threads.
    pub fn run_jobs(&self, jobs: u64, done: &(dyn Fn() + Sync)) -> Outcome {
        let jobs = u32::try_from(jobs).unwrap_or(1).min(self.histories.max(1));
        let begun = tokio::time::Instant::now();
        let job = |number: u32| Campaign {
            seed: self.seed + (u64::from(number) << 32),
            histories: self.histories / jobs + u32::from(number < self.histories % jobs),
            ..*self
        };
        let outcomes: Vec<Outcome> = std::thread::scope(|scope| {
            let start = |number| scope.spawn(move || job(number).run(done));
            let threads: Vec<_> = (0..jobs).map(start).collect();
            let ended = threads.into_iter().map(std::thread::ScopedJoinHandle::join);
            ended
                .map(|job| job.unwrap_or_else(|_| self.gave_up()))
                .collect()
        });
        let mut all = Outcome::default();
        for outcome in outcomes {
            all.coverage.add(&outcome.coverage);
            all.histories += outcome.histories;
            all.failed = all.failed.or(outcome.failed);
        }
        if all.failed.is_none() && all.histories != self.histories {
            let why = format!("{} of {} histories ran", all.histories, self.histories);
            all.failed = Some(Failed::before(self.seed, why));
        }
        all.pace = Pace {
            operations: all.coverage.steps(),
            whole: begun.elapsed(),
        };
        all
    }

    /// Returns the outcome of a job that panicked, whose findings are lost.
    fn gave_up(&self) -> Outcome {
        let why = "a thread of the campaign panicked".to_owned();
        Outcome {
            failed: Some(Failed::before(self.seed, why)),
            ..Outcome::default()
        }
    }

    fn round(&self, runner: &mut TestRunner, all: &mut Outcome, done: &dyn Fn()) -> Option<Failed> {
        let runtime = match runtime() {
            Ok(runtime) => runtime,
            Err(error) => return Some(Failed::before(self.seed, error)),
        };
        let reached = RefCell::new(Round::default());
        let judge = |history: &[Step], seen: Option<Arc<AtomicUsize>>| {
            let mut cells = Coverage::default();
            let judged = self.one(&runtime, history, &mut cells);
            // Steps after the failing one need not be shrunk one by one.
            if let (Err(failure), Some(seen)) = (&judged, seen) {
                seen.store(failure.step + 1, Ordering::SeqCst);
            }
            let round = &mut *reached.borrow_mut();
            // Histories that run during shrinking do not count.
            if !round.has_failed {
                round.coverage.add(&cells);
                round.histories += 1;
                done();
            }
            round.has_failed |= judged.is_err();
            let told = judged.map(drop);
            told.map_err(|failure| TestCaseError::fail(failure.difference.clone()))
        };
        let outcome = runner.run(
            &Histories::sequential_strategy(1..=self.operations),
            |(_, history, seen)| judge(&history, seen),
        );
        let round = reached.into_inner();
        all.coverage.add(&round.coverage);
        all.histories += round.histories;
        match outcome {
            Ok(()) => None,
            Err(TestError::Fail(reason, (_, history, _))) => {
                Some(self.smallest(&runtime, history, reason.message()))
            }
            Err(TestError::Abort(reason)) => Some(Failed::before(
                self.seed,
                format!("the generator gave up: {reason}"),
            )),
        }
    }

    /// Opens a fresh server.
    pub fn server(&self) -> Result<Server, String> {
        self.about.server(self.restarts)
    }

    /// Runs one history on a fresh server.
    ///
    /// # Errors
    /// The step with a wrong answer.
    fn one(
        &self,
        runtime: &Runtime,
        history: &[Step],
        coverage: &mut Coverage,
    ) -> Result<Arc<Server>, Box<Failure>> {
        let judging = Judging {
            every: self.invariants_every,
            dry: self.dry,
        };
        let server = self
            .server()
            .map_err(|error| Box::new(Failure::before(error)))?;
        runtime
            .block_on(run(server, history, judging, coverage))
            .map_err(Box::new)
    }

    /// Shrinks what proptest left of a failing history, and runs the result once more.
    fn smallest(&self, runtime: &Runtime, history: Vec<Step>, difference: &str) -> Failed {
        let fails = |history: &[Step], invariants_every| {
            let one = Campaign {
                invariants_every,
                ..*self
            };
            let judged = one.one(runtime, history, &mut Coverage::default());
            judged.err().map(|failure| failure.step + 1)
        };
        // The requests of the invariants themselves can hide the flaw.
        let every = match fails(&history, 1) {
            Some(_) => 1,
            None => self.invariants_every,
        };
        let history = shrink::smallest(history, &|history| fails(history, every));
        Failed::of(self, runtime, history, every)
            .unwrap_or_else(|history| Failed::only_once(self.seed, history, difference))
    }
}

/// Number of operations between checks of the invariants in a single history.
const EVERY: usize = 5;

/// Runs one history on a fresh server, on its own runtime.
///
/// # Errors
/// The step with a wrong answer.
pub fn one(
    about: About,
    history: &[Step],
    restarts: bool,
    coverage: &mut Coverage,
) -> Result<(), Box<Failure>> {
    let before = |error| Box::new(Failure::before(error));
    let runtime = runtime().map_err(before)?;
    let judging = Judging {
        every: EVERY,
        dry: false,
    };
    let server = about.server(restarts).map_err(before)?;
    let judged = runtime.block_on(run(server, history, judging, coverage));
    judged.map(drop).map_err(Box::new)
}

/// Opens a fresh server.
pub fn server(restarts: bool) -> Result<Server, String> {
    if restarts {
        Server::on_disk(false)
    } else {
        Server::in_memory()
    }
}

/// Creates a runtime for histories.
pub fn runtime() -> Result<Runtime, String> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let built = builder.enable_all().build();
    built.map_err(|error| error.to_string())
}

impl Display for Pace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.whole.as_secs_f64();
        let pace = self.operations as f64 / seconds.max(0.001);
        write!(f, "{seconds:.1} s, {pace:.0} operations a second")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A job that gives up has run nothing, so the campaign must not succeed.
    #[test]
    fn panicking_job_is_a_failure() {
        let campaign = Campaign {
            about: About::Account,
            seed: 0,
            histories: 4,
            // A history of length 0 cannot exist, so the generator panics.
            operations: 0,
            restarts: false,
            invariants_every: 1,
            dry: true,
        };
        for jobs in [1, 2] {
            let outcome = campaign.run_jobs(jobs, &|| ());
            assert!(outcome.failed.is_some(), "{jobs}");
        }
    }
}
