//! The command `harness bursts`.

use std::cell::RefCell;
use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use indicatif::ProgressBar;
use tokio::time::Instant;

use super::burst::{Failure, History, burst};
use super::judge::Verdict;
use super::plan::{Kind, OPERATIONS, Plan};
use super::report;
use super::shrink::shrink;
use super::threads;
use crate::histories::server::Server;

/// Runs a few clients at once and looks for an order of their calls that explains every answer.
///
/// A burst is 2 to 6 clients with 4 to 8 operations each on the same blob, container or queue, in
/// one moment. Everything runs on one thread, and which client, or which step of the commit path,
/// goes next is drawn from the seed: the same seed gives the same burst and the same schedule.
/// Some calls lose their answer; they may take effect at any time, or never. A burst that no order
/// explains is made smaller, printed, and saved.
///
/// With `--threads` clients run on threads and the state is on disk: less of it, nothing replayed.
#[derive(Clone, Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Options {
    /// First seed.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// How many bursts, from there on.
    #[arg(long, default_value_t = 3_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub bursts: u64,
    /// What they are about; by turns if it is not given.
    #[arg(long, value_enum)]
    pub kind: Option<Kind>,
    /// Clients at once; two to six by turns if it is not given.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=6))]
    pub clients: Option<u64>,
    /// Operations of each client; four to eight by turns if it is not given.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=8))]
    pub operations: Option<u64>,
    /// Bursts at the same time, each on a thread of its own.
    #[arg(long, default_value_t = 1, conflicts_with_all = ["threads", "durable"])]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=64))]
    pub jobs: u64,
    /// Clients on real threads, state on disk.
    #[arg(long)]
    pub threads: bool,
    /// The same, and every answer waits for the disk.
    #[arg(long)]
    pub durable: bool,
    /// Where the history of a burst goes that failed, or that the search gave up on.
    #[arg(long, default_value = "target/bursts")]
    pub save: PathBuf,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            seed: 0,
            bursts: 3_000,
            kind: None,
            clients: None,
            operations: None,
            jobs: 1,
            threads: false,
            durable: false,
            save: PathBuf::from("target/bursts"),
        }
    }
}

impl Options {
    fn plan(&self, seed: u64) -> Plan {
        let number = |given: Option<u64>| given.and_then(|given| usize::try_from(given).ok());
        let kind = match self.on_threads() {
            true => Some(Kind::All),
            false => self.kind,
        };
        // Six clients of eight operations on everything take the search too long.
        let operations =
            number(self.operations).or(self.on_threads().then_some(*OPERATIONS.start()));
        Plan::of(seed, kind, number(self.clients), operations)
    }

    fn save(&self, plan: &Plan, failure: &Failure) -> std::io::Result<PathBuf> {
        let path = self.save.join(format!("seed-{}.ndjson", plan.seed));
        report::save(&path, plan, failure).map(|()| path)
    }

    fn on_threads(&self) -> bool {
        self.threads || self.durable
    }
}

/// At most one burst of so many may be left undecided.
const DECIDED: u64 = 2_000;

/// A burst that failed, made as small as it gets.
pub type Failed = (Plan, Box<Failure>);

/// Runs the command.
///
/// # Errors
/// When the history of a failure cannot be saved.
#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
pub fn run_command(options: &Options) -> anyhow::Result<ExitCode> {
    let bar = match std::io::stderr().is_terminal() {
        true => ProgressBar::new(options.bursts),
        false => ProgressBar::hidden(),
    };
    let begun = Instant::now();
    let outcome = campaign(options, &|| bar.inc(1));
    let rate = options.bursts as f64 / begun.elapsed().as_secs_f64();
    bar.finish_and_clear();
    match outcome {
        Ok(sum) => {
            println!(
                "{} bursts: {} calls, {} done, {} overlaps, {} answers lost, {} entries listed, \
                 {} steps, {rate:.0} bursts/s; {}",
                options.bursts,
                sum.calls,
                sum.done,
                sum.overlaps,
                sum.lost,
                sum.entries,
                sum.steps,
                told(sum.undecided)
            );
            let undecided = sum.undecided as u64;
            Ok(match undecided.saturating_mul(DECIDED) > options.bursts {
                true => ExitCode::FAILURE,
                false => ExitCode::SUCCESS,
            })
        }
        Err(failed) => {
            let (plan, failure) = *failed;
            eprintln!("{}", report::report(&plan, &failure));
            let path = options.save(&plan, &failure)?;
            eprintln!("saved: {}", path.display());
            Ok(ExitCode::FAILURE)
        }
    }
}

fn told(undecided: usize) -> String {
    match undecided {
        0 => "an order explains every one".to_owned(),
        _ => format!("an order explains all but {undecided}, of which the search gave up"),
    }
}

