//! What came out: by operation and aspect, for people and for machines.

pub mod html;
pub mod markdown;
pub mod tally;
pub mod text;

use serde::{Deserialize, Serialize};

use super::checks::{Outcome, Played};
use super::faults::Hit;
use super::traces::Row;
use crate::target::About;
use tally::Tally;

/// The format of the JSON report.
pub const FORMAT: u32 = 1;

/// Everything about one run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// [`FORMAT`].
    pub format: u32,
    /// Version of the harness.
    pub harness: String,
    /// When it began.
    pub date: String,
    /// The command, without secrets.
    pub command: String,
    /// The commit of the work tree that the harness lies in.
    #[serde(default)]
    pub commit: Option<String>,
    /// One for each target.
    pub targets: Vec<Of>,
}

/// Everything about one target.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Of {
    /// What it is called.
    pub name: String,
    /// What the ledger calls it.
    pub ledger: String,
    /// Its version.
    pub version: String,
    /// How long it took.
    pub seconds: f64,
    /// Scenarios with what came of them.
    pub scenarios: Vec<Played>,
    /// The fault map.
    #[serde(default)]
    pub faults: Option<Vec<Hit>>,
    /// The traces.
    #[serde(default)]
    pub traces: Option<Vec<Row>>,
    /// Deviations of the ledger that are none.
    pub stale: Vec<String>,
    /// Containers and queues that scenarios left, and that were removed at the end.
    pub left_behind: usize,
}

impl Report {
    /// Version of the harness, and the commit.
    pub fn made_by(&self) -> String {
        match &self.commit {
            Some(commit) => format!("{}, commit {commit}", self.harness),
            None => self.harness.clone(),
        }
    }
}

impl Of {
    /// The scenarios of a target, and nothing else yet.
    pub fn new(about: &About, ledger: &str, scenarios: Vec<Played>) -> Of {
        Of {
            name: about.name.clone(),
            ledger: ledger.to_owned(),
            version: about.version.clone(),
            seconds: 0.0,
            scenarios,
            faults: None,
            traces: None,
            stale: Vec::new(),
            left_behind: 0,
        }
    }

    /// Name and version.
    pub fn title(&self) -> String {
        if self.version == "unknown" {
            self.name.clone()
        } else {
            format!("{} {}", self.name, self.version)
        }
    }

    /// Whether nothing went otherwise that is not known to.
    pub fn is_right(&self) -> bool {
        let checks = self.scenarios.iter().flat_map(Played::checks);
        let faults = self.faults.iter().flatten();
        let traces = self.traces.iter().flatten();
        checks
            .into_iter()
            .all(|(_, check)| check.outcome != Outcome::Failed)
            && faults.into_iter().all(|hit| hit.right)
            && traces.into_iter().all(|row| row.passed == row.exchanges)
            && self.stale.is_empty()
    }

    /// All checks.
    pub fn total(&self) -> Tally {
        let checks = self.scenarios.iter().flat_map(Played::checks);
        checks.map(|(_, check)| check.outcome).collect()
    }

    /// Scenarios that were left out.
    pub fn skipped(&self) -> impl Iterator<Item = (&Played, &str)> {
        let scenarios = self.scenarios.iter();
        scenarios.filter_map(|one| Some((one, one.skipped.as_deref()?)))
    }
}
