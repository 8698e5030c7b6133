//! The results per operation, recording and aspect, for people and for machines.

use std::collections::BTreeMap;

use serde::Serialize;

use super::compare::{Aspect, Difference};
use super::player::{Outcome, Played};
use super::recording::Recording;
use super::rules::RULES;

/// Version of the format of the JSON report.
pub const FORMAT: u32 = 1;

/// Counts of interactions.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Tally {
    /// Number of interactions that were compared: passed or failed.
    pub compared: u64,
    /// Number of interactions without a difference.
    pub passed: u64,
    /// Number of interactions with a difference, by aspect; one interaction may fail in several.
    pub failed: BTreeMap<Aspect, u64>,
    /// Number of interactions whose operation the target does not implement.
    pub not_built: u64,
    /// Number of interactions that prove nothing.
    pub excused: u64,
}

impl Tally {
    fn add(&mut self, outcome: &Outcome) {
        match outcome {
            Outcome::Passed => {
                self.compared += 1;
                self.passed += 1;
            }
            Outcome::Failed(differences) => {
                self.compared += 1;
                let mut aspects: Vec<Aspect> = differences.iter().map(|d| d.aspect).collect();
                aspects.sort_unstable();
                aspects.dedup();
                for aspect in aspects {
                    *self.failed.entry(aspect).or_default() += 1;
                }
            }
            Outcome::NotBuilt => self.not_built += 1,
            Outcome::Excused(_) => self.excused += 1,
        }
    }

    /// Returns the percentage of compared interactions that agree in this aspect. A call without an
    /// answer agrees in none.
    pub fn rate(&self, aspect: Aspect) -> f64 {
        let failed = |aspect| self.failed.get(&aspect).copied().unwrap_or_default();
        let calls = if aspect == Aspect::Call {
            0
        } else {
            failed(Aspect::Call)
        };
        percent(
            self.compared - (failed(aspect) + calls).min(self.compared),
            self.compared,
        )
    }

    /// Returns the percentage of compared interactions without a difference.
    pub fn pass_rate(&self) -> f64 {
        percent(self.passed, self.compared)
    }
}

/// Returns `part` of `whole` in percent; 100 when `whole` is 0.
pub fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        100.0
    } else {
        part as f64 * 100.0 / whole as f64
    }
}

/// Result of one recording.
#[derive(Clone, Debug, Serialize)]
pub struct RecordingRow {
    /// Path below the corpus directory.
    pub recording: String,
    /// Whether no interaction differs, and something was compared or the recording is empty.
    pub passed: bool,
    /// Whether every interaction is excused.
    pub excused: bool,
    /// Whether every operation in it is implemented.
    pub in_slice: bool,
    /// Counts of its interactions.
    pub tally: Tally,
    /// What must exist beforehand and could not be created.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub setup_problems: Vec<String>,
    /// Interactions with differences.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<Failure>,
    /// Why interactions were excused.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub excuses: Vec<String>,
}

/// One interaction with differences.
#[derive(Clone, Debug, Serialize)]
pub struct Failure {
    /// Index in the recording.
    pub n: usize,
    /// Name of the operation.
    pub operation: String,
    /// All differences.
    pub differences: Vec<Difference>,
}

/// Number of uses of a relaxed comparison.
#[derive(Clone, Debug, Serialize)]
pub struct RuleRow {
    /// Place and field.
    pub rule: String,
    /// Why the comparison is relaxed.
    pub reason: &'static str,
    /// Number of values that were compared under it.
    pub uses: u64,
    /// What uses it where the project's corpus does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elsewhere: Option<&'static str>,
}

impl RuleRow {
    /// Whether the rule has no use, here or elsewhere.
    pub fn is_idle(&self) -> bool {
        self.uses == 0 && self.elsewhere.is_none()
    }
}

/// Result of a replay.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// Always [`FORMAT`].
    pub format: u32,
    /// `inproc` or a URL.
    pub target: String,
    /// Counts over all selected recordings.
    pub total: Tally,
    /// Number of selected recordings.
    pub recordings: u64,
    /// Number of recordings that passed.
    pub recordings_passed: u64,
    /// Number of recordings that passed although some of their interactions are excused.
    pub recordings_in_part: u64,
    /// Number of recordings left out because all of their interactions are excused.
    pub recordings_excused: u64,
    /// Number of recordings left out because an operation of theirs is not implemented.
    pub recordings_not_built: u64,
    /// Number of excused interactions, by reason.
    pub excuses: BTreeMap<String, u64>,
    /// Recordings after which the target did not answer and was restarted.
    pub silenced_by: Vec<String>,
    /// Counts by service.
    pub services: BTreeMap<String, Tally>,
    /// Counts by service and operation.
    pub operations: BTreeMap<String, Tally>,
    /// Uses of the relaxed comparisons.
    pub rules: Vec<RuleRow>,
    /// Results of all recordings that were played.
    pub rows: Vec<RecordingRow>,
}

