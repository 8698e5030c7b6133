//! Many runs of one scenario: plans from seeds, checks of each run, and shrinking of failing plans.

use std::fmt::{self, Debug, Write as _};

use proptest::strategy::{BoxedStrategy, Strategy as _, ValueTree as _};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::account::Tally;
use super::history::{self, Event};
use super::marks::{self, Marks};
use super::world::Engine;
use crate::check::Seeds;

/// Most attempts to shrink a failing plan.
const SHRINKS_MAX: usize = 100;
/// Most events of these attempts together: a worker in an endless loop makes each attempt long.
const SHRINK_EVENTS_MAX: usize = 200_000;
/// Events of the history that a failure prints.
const EVENTS_SHOWN: usize = 40;

/// A property that a run breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Identifier of the property, such as `SS1` or `LS3`.
    pub property: &'static str,
    /// What happened instead.
    pub what: String,
    /// Index of the event in the history, if the violation has one.
    pub at: Option<usize>,
}

impl Violation {
    /// Creates a violation at an index of the history.
    pub fn at(property: &'static str, number: usize, what: impl Into<String>) -> Self {
        Violation {
            property,
            what: what.into(),
            at: Some(number),
        }
    }

    /// Creates a violation of the whole run.
    pub fn of_run(property: &'static str, what: impl Into<String>) -> Self {
        Violation {
            property,
            what: what.into(),
            at: None,
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.property, self.what)?;
        match self.at {
            Some(number) => write!(f, " (event {number})"),
            None => Ok(()),
        }
    }
}

/// Result of one run.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// All events, in the order of their execution.
    pub history: Vec<Event>,
    /// The properties that do not hold.
    pub violations: Vec<Violation>,
    /// Counts of the planned faults.
    pub faults: Tally,
    /// Counts of what happened, for the marks that a campaign must have seen.
    pub marks: Marks,
}

/// A failure to print.
#[derive(Clone, Debug, Default)]
pub struct Failure {
    /// Description of the failure, with the command that replays it.
    pub story: String,
    /// The smallest run that fails; `None` when the failure has none.
    pub run: Option<Box<Run>>,
}

impl From<String> for Failure {
    fn from(story: String) -> Self {
        Failure { story, run: None }
    }
}

/// A scenario: how it plans, runs and checks.
pub trait Scenario {
    /// A plan that a seed determines.
    type Plan: Debug + Clone;
    /// Name on the command line.
    const NAME: &'static str;
    /// Marks that a campaign of [`marks::CASES_MIN`] runs must have seen.
    const SOMETIMES: &'static [&'static str];
    /// Returns the strategy that generates plans.
    fn plans() -> BoxedStrategy<Self::Plan>;
    /// Runs a plan in process on its own virtual clock.
    fn run(plan: &Self::Plan, engine: Engine) -> Run;
}

/// Result of a campaign.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Number of plans; each was run twice.
    pub cases: u64,
    /// Number of events over all runs.
    pub events: u64,
    /// Counts of the planned faults over all runs.
    pub faults: Tally,
    /// Counts of what was seen over all runs.
    pub marks: Marks,
}

impl Summary {
    /// Adds one run.
    pub fn count(&mut self, run: &Run) {
        self.add(&Summary {
            cases: 1,
            events: run.history.len() as u64,
            faults: run.faults.clone(),
            marks: run.marks.clone(),
        });
    }

    /// Adds another part of the campaign.
    pub fn add(&mut self, other: &Summary) {
        self.cases += other.cases;
        self.events += other.events;
        self.faults.add(&other.faults);
        for (mark, count) in &other.marks {
            *self.marks.entry(mark).or_default() += count;
        }
    }

    /// Returns what a campaign of this length should have seen but has not.
    pub fn missing<S: Scenario>(&self) -> Vec<String> {
        marks::missing(S::SOMETIMES, self.cases, &self.marks, &self.faults)
    }

    /// Formats what was seen, and the counts of the faults, as a table.
    pub fn table<S: Scenario>(&self) -> String {
        let head = format!(
            "{}: {} seeds, {} events\n",
            S::NAME,
            self.cases,
            self.events
        );
        let marks = marks::table(S::SOMETIMES, &self.marks);
        format!("{head}{marks}{}", self.faults)
    }
}

/// Returns the plan of a seed.
pub fn plan_of<S: Scenario>(seed: u64) -> Result<S::Plan, String> {
    Ok(tree::<S>(seed)?.current())
}

