//! The report of a worker: counters per container and outcome, failed blobs and closed cycles.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;
use smalt_worker::exit;

use crate::outcome::{Class, Outcome};
use crate::state::Tally;
use crate::state::ledger::ClosedCycle;

/// Maximum number of failed blobs listed in a report; further ones are only counted.
pub const FAILURES_MAX: usize = 1_000;
/// Maximum number of closed cycles listed in a report; the newest are kept.
pub const CYCLES_MAX: usize = 100;
/// `lastError` of a container that the circuit breaker stopped.
pub const GUARD_TRIPPED: &str = "GuardTripped";
/// `lastError` of a container that the credential may not sweep.
pub const DENIED: &str = "Denied";

/// The work of one worker since its start.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// Worker id.
    pub worker: String,
    /// Counters per container, by label.
    pub containers: BTreeMap<String, ContainerReport>,
    /// Storage calls by operation.
    pub transactions: BTreeMap<&'static str, u64>,
    /// The first [`FAILURES_MAX`] failed blobs.
    pub failures: Vec<BlobRecord>,
    /// The newest [`CYCLES_MAX`] cycles that this worker closed or saw closed.
    pub cycles: Vec<CycleReport>,
    #[serde(skip)]
    swept: usize,
}

/// The work of one worker in one container.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ContainerReport {
    /// Pages listed.
    pub pages: u64,
    /// Bytes removed from it.
    pub bytes_removed: u64,
    /// Number of blobs per outcome.
    pub outcomes: BTreeMap<Outcome, u64>,
}

/// One blob and its outcome.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BlobRecord {
    /// Container name.
    pub container: String,
    /// Blob name.
    pub blob: String,
    /// ETag of the processed version.
    pub etag: String,
    /// Length in bytes.
    pub length: u64,
    /// Outcome for this blob.
    pub outcome: Outcome,
    /// One line of text where the outcome alone is not clear.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

impl BlobRecord {
    /// Logs the decision, with its duration if anything was done.
    pub(crate) fn log(&self, page: &str, took: Option<Duration>) {
        macro_rules! line {
            ($level:ident) => {
                tracing::$level!(
                    op = "blob",
                    page,
                    container = self.container,
                    blob = self.blob,
                    etag = self.etag,
                    outcome = self.outcome.to_string(),
                    detail = self.detail,
                    ms = took.map(|took| took.as_millis() as u64),
                )
            };
        }
        match self.outcome {
            // Either a writer tries to misuse the sweeper's credential, or the operator forgot to
            // allow a container.
            Outcome::DbcNotAllowed => line!(warn),
            _ => line!(info),
        }
    }

    /// Logs a blob that needs no action.
    pub(crate) fn log_untouched(&self) {
        tracing::debug!(
            op = "blob",
            container = self.container,
            blob = self.blob,
            outcome = self.outcome.to_string(),
        );
    }
}

/// A closed cycle of the whole fleet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CycleReport {
    /// Number of the cycle.
    pub cycle: u64,
    /// Blobs removed in this cycle.
    pub purged: u64,
    /// Containers that the cycle skipped after failures, each with its last error.
    pub parked: Vec<(String, String)>,
}

impl Report {
    /// Creates an empty report.
    pub fn new(worker: &str) -> Self {
        Report {
            worker: worker.to_owned(),
            ..Report::default()
        }
    }

    /// Returns whether the report has no page and no cycle, so nothing was swept.
    pub fn is_empty(&self) -> bool {
        self.containers.is_empty() && self.cycles.is_empty()
    }

    pub(crate) fn page(&mut self, container: &str, kept: &BTreeMap<Outcome, u64>) {
        let report = self.containers.entry(container.to_owned()).or_default();
        report.pages += 1;
        for (outcome, count) in kept {
            *report.outcomes.entry(*outcome).or_insert(0) += count;
        }
    }

    pub(crate) fn blob(&mut self, container: &str, record: &BlobRecord) {
        let report = self.containers.entry(container.to_owned()).or_default();
        *report.outcomes.entry(record.outcome).or_insert(0) += 1;
        if matches!(record.outcome, Outcome::Deleted | Outcome::Moved) {
            report.bytes_removed = report.bytes_removed.saturating_add(record.length);
        }
        self.note_failure(record);
    }

