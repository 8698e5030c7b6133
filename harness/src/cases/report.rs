//! The report: results by operation and aspect, for terminals, as HTML, Markdown and JSON.

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

/// Version of the JSON format.
pub const FORMAT: u32 = 1;

/// The results of one run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// [`FORMAT`].
    pub format: u32,
    /// Version of the harness.
    pub harness: String,
    /// Start of the run.
    pub date: String,
    /// The command line, without secrets.
    pub command: String,
    /// The commit of the work tree that contains the harness.
    #[serde(default)]
    pub commit: Option<String>,
    /// Results of each target.
    pub targets: Vec<Of>,
}

/// The results of one target.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Of {
    /// Name of the target.
    pub name: String,
    /// Name of the target in the ledger.
    pub ledger: String,
    /// Version of the target.
    pub version: String,
    /// Duration of the run, in seconds.
    pub seconds: f64,
    /// Scenarios with their results.
    pub scenarios: Vec<Played>,
    /// The fault map.
    #[serde(default)]
    pub faults: Option<Vec<Hit>>,
    /// Results of the traces.
    #[serde(default)]
    pub traces: Option<Vec<Row>>,
    /// Deviations in the ledger that no longer occur.
    pub stale: Vec<String>,
    /// Number of containers and queues that scenarios left behind, and that were removed at the
    /// end.
    pub left_behind: usize,
}

impl Report {
    /// Returns the version of the harness, and the commit.
    pub fn made_by(&self) -> String {
        match &self.commit {
            Some(commit) => format!("{}, commit {commit}", self.harness),
            None => self.harness.clone(),
        }
    }
}

impl Of {
    /// Returns the results of a target with its scenarios only.
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

    /// Returns name and version.
    pub fn title(&self) -> String {
        if self.version == "unknown" {
            self.name.clone()
        } else {
            format!("{} {}", self.name, self.version)
        }
    }

    /// Whether all failures are known deviations.
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

    /// Counts all checks.
    pub fn total(&self) -> Tally {
        let checks = self.scenarios.iter().flat_map(Played::checks);
        checks.map(|(_, check)| check.outcome).collect()
    }

    /// Iterates over the skipped scenarios, with reasons.
    pub fn skipped(&self) -> impl Iterator<Item = (&Played, &str)> {
        let scenarios = self.scenarios.iter();
        scenarios.filter_map(|one| Some((one, one.skipped.as_deref()?)))
    }
}
