//! Runs one check in this process until it fails, or its budget is spent.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use smalt_planted::Detector;

use super::small::{self, Judge};
use super::suite;
use crate::bursts;
use crate::check::Cases;
use crate::replay::corpus;
use crate::replay::player::{Outcome, play};
use crate::scenario::campaign::{self, Scenario};
use crate::scenario::listen::Listen;
use crate::scenario::sweep::Sweep;
use crate::scenario::world::Engine;
use crate::target::in_process::InProcess;

/// Number of histories in memory.
const HISTORIES: u64 = 20_000;
/// Number of histories of tables, and of a hierarchical account.
const TABLES: u64 = 5_000;
/// Number of histories on disk, with restarts.
const RESTARTS: u64 = 200;
/// Numbers of bursts on schedules, then of durable bursts on threads.
const BURSTS: [(u64, bool); 2] = [(3_000, false), (100, true)];
/// Number of seeds for each worker's scenario.
const SEEDS: u64 = 500;

/// The result of a check.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Verdict {
    /// Number of cases until the failure, or in total.
    pub cases: u64,
    /// The failure, if any.
    pub caught: Option<Caught>,
    /// How often the planted line was executed.
    pub struck: u64,
}

/// A failure that a check found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caught {
    /// What is wrong, in one line.
    pub what: String,
    /// Size of the reduced failing case, if the check reduces it.
    pub shrunk: Option<Shrunk>,
    /// The details, if there are any.
    #[serde(skip)]
    pub story: String,
}

/// The length of the smallest failing case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shrunk {
    /// The length.
    pub length: usize,
    /// Unit of the length.
    pub of: String,
}

impl Shrunk {
    /// Returns a length in operations of a history.
    pub fn operations(length: usize) -> Self {
        Shrunk {
            length,
            of: "operations".to_owned(),
        }
    }
}

/// A check that can run in this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// A check of the project.
    Detector(Detector),
    /// A check that always fails.
    Canary,
}

impl Check {
    /// Returns the check with this name.
    ///
    /// # Errors
    /// The valid names.
    pub fn parse(name: &str) -> Result<Self, String> {
        if name == Check::Canary.name() {
            return Ok(Check::Canary);
        }
        let found = Detector::ALL.into_iter().find(|d| d.name() == name);
        found.map(Check::Detector).ok_or_else(|| {
            let names = Detector::ALL.map(Detector::name).join(", ");
            format!("unknown check; use {names} or canary")
        })
    }

    /// Returns the name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Check::Detector(detector) => detector.name(),
            Check::Canary => "canary",
        }
    }
}

/// Paths that checks need.
#[derive(Clone, Debug)]
pub struct Places {
    /// Directory of the recorded traces.
    pub traces: PathBuf,
    /// Test binaries of packages, built with the bugs.
    pub tests: Vec<Tests>,
}

/// A test binary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tests {
    /// Name of its package.
    pub package: String,
    /// Path of the binary.
    pub program: PathBuf,
}

impl Tests {
    /// Parses `PACKAGE=FILE`.
    ///
    /// # Errors
    /// When the string does not have this form.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (package, program) = text.split_once('=').ok_or("PACKAGE=FILE")?;
        Ok(Tests {
            package: package.to_owned(),
            program: program.into(),
        })
    }
}

/// Runs a check. A panic in the checked code counts as a failure.
///
/// # Errors
/// When the check could not run.
pub fn detect(check: Check, places: &Places) -> Result<Verdict, String> {
    let tried = Cell::new(0);
    let run = AssertUnwindSafe(|| one(check, places, &tried));
    let caught = match catch_unwind(run) {
        Ok(done) => done?,
        Err(panic) => Some(Caught {
            what: format!("panicked: {}", text_of(panic.as_ref())),
            shrunk: None,
            story: String::new(),
        }),
    };
    Ok(Verdict {
        cases: tried.get(),
        caught,
        struck: smalt_planted::struck(),
    })
}