    /// Lists a failed blob unless [`FAILURES_MAX`] is reached.
    pub(crate) fn note_failure(&mut self, record: &BlobRecord) {
        if record.outcome.class() == Class::Failed && self.failures.len() < FAILURES_MAX {
            self.failures.push(record.clone());
        }
    }

    pub(crate) fn close(&mut self, closed: &ClosedCycle, containers: usize) {
        if self.cycles.len() >= CYCLES_MAX {
            self.cycles.remove(0);
        }
        self.swept = containers;
        self.cycles.push(CycleReport {
            cycle: closed.cycle,
            purged: closed.purged,
            parked: closed.parked.clone(),
        });
    }

    /// Returns the number of blobs with this outcome.
    pub fn count(&self, outcome: Outcome) -> u64 {
        let counts = self.containers.values();
        counts.filter_map(|c| c.outcomes.get(&outcome)).sum()
    }

    /// Returns the number of blobs with an outcome of this class.
    pub fn count_class(&self, class: Class) -> u64 {
        let counts = self.containers.values().flat_map(|c| &c.outcomes);
        let of_class = counts.filter(|(outcome, _)| outcome.class() == class);
        of_class.map(|(_, count)| count).sum()
    }

    /// Returns the exit code for the worst result of the last cycle.
    pub fn exit_code(&self) -> u8 {
        let parked = self.cycles.last().map_or(&[][..], |cycle| &cycle.parked);
        let with = |error: &str| parked.iter().filter(|(_, e)| e == error).count();
        if with(GUARD_TRIPPED) > 0 {
            exit::GUARD
        } else if self.swept > 0 && with(DENIED) == self.swept {
            exit::DENIED
        } else if !parked.is_empty() || self.count_class(Class::Failed) > 0 {
            exit::FAILED_ITEMS
        } else {
            exit::OK
        }
    }
}

pub(crate) fn count(tally: &mut Tally, outcome: Outcome, length: u64) {
    match outcome {
        Outcome::Moved => tally.moved += 1,
        Outcome::Deleted | Outcome::Gone => tally.deleted += 1,
        other if other.class() == Class::Failed => tally.failed += 1,
        _ => tally.skipped += 1,
    }
    if matches!(outcome, Outcome::Deleted | Outcome::Moved) {
        tally.bytes = tally.bytes.saturating_add(length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn closed(parked: &[&str]) -> ClosedCycle {
        ClosedCycle {
            parked: parked
                .iter()
                .map(|e| ("c".to_owned(), (*e).to_owned()))
                .collect(),
            ..ClosedCycle::default()
        }
    }

    #[test]
    fn exit_code_is_that_of_the_worst_result() {
        for (parked, containers, expected) in [
            (&[][..], 1, exit::OK),
            (&["Denied"], 1, exit::DENIED),
            (&["Denied"], 2, exit::FAILED_ITEMS),
            (&["NotFound"], 1, exit::FAILED_ITEMS),
            (&["Denied", "GuardTripped"], 2, exit::GUARD),
        ] {
            let mut report = Report::default();
            report.close(&closed(parked), containers);
            assert_eq!(report.exit_code(), expected, "{parked:?}");
        }
    }

    /// DS19: counts outcomes, not intentions.
    #[test]
    fn a_failed_blob_counts_as_failed() {
        let mut report = Report::default();
        let mut record = BlobRecord {
            container: "c".to_owned(),
            blob: "b".to_owned(),
            etag: String::new(),
            length: 7,
            outcome: Outcome::Deferred,
            detail: None,
        };
        report.blob("c", &record);
        record.outcome = Outcome::Deleted;
        report.blob("c", &record);
        assert_eq!(report.count_class(Class::Done), 1);
        assert_eq!(report.containers["c"].bytes_removed, 7);
        assert_eq!(report.failures.len(), 1);
        assert_eq!(report.exit_code(), exit::FAILED_ITEMS);
    }
}