/// Runs the bursts; the first seed that fails stops them.
///
/// # Errors
/// The failing burst with the lowest seed of those that ran, made small.
pub fn campaign(options: &Options, done: &(dyn Fn() + Sync)) -> Result<Verdict, Box<Failed>> {
    if options.jobs <= 1 {
        return in_turn(options, done);
    }
    let next = AtomicU64::new(0);
    let sum = Mutex::new(Verdict::default());
    let failed: Mutex<Option<Failed>> = Mutex::new(None);
    let found = |one: Failed| {
        // Those that are under way come to their ends.
        next.store(options.bursts, Ordering::SeqCst);
        let mut failed = lock(&failed);
        let is_first = failed
            .as_ref()
            .is_none_or(|known| one.0.seed < known.0.seed);
        if is_first {
            *failed = Some(one);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..options.jobs {
            scope.spawn(|| {
                // Whoever held the sum meanwhile would have the others wait for it.
                let verdict = job(options, &next, done, &found);
                lock(&sum).add(verdict);
            });
        }
    });
    let failed = lock(&failed).take();
    match failed {
        None => Ok(*lock(&sum)),
        Some(failed) => Err(Box::new(small(failed))),
    }
}

/// As [`campaign`], on this thread alone.
///
/// # Errors
/// As [`campaign`].
pub fn in_turn(options: &Options, done: &dyn Fn()) -> Result<Verdict, Box<Failed>> {
    if options.on_threads() {
        return on_threads(options, done);
    }
    let next = AtomicU64::new(0);
    let failed = RefCell::new(None);
    let sum = job(options, &next, done, &|one: Failed| {
        next.store(options.bursts, Ordering::SeqCst);
        failed.replace(Some(one));
    });
    match failed.into_inner() {
        None => Ok(sum),
        Some(failed) => Err(Box::new(small(failed))),
    }
}

fn small(failed: Failed) -> Failed {
    let access = Server::access();
    shrink(failed, &mut |plan| burst(plan, &access).err())
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Takes one seed after the other until there is none left.
fn job(options: &Options, next: &AtomicU64, done: &dyn Fn(), found: &dyn Fn(Failed)) -> Verdict {
    let access = Server::access();
    let mut sum = Verdict::default();
    loop {
        let at = next.fetch_add(1, Ordering::SeqCst);
        if at >= options.bursts {
            return sum;
        }
        let plan = options.plan(options.seed + at);
        match burst(&plan, &access) {
            Ok(judged) => count(options, &mut sum, &plan, judged),
            Err(failure) => found((plan, failure)),
        }
        done();
    }
}

/// Adds what came of a burst; one that was not decided is named and saved.
fn count(
    options: &Options,
    sum: &mut Verdict,
    plan: &Plan,
    (verdict, history): (Verdict, History),
) {
    sum.add(verdict);
    if verdict.undecided == 0 {
        return;
    }
    let reason = "the search for an order gave up".to_owned();
    let failure = Failure { reason, history };
    let saved = match options.save(plan, &failure) {
        Ok(path) => format!("saved: {}", path.display()),
        Err(error) => format!("not saved: {error}"),
    };
    eprintln!("seed {}: {}; {saved}", plan.seed, failure.reason);
}

fn on_threads(options: &Options, done: &dyn Fn()) -> Result<Verdict, Box<Failed>> {
    let mut sum = Verdict::default();
    for seed in options.seed..options.seed + options.bursts {
        let plan = options.plan(seed);
        let runtime = threads::runtime();
        let told = match &runtime {
            Ok(runtime) => runtime.block_on(threads::burst(&plan, options.durable)),
            Err(error) => Err(Box::new(Failure {
                reason: error.to_string(),
                history: History::default(),
            })),
        };
        match told {
            Ok(judged) => count(options, &mut sum, &plan, judged),
            Err(failure) => return Err(Box::new((plan, failure))),
        }
        done();
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::servers::files;

    #[test]
    fn what_the_search_gave_up_on_is_counted_and_saved() {
        let dir = tempfile::tempdir().unwrap();
        let options = Options {
            save: dir.path().join("bursts"),
            ..Options::default()
        };
        let (plan, mut sum) = (options.plan(7), Verdict::default());
        let (verdict, history) = burst(&plan, &Server::access()).unwrap();
        let calls = history.calls.len();
        let open = Verdict {
            undecided: 1,
            ..verdict
        };
        count(&options, &mut sum, &plan, (verdict, history.clone()));
        assert!(!options.save.exists());
        count(&options, &mut sum, &plan, (open, history));
        assert_eq!((sum.undecided, sum.calls), (1, 2 * calls));
        let saved = files::text(&options.save.join("seed-7.ndjson")).unwrap();
        assert_eq!(saved.lines().count(), 1 + calls);
        assert!(saved.contains("gave up"), "{saved}");
    }
}
