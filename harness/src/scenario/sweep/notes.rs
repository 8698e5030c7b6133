//! What a run of the sweeper has shown: its marks, and checks of single requests (D4).

use std::collections::{BTreeMap, BTreeSet};

use smalt_protocol::Timestamp;

use super::model::{self, Deed, Key, Model};
use super::plan::SweepPlan;
use crate::scenario::campaign::Violation;
use crate::scenario::history::{Clocks, Event, Exchange, Fate};
use crate::scenario::marks::{DRIFTED, Marks, Tests, mark};

/// A worker has listed a directory, all of which are due.
pub(super) const DUE_DIRECTORY: &str = "directory with a time to live listed";
/// Marks that a campaign must have seen.
pub(crate) const SOMETIMES: &[&str] = &[
    "412 on a delete after an overwrite",
    "answer lost: delete",
    "answer lost: copy",
    "answer lost: state",
    "lease lost in the middle of work",
    "lease broken by an operator",
    "two sweepers in one cycle",
    "worker died",
    "died between copy and delete",
    "page reclaimed",
    "503 with Retry-After",
    "page token across a delete",
    "clock off by more than the lease",
    "copy pending",
    "copy came to nothing",
    "snapshot in the way",
    "destination taken",
    "circuit breaker tripped",
    "container missing",
    "container for dead blobs deleted",
    DRIFTED,
    "copy cut short, without an MD5",
    DUE_DIRECTORY,
    "412 on a delete after a change of tags",
    "deleted by a rule",
    "deleted",
    "moved",
    "cycle completed",
    "state written",
    "told to stop",
    "SS1",
    "SS2",
    "SS3",
    "SS4",
    "SS5",
    "SS6",
    "SS7",
    "SS8",
    "SS9",
    "SS10",
    "SL1",
    "SL2",
    "SL3",
    "SL4",
    "SL5",
];

/// The events that put each property to the test.
pub(super) const TESTS: Tests = &[
    ("SS1", &["deleted", "deleted by a rule", "moved"]),
    (
        "SS2",
        &[
            "412 on a delete after an overwrite",
            "412 on a delete after a change of tags",
        ],
    ),
    (
        "SS3",
        &["answer lost: copy", "died between copy and delete"],
    ),
    (
        "SS4",
        &[
            "moved",
            "copy came to nothing",
            "copy cut short, without an MD5",
            "copy pending",
        ],
    ),
    ("SS5", &["deleted", "moved", "state written"]),
    (
        "SS6",
        &["answer lost: state", "lease lost in the middle of work"],
    ),
    ("SS7", &["page reclaimed", "two sweepers in one cycle"]),
    ("SS8", &["destination taken"]),
    ("SS9", &["moved", "state written"]),
    ("SS10", &["circuit breaker tripped"]),
    ("SL1", &["cycle completed"]),
    ("SL2", &["page reclaimed"]),
    ("SL3", &["container missing"]),
    ("SL4", &["cycle completed"]),
    ("SL5", &["told to stop"]),
];

/// Notes of a run.
pub(super) struct Notes {
    pub marks: Marks,
    lease_s: u64,
    /// Copies that a life has made whose source still exists.
    copied: BTreeSet<(String, Key)>,
    /// Containers in which something was deleted in this cycle.
    deleted_in: BTreeSet<String>,
    /// When a request may be tried again, by life, method and path.
    not_before: BTreeMap<(String, String, String), Timestamp>,
    clocks: Clocks,
}

impl Notes {
    /// Creates the notes of a run of this plan.
    pub(super) fn new(plan: &SweepPlan) -> Self {
        Notes {
            marks: Marks::new(),
            lease_s: u64::from(plan.lease_s),
            copied: BTreeSet::new(),
            deleted_in: BTreeSet::new(),
            not_before: BTreeMap::new(),
            clocks: Clocks::default(),
        }
    }

    /// Counts a mark once more.
    pub(super) fn mark(&mut self, name: &'static str) {
        mark(&mut self.marks, name);
    }

    /// Records the death of a life.
    pub(super) fn died(&mut self, actor: &str) {
        self.mark("worker died");
        if self.copied.iter().any(|(life, _)| life == actor) {
            self.mark("died between copy and delete");
        }
    }

    /// Begins a new cycle.
    pub(super) fn begins(&mut self) {
        self.deleted_in.clear();
    }