impl Report {
    /// Returns the percentage of relaxed comparisons that have a use.
    pub fn rules_used(&self) -> f64 {
        let used = self.rules.iter().filter(|rule| !rule.is_idle()).count();
        percent(used as u64, self.rules.len() as u64)
    }
}

/// Collects recordings into a report.
pub struct Collector {
    report: Report,
    uses: Vec<u64>,
    slice_only: bool,
}

impl Collector {
    /// Creates an empty report. With `slice_only`, recordings with an operation that is not
    /// implemented are counted separately and are part of no rate.
    pub fn new(target: &str, slice_only: bool) -> Collector {
        let report = Report {
            format: FORMAT,
            target: target.to_owned(),
            ..Report::default()
        };
        Collector {
            report,
            uses: vec![0; RULES.len()],
            slice_only,
        }
    }

    /// Adds one recording.
    pub fn add(&mut self, recording: &Recording, played: &Played) {
        let row = row(recording, played);
        for (sum, uses) in self.uses.iter_mut().zip(&played.rule_uses) {
            *sum += uses;
        }
        if !row.in_slice {
            self.report.recordings_not_built += 1;
        }
        if row.excused {
            self.report.recordings_excused += 1;
        } else if row.in_slice || !self.slice_only {
            self.report.recordings += 1;
            self.report.recordings_passed += u64::from(row.passed);
            let in_part = row.passed && row.tally.excused > 0;
            self.report.recordings_in_part += u64::from(in_part);
        }
        let service = recording.service.as_str();
        for (interaction, outcome) in recording.interactions.iter().zip(&played.outcomes) {
            // The interactions beside a missing operation prove little: only the missing ones are
            // counted.
            let counts = row.in_slice || !self.slice_only;
            if !counts && *outcome != Outcome::NotBuilt {
                continue;
            }
            if let Outcome::Excused(why) = outcome {
                *self.report.excuses.entry(why.clone()).or_default() += 1;
            }
            let operation = format!("{service}: {}", interaction.operation);
            self.report.total.add(outcome);
            self.report
                .services
                .entry(service.to_owned())
                .or_default()
                .add(outcome);
            self.report
                .operations
                .entry(operation)
                .or_default()
                .add(outcome);
        }
        self.report.rows.push(row);
    }

    /// Returns the report, sorted by recording.
    pub fn finish(mut self) -> Report {
        self.report
            .rows
            .sort_by(|a, b| a.recording.cmp(&b.recording));
        let rules = RULES.iter().zip(&self.uses);
        self.report.rules = rules
            .map(|(rule, uses)| RuleRow {
                rule: format!("{:?} {}: {:?}", rule.place, rule.field, rule.how),
                reason: rule.reason,
                uses: *uses,
                elsewhere: rule.elsewhere,
            })
            .collect();
        self.report
    }
}

fn row(recording: &Recording, played: &Played) -> RecordingRow {
    let mut tally = Tally::default();
    let mut failures = Vec::new();
    let mut excuses = Vec::new();
    for (interaction, outcome) in recording.interactions.iter().zip(&played.outcomes) {
        tally.add(outcome);
        match outcome {
            Outcome::Failed(differences) => failures.push(Failure {
                n: interaction.n,
                operation: interaction.operation.clone(),
                differences: differences.clone(),
            }),
            Outcome::Excused(why) => excuses.push(format!("{}: {why}", interaction.n)),
            Outcome::Passed | Outcome::NotBuilt => {}
        }
    }
    let excused = tally.excused > 0 && tally.compared == 0 && tally.not_built == 0;
    RecordingRow {
        recording: recording.name.clone(),
        // A recording that lost an interaction has not passed.
        passed: !excused
            && failures.is_empty()
            && tally.not_built == 0
            && played.outcomes.len() == recording.interactions.len(),
        excused,
        in_slice: tally.not_built == 0,
        tally,
        setup_problems: played.setup_problems.clone(),
        failures,
        excuses,
    }
}