fn text_of(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref().copied())
        .unwrap_or("without a word")
}

fn one(check: Check, places: &Places, tried: &Cell<u64>) -> Result<Option<Caught>, String> {
    let count = || tried.set(tried.get() + 1);
    let detector = match check {
        Check::Canary => return small::search(Judge::Canary, HISTORIES, count),
        Check::Detector(detector) => detector,
    };
    match detector {
        Detector::Histories => small::search(Judge::InMemory, HISTORIES, count),
        Detector::Tables => small::search(Judge::Tables, TABLES, count),
        Detector::Lake => small::search(Judge::Lake, TABLES, count),
        Detector::Restarts => small::search(Judge::WithRestarts, RESTARTS, count),
        Detector::Bursts => Ok(bursts(&count)),
        Detector::Traces => traces(places, &count),
        Detector::StoreCrash
        | Detector::EmulatorTests
        | Detector::SleeveTests
        | Detector::SweeperTests
        | Detector::ListenerTests => suite::run(detector, &places.tests, tried),
        Detector::Sweep => Ok(scenario::<Sweep>(&count)),
        Detector::Listen => Ok(scenario::<Listen>(&count)),
    }
}

fn bursts(count: &dyn Fn()) -> Option<Caught> {
    for (bursts, durable) in BURSTS {
        let options = bursts::Options {
            cases: Cases {
                cases: Some(bursts),
                ..Cases::default()
            },
            durable,
            ..bursts::Options::default()
        };
        if let Err(failed) = bursts::options::in_turn(&options, count) {
            let (plan, failure) = *failed;
            let reason = failure.reason.lines().next().unwrap_or_default().to_owned();
            let calls = failure.history.calls.len();
            return Some(Caught {
                what: format!("{}: {reason}", plan.kind.name()),
                shrunk: (!durable).then(|| Shrunk::operations(calls)),
                story: failure.reason,
            });
        }
    }
    None
}

/// Replays the project's own traces; each exchange is a case.
fn traces(places: &Places, count: &dyn Fn()) -> Result<Option<Caught>, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    let text = |error: corpus::CorpusError| error.to_string();
    let names = corpus::names(&places.traces).map_err(text)?;
    if names.is_empty() {
        return Err(format!("no traces in {}", places.traces.display()));
    }
    for name in names {
        let recording = corpus::load(&places.traces, &name).map_err(text)?;
        let played = runtime.block_on(play(Arc::new(InProcess::default()), &recording));
        for (n, outcome) in played.outcomes.iter().enumerate() {
            count();
            if let Outcome::Failed(differences) = outcome {
                let first = differences.first();
                let what = first.map(|d| format!("{}: {} for {}", d.at, d.live, d.recorded));
                return Ok(Some(Caught {
                    what: format!("{name}, exchange {n}: {}", what.unwrap_or_default()),
                    shrunk: None,
                    story: format!("{differences:#?}"),
                }));
            }
        }
    }
    Ok(None)
}

fn scenario<S: Scenario>(count: &dyn Fn()) -> Option<Caught> {
    for seed in 0..SEEDS {
        count();
        let Err(failure) = campaign::run_seed::<S>(seed, Engine::Memory, false) else {
            continue;
        };
        let run = failure.run.unwrap_or_default();
        let violation = run.violations.first();
        let first = failure.story.lines().next().unwrap_or_default();
        return Some(Caught {
            what: violation.map_or(first.to_owned(), ToString::to_string),
            story: failure.story,
            shrunk: Some(Shrunk {
                length: run.history.len(),
                of: "events".to_owned(),
            }),
        });
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_check_has_a_name() {
        for detector in Detector::ALL {
            assert_eq!(Check::parse(detector.name()), Ok(Check::Detector(detector)));
        }
        assert_eq!(Check::parse("canary"), Ok(Check::Canary));
        let told = Check::parse("canaries").unwrap_err();
        assert!(told.contains("store-crash"), "{told}");
    }
}
