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
use crate::check::{Cases, Seeds};
use crate::histories::server::Server;
use crate::wire::access::Access;

/// Runs a few clients at once and looks for an order of their calls that explains every answer.
///
/// A burst is 2 to 6 clients with 4 to 8 operations each on the same blob, container or queue, in
/// one moment. Everything runs on one thread, and which client, or which step of the commit path,
/// goes next is drawn from the seed: the same seed gives the same burst and the same schedule.
/// Some calls lose their answer; they may take effect at any time, or never. A burst that no order
/// explains is made smaller, printed, and saved.
///
/// With `--threads` clients run on threads and the state is on disk: less of it, nothing replayed.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Options {
    /// Seeds, 3,000 if it is not given how many.
    #[command(flatten)]
    pub cases: Cases,
    /// What they are about; by turns if it is not given.
    #[arg(long, value_enum)]
    pub kind: Option<Kind>,
    /// Clients at once; two to six by turns if it is not given.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=6))]
    pub clients: Option<u64>,
    /// Operations of each client; four to eight by turns if it is not given.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=8))]
    pub operations: Option<u64>,
    /// Clients on real threads, state on disk.
    #[arg(long)]
    pub threads: bool,
    /// The same, and every answer waits for the disk.
    #[arg(long)]
    pub durable: bool,
}

/// Bursts that are run if it is not given how many.
const CASES: u64 = 3_000;

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
        let path = self.cases.file("bursts", plan.seed);
        report::save(&path, plan, failure).map(|()| path)
    }

    /// The seeds of all bursts.
    pub fn seeds(&self) -> Seeds {
        self.cases.seeds(CASES)
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
            Ok(match undecided.saturating_mul(DECIDED) > bursts {
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

/// Runs the bursts; a failure stops them.
///
/// # Errors
/// The failing burst with the lowest seed of those that ran, made small.
pub fn campaign(options: &Options, done: &(dyn Fn() + Sync)) -> Result<Verdict, Box<Failed>> {
    let one_of = |access: &Access, seed| {
        let judged = one(options, access, seed);
        done();
        judged
    };
    let sum = options.seeds().each(Server::access, one_of, Verdict::add);
    sum.map_err(|(_, failed)| small(options, *failed))
}

/// As [`campaign`], on this thread alone.
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

/// Runs the burst of a seed.
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

/// What runs on threads may not fail again, and stays as it is.
fn small(options: &Options, failed: Failed) -> Box<Failed> {
    if options.on_threads() {
        return Box::new(failed);
    }
    let access = Server::access();
    Box::new(shrink(failed, &mut |plan| burst(plan, &access).err()))
}

/// Names and saves a burst that was not decided.
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
    fn what_the_search_gave_up_on_is_saved() {
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