fn tree<S: Scenario>(
    seed: u64,
) -> Result<Box<dyn proptest::strategy::ValueTree<Value = S::Plan>>, String> {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    S::plans()
        .new_tree(&mut runner)
        .map_err(|reason| format!("no plan from seed {seed}: {reason}"))
}

/// Runs the plan of one seed, twice if `twice`: both histories must be equal to the byte.
///
/// # Errors
/// The first violation, with the shrunk plan and the command that replays it.
pub fn run_seed<S: Scenario>(seed: u64, engine: Engine, twice: bool) -> Result<Run, Failure> {
    let plan = plan_of::<S>(seed)?;
    let run = S::run(&plan, engine);
    if !run.violations.is_empty() {
        return Err(shrink::<S>(seed, engine)?);
    }
    if twice {
        let again = S::run(&plan, engine);
        compare(&run.history, &again.history).map_err(|difference| {
            let replay = replay::<S>(seed, engine);
            format!("seed {seed} ran differently the second time ({replay}):\n{difference}")
        })?;
    }
    Ok(run)
}

/// Runs all cases of `seeds` and passes each run to `progress`.
///
/// # Errors
/// The lowest seed that failed, and its failure.
pub fn run_cases<S: Scenario>(
    seeds: &Seeds,
    engine: Engine,
    progress: impl Fn(&Run) + Sync,
) -> Result<Summary, (u64, Failure)> {
    let one = |(): &(), seed| {
        let run = run_seed::<S>(seed, engine, true)?;
        progress(&run);
        let mut summary = Summary::default();
        summary.count(&run);
        Ok(summary)
    };
    seeds.each(|| (), one, |sum, summary| sum.add(&summary))
}

/// Compares two histories. Returns the first line that differs.
fn compare(one: &[Event], other: &[Event]) -> Result<(), String> {
    // The trace depends on the events alone: equal events give equal bytes.
    if one == other {
        return Ok(());
    }
    let (one, other) = (history::ndjson(one), history::ndjson(other));
    let mut lines = one.lines().zip(other.lines()).enumerate();
    Err(match lines.find(|(_, (a, b))| a != b) {
        Some((at, (a, b))) => format!("event {at}\nfirst:  {a}\nsecond: {b}"),
        None => "one run ended earlier".to_owned(),
    })
}

/// Shrinks the failing plan of a seed as far as possible, and describes its run.
fn shrink<S: Scenario>(seed: u64, engine: Engine) -> Result<Failure, String> {
    let mut tree = tree::<S>(seed)?;
    let mut smallest = (tree.current(), S::run(&tree.current(), engine));
    let (mut tries, mut events) = (0, 0);
    let mut smaller = tree.simplify();
    while smaller && tries < SHRINKS_MAX && events < SHRINK_EVENTS_MAX {
        tries += 1;
        let plan = tree.current();
        let run = S::run(&plan, engine);
        events += run.history.len();
        smaller = if run.violations.is_empty() {
            tree.complicate()
        } else {
            smallest = (plan, run);
            tree.simplify()
        };
    }
    let (plan, run) = smallest;
    Ok(Failure {
        story: story::<S>(seed, engine, &plan, &run),
        run: Some(Box::new(run)),
    })
}

/// Returns the command that runs a seed again.
fn replay<S: Scenario>(seed: u64, engine: Engine) -> String {
    let on = match engine {
        Engine::Memory => "",
        Engine::Sled => " --engine sled",
    };
    format!("harness check {} --seed {seed} --cases 1{on}", S::NAME)
}

fn story<S: Scenario>(seed: u64, engine: Engine, plan: &S::Plan, run: &Run) -> String {
    let mut text = format!("seed {seed} breaks a property; the smallest plan found:\n{plan:#?}\n");
    for violation in &run.violations {
        let _ = writeln!(text, "{violation}");
    }
    let end = run
        .violations
        .iter()
        .filter_map(|v| v.at)
        .min()
        .map_or(run.history.len(), |at| (at + 1).min(run.history.len()));
    let start = end.saturating_sub(EVENTS_SHOWN);
    let _ = writeln!(text, "events {start} to {end}:");
    for (number, event) in run.history.iter().enumerate().take(end).skip(start) {
        let _ = writeln!(text, "{}", history::brief(number, event));
    }
    let name = S::NAME;
    let _ = writeln!(
        text,
        "replay: {}\n\
         To run it in every `cargo test`, add to fixtures/seeds.toml:\n\
         [[seed]]\nscenario = \"{name}\"\nseed = {seed}\nfound = \"the bug, in a sentence\"",
        replay::<S>(seed, engine)
    );
    text
}
