//! The command `harness check bursts`.

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::process::ExitCode;

use indicatif::ProgressBar;
use tokio::time::Instant;

use super::burst::{Failure, History, burst};
use super::judge::Verdict;
use super::plan::{Kind, OPERATIONS, Plan};
use super::report;
use super::shrink::shrink;
use super::threads;
use crate::check::{Cases, Seeds, exit_code};
use crate::histories::server::Server;
use crate::wire::access::Access;

/// Runs a few clients concurrently and searches for an order of their calls that explains every
/// answer.
///
/// A burst has 2 to 6 clients with 4 to 8 operations each on the same blob, container or queue.
/// Everything runs on one thread; the seed determines which client, or which step of the commit
/// path, runs next, so the same seed gives the same burst and the same schedule. Some calls lose
/// their answer; they may take effect at any time, or never. A burst that no order explains is
/// reduced, printed, and saved.
///
/// With `--threads` clients run on threads and the state is on disk; such bursts are fewer and
/// cannot be repeated.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Options {
    /// Number of bursts; 3,000 by default.
    #[command(flatten)]
    pub cases: Cases,
    /// Kind of bursts; by default each kind in turn.
    #[arg(long, value_enum)]
    pub kind: Option<Kind>,
    /// Number of concurrent clients (1 to 6); by default two to six in turn.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=6))]
    pub clients: Option<u64>,
    /// Operations of each client (1 to 8); by default four to eight in turn.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=8))]
    pub operations: Option<u64>,
    /// Run the clients on threads, with the state on disk.
    #[arg(long)]
    pub threads: bool,
    /// Like `--threads`, with every answer waiting for the disk.
    #[arg(long)]
    pub durable: bool,
}

/// Default number of bursts.
const CASES: u64 = 3_000;

impl Options {
    fn plan(&self, seed: u64) -> Plan {
        let number = |given: Option<u64>| given.and_then(|given| usize::try_from(given).ok());
        let kind = match self.on_threads() {
            true => Some(Kind::All),
            false => self.kind,
        };
        // With six clients of eight operations of every kind, the search takes too long.
        let operations =
            number(self.operations).or(self.on_threads().then_some(*OPERATIONS.start()));
        Plan::of(seed, kind, number(self.clients), operations)
    }

    fn save(&self, plan: &Plan, failure: &Failure) -> std::io::Result<PathBuf> {
        let path = self.cases.file("bursts", plan.seed);
        report::save(&path, plan, failure).map(|()| path)
    }

    /// Returns the seeds of all bursts.
    pub fn seeds(&self) -> Seeds {
        self.cases.seeds(CASES)
    }

    fn on_threads(&self) -> bool {
        self.threads || self.durable
    }
}

/// At most one in this many bursts may stay undecided.
const DECIDED: u64 = 2_000;

/// A failing burst, reduced as far as possible.
pub type Failed = (Plan, Box<Failure>);

/// Runs the command.
pub fn run_command(options: &Options) -> anyhow::Result<ExitCode> {
    let bursts = options.seeds().count;
    let bar = match std::io::stderr().is_terminal() {
        true => ProgressBar::new(bursts),
        false => ProgressBar::hidden(),
    };
    let begun = Instant::now();
    let outcome = campaign(options, &|| bar.inc(1));
    let rate = bursts as f64 / begun.elapsed().as_secs_f64();
    bar.finish_and_clear();
    match outcome {
        Ok(sum) => {
            println!(
                "{} bursts: {} calls, {} done, {} overlaps, {} answers lost, {} entries listed, \
                 {} steps, {rate:.0} bursts/s; {}",
                bursts,
                sum.calls,
                sum.done,
                sum.overlaps,
                sum.lost,
                sum.entries,
                sum.steps,
                told(sum.undecided)
            );
            let undecided = sum.undecided as u64;
            Ok(exit_code(undecided.saturating_mul(DECIDED) <= bursts))
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
        0 => "an order explains every burst".to_owned(),
        _ => format!("an order explains all but {undecided}, for which the search gave up"),
    }
}

/// Runs the bursts; a failure stops them.
///
/// # Errors
/// The failing burst with the lowest seed among those that ran, reduced.
pub fn campaign(options: &Options, done: &(dyn Fn() + Sync)) -> Result<Verdict, Box<Failed>> {
    let one_of = |access: &Access, seed| {
        let judged = one(options, access, seed);
        done();
        judged
    };
    let sum = options.seeds().each(Server::access, one_of, Verdict::add);
    sum.map_err(|(_, failed)| small(options, *failed))
}

/// Like [`campaign`], on this thread only.
///
/// # Errors
/// As [`campaign`].
pub fn in_turn(options: &Options, done: &dyn Fn()) -> Result<Verdict, Box<Failed>> {
    let access = Server::access();
    let mut sum = Verdict::default();
    let seeds = options.seeds();
    for seed in seeds.first..seeds.first + seeds.count {
        let judged = one(options, &access, seed);
        sum.add(judged.map_err(|failed| small(options, *failed))?);
        done();
    }
    Ok(sum)
}

fn one(options: &Options, access: &Access, seed: u64) -> Result<Verdict, Box<Failed>> {
    let plan = options.plan(seed);
    let judged = match options.on_threads() {
        false => burst(&plan, access),
        true => match threads::runtime() {
            Ok(runtime) => runtime.block_on(threads::burst(&plan, options.durable)),
            Err(error) => Err(Box::new(Failure {
                reason: error.to_string(),
                history: History::default(),
            })),
        },
    };
    match judged {
        Ok((verdict, history)) => {
            tell_undecided(options, &plan, verdict, history);
            Ok(verdict)
        }
        Err(failure) => Err(Box::new((plan, failure))),
    }
}

/// Reduces a failing burst; one on threads stays as it is, because it may not fail again.
fn small(options: &Options, failed: Failed) -> Box<Failed> {
    if options.on_threads() {
        return Box::new(failed);
    }
    let access = Server::access();
    Box::new(shrink(failed, &mut |plan| burst(plan, &access).err()))
}

/// Reports and saves an undecided burst.
fn tell_undecided(options: &Options, plan: &Plan, verdict: Verdict, history: History) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::servers::files;

    #[test]
    fn undecided_burst_is_saved() {
        let dir = tempfile::tempdir().unwrap();
        let cases = Cases {
            save: dir.path().join("kept"),
            ..Cases::default()
        };
        let options = Options {
            cases,
            ..Options::default()
        };
        let plan = options.plan(7);
        let (verdict, history) = burst(&plan, &Server::access()).unwrap();
        let calls = history.calls.len();
        let open = Verdict {
            undecided: 1,
            ..verdict
        };
        tell_undecided(&options, &plan, verdict, history.clone());
        assert!(!options.cases.save.exists());
        tell_undecided(&options, &plan, open, history);
        let saved = files::text(&options.cases.file("bursts", 7)).unwrap();
        assert_eq!(saved.lines().count(), 1 + calls);
        assert!(saved.contains("gave up"), "{saved}");
    }
}