    /// Records a worker's request, before the model does.
    pub(super) fn note(
        &mut self,
        number: usize,
        event: &Event,
        exchange: &Exchange,
        model: &Model,
    ) -> Option<Violation> {
        let deed = model::deed(exchange);
        let early = self.early(number, event, exchange);
        match &exchange.fate {
            Fate::NoAnswer(_) if exchange.fault.is_none() => self.mark("connection reset"),
            Fate::NoAnswer(_) => {}
            Fate::Answered(answer) if answer.status < 300 => self.done(event, exchange, deed),
            Fate::Answered(answer) => {
                let code = answer.header("x-ms-error-code").unwrap_or_default();
                self.refused((answer.status, code), deed, exchange, model);
                if answer.status == 503 && answer.header("retry-after").is_some() {
                    self.mark("503 with Retry-After");
                }
            }
        }
        early
    }

    /// D4: checks that a worker waits as `Retry-After` asks. This covers requests that a life sends
    /// one at a time, until it gives up and begins a new step on the state document.
    fn early(&mut self, number: usize, event: &Event, exchange: &Exchange) -> Option<Violation> {
        let listing = exchange.parameter("comp") == Some("list");
        if exchange.method == "PUT" || exchange.method == "GET" && !listing {
            self.not_before
                .retain(|(actor, ..), _| *actor != event.actor);
        }
        if exchange.method != "DELETE" && !listing {
            return None;
        }
        let (method, path) = (exchange.method.clone(), exchange.path.clone());
        let key = (event.actor.clone(), method, path);
        let before = self.not_before.remove(&key);
        // An answer that never arrived asks for nothing; nor does the answer to the first of two
        // deliveries.
        if exchange.delivered
            && let Fate::Answered(answer) = &exchange.fate
            && let Some(after_s) = answer.header("retry-after").and_then(|s| s.parse().ok())
        {
            self.not_before.insert(key, event.at.plus_s(after_s));
        }
        let before = before.filter(|before| exchange.sent < *before)?;
        let what = format!(
            "{} was asked to wait until {}",
            event.actor,
            before.iso_ticks()
        );
        Some(Violation::at("D4", number, what))
    }

    fn done(&mut self, event: &Event, exchange: &Exchange, deed: Option<Deed>) {
        let key = model::key(exchange);
        match deed {
            Some(Deed::Deleted) => {
                self.copied.remove(&(event.actor.clone(), key.clone()));
                self.deleted_in.insert(key.1);
            }
            Some(Deed::Copied) => {
                let source = model::source_key(exchange);
                self.copied
                    .extend(source.map(|source| (event.actor.clone(), source)));
            }
            _ => {}
        }
        if exchange.parameter("comp") == Some("list")
            && exchange.parameter("marker").is_some()
            && self.deleted_in.contains(&exchange.segments().1)
        {
            self.mark("page token across a delete");
        }
        let (off, past) = self.clocks.seen(event, exchange);
        if past {
            self.mark(DRIFTED);
        }
        if off.as_secs() > self.lease_s && deed == Some(Deed::Put) {
            self.mark("clock off by more than the lease");
        }
        if exchange.is_answer_lost() {
            self.mark(match deed {
                Some(Deed::Deleted) => "answer lost: delete",
                Some(Deed::Copied) => "answer lost: copy",
                Some(Deed::Put) => "answer lost: state",
                _ => "answer lost: other",
            });
        }
    }

    fn refused(
        &mut self,
        (status, code): (u16, &str),
        deed: Option<Deed>,
        exchange: &Exchange,
        model: &Model,
    ) {
        let there = model.blobs.get(&model::key(exchange));
        match (status, code, deed) {
            (412, "ConditionNotMet", Some(Deed::Deleted)) => {
                let by_owner = there.is_some_and(|version| version.by_owner);
                let seen = exchange.header("if-match");
                let is_same = there.is_some_and(|version| Some(version.etag.as_str()) == seen);
                if is_same {
                    self.mark("412 on a delete after a change of tags");
                } else if by_owner {
                    self.mark("412 on a delete after an overwrite");
                }
            }
            (412, code, Some(Deed::Put)) if code.starts_with("Lease") => {
                self.mark("lease lost in the middle of work");
            }
            (412, _, Some(Deed::Put)) => self.mark("412 on the state"),
            (409, "LeaseAlreadyPresent", _) => self.mark("lease taken"),
            (409, "SnapshotsPresent", _) => self.mark("snapshot in the way"),
            (412, "LeaseIdMissing", Some(Deed::Deleted)) => self.mark("blob leased"),
            (409, "BlobAlreadyExists", Some(Deed::Copied)) => self.mark("destination taken"),
            (404, "ContainerNotFound", None) => self.mark("container missing"),
            _ => {}
        }
    }
}
