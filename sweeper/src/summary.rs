//! Summaries of the state document and of a log of JSON lines. Pure.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use smalt_protocol::Timestamp;

use crate::outcome::{Class, Outcome};
use crate::report::FAILURES_MAX;
use crate::state::{Document, Status, Tally};

/// Maximum length of a log line in bytes; longer ones are not from a sweeper and are skipped.
pub const LINE_BYTES_MAX: usize = 64 * 1_024;

/// Summary of the fleet's work from the state document.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StateSummary {
    /// The cycle that is running or due next.
    pub cycle: u64,
    /// When the next cycle starts; `None` if one is running or due at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_due: Option<String>,
    /// When the last cycle was completed, as written in the document.
    pub completed: String,
    /// Blobs removed by the last completed cycle.
    pub removed: u64,
    /// Containers in the order of the document. Counters are those of the last cycle for a
    /// container that has not started in this one.
    pub containers: Vec<ContainerSummary>,
}

/// Summary of one container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ContainerSummary {
    /// Label of the container.
    pub container: String,
    /// Prefix of the swept names.
    pub prefix: String,
    /// Progress, as the document names it.
    pub status: &'static str,
    /// Counters of the container.
    #[serde(flatten)]
    pub tally: Tally,
    /// Pages in progress.
    pub pages: usize,
    /// Kind of the last failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
}

impl StateSummary {
    /// Summarizes a state document.
    pub fn of(document: &Document) -> Self {
        let containers = document
            .containers
            .iter()
            .map(|container| ContainerSummary {
                container: container.name.clone(),
                prefix: container.prefix.clone(),
                status: container.status.name(),
                tally: container.tally,
                pages: container.pages.len(),
                last_error: container
                    .last_error
                    .clone()
                    .filter(|_| container.failures > 0 && container.status != Status::Off),
            });
        StateSummary {
            cycle: document.cycle,
            next_due: document.next_due.map(Timestamp::iso_s),
            completed: document.timestamp.clone(),
            removed: document.purged,
            containers: containers.collect(),
        }
    }

    /// Returns the number of containers that need attention.
    pub fn troubled(&self) -> usize {
        let containers = self.containers.iter();
        containers
            .filter(|c| c.tally.failed > 0 || c.last_error.is_some())
            .count()
    }
}

/// Summary of the work recorded in a log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LogSummary {
    /// Lines about blobs.
    pub blobs: u64,
    /// Completed cycles.
    pub cycles: u64,
    /// Lines that are not from a sweep.
    pub others: u64,
    /// Number of blobs per container and outcome.
    pub containers: BTreeMap<String, BTreeMap<Outcome, u64>>,
    /// The first blobs that should have been removed but were not: place, outcome, reason.
    pub failures: Vec<(String, Outcome, String)>,
}

/// The fields of a log line that are summarized.
#[derive(Debug, Deserialize)]
struct Line {
    op: Option<String>,
    container: Option<String>,
    blob: Option<String>,
    outcome: Option<Outcome>,
    detail: Option<String>,
}

impl LogSummary {
    /// Adds one line; accepts any text.
    pub fn line(&mut self, text: &str) {
        let read = (text.len() <= LINE_BYTES_MAX).then(|| serde_json::from_str::<Line>(text));
        let Some(Ok(line)) = read else {
            self.others += 1;
            return;
        };
        match line.op.as_deref() {
            Some("cycle") => self.cycles += 1,
            Some("blob") => self.blob(line),
            _ => self.others += 1,
        }
    }

    fn blob(&mut self, line: Line) {
        let (Some(outcome), Some(container)) = (line.outcome, line.container) else {
            self.others += 1;
            return;
        };
        self.blobs += 1;
        if outcome.class() == Class::Failed && self.failures.len() < FAILURES_MAX {
            let blob = format!("{container}/{}", line.blob.unwrap_or_default());
            let reason = smalt_sleeve::redact(&line.detail.unwrap_or_default());
            self.failures.push((blob, outcome, reason));
        }
        let counts = self.containers.entry(container).or_default();
        *counts.entry(outcome).or_insert(0) += 1;
    }

    /// Returns the number of blobs that should have been removed but were not.
    pub fn failed(&self) -> u64 {
        let counts = self.containers.values().flatten();
        let failed = counts.filter(|(outcome, _)| outcome.class() == Class::Failed);
        failed.map(|(_, count)| count).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_log_is_summed_up_by_container_and_outcome() {
        let mut summary = LogSummary::default();
        for line in [
            r#"{"level":"INFO","op":"blob","container":"c","blob":"a","outcome":"deleted"}"#,
            r#"{"op":"blob","container":"c","blob":"b","outcome":"collision","detail":"sig=XY"}"#,
            r#"{"op":"blob","container":"d","blob":"b","outcome":"moved"}"#,
            r#"{"op":"blob","container":"d","blob":"b","outcome":"unheard_of"}"#,
            r#"{"op":"cycle","cycle":1}"#,
            r#"{"op":"claim","page":"1/c/2"}"#,
            "not JSON",
            "",
        ] {
            summary.line(line);
        }
        assert_eq!((summary.blobs, summary.cycles, summary.others), (3, 1, 4));
        assert_eq!(summary.containers["c"][&Outcome::Deleted], 1);
        assert_eq!(summary.failed(), 1);
        assert_eq!(summary.failures[0].2, "sig=REDACTED");
    }

    /// The summary adds up the document's elements; only current failures count as trouble.
    #[test]
    fn a_document_is_summed_up() {
        let text = r#"<Containers version="2" cycle="7" timestamp="t" purged="9">
            <Container name="a" status="Init" prefix="x/" token="" seen="5" deleted="3"/>
            <Container name="b" status="Init" prefix="" token="" failed="1"/>
            <Container name="c" status="Off" prefix="" token="" failures="3" lastError="Denied"/>
            <Container name="d" status="Init" prefix="" token="" failures="1" lastError="Busy"/>
            </Containers>"#;
        let summary = StateSummary::of(&crate::state::read(text).unwrap());
        assert_eq!(
            (summary.cycle, summary.removed, summary.troubled()),
            (7, 9, 2)
        );
        assert_eq!(
            (
                summary.containers[0].tally.seen,
                summary.containers[0].tally.deleted
            ),
            (5, 3)
        );
    }

    proptest! {
        #[test]
        fn any_line_is_parsed_or_skipped(text in ".{0,80}") {
            let mut summary = LogSummary::default();
            summary.line(&text);
            prop_assert_eq!(summary.blobs + summary.cycles + summary.others, 1);
        }
    }
}
