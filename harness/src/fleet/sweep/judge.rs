//! The account of a run: derives the errors from what was put, what exists afterwards, and the
//! workers' reports.

use std::collections::BTreeMap;
use std::fmt;

use bytes::Bytes;
use smalt_sleeve::port::{Metadata, Tag};
use smalt_sweeper::provenance;

use super::blobs::{Blobs, Fate, Number};
use crate::fleet::wrongs::{self, Wrongs};

/// Most by which a worker's share may differ from an even one, as a fraction of it.
pub const UNEVEN_MAX: f64 = 0.2;
/// Pages per worker from which on the shares are checked: of fewer pages a single one is a large
/// share.
const JUDGED_PAGES: u64 = 25;
/// Most resident memory of a worker, in bytes.
pub const MEMORY_MAX_BYTES: u64 = 50 * 1024 * 1024;

/// A copy among the dead blobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copy {
    /// Content of the copy.
    pub content: Bytes,
    /// Metadata of the copy.
    pub metadata: Metadata,
}

/// Report of a worker that ended by itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Worker {
    /// Name of the worker.
    pub name: String,
    /// Exit code; `None` after a signal.
    pub exit: Option<i32>,
    /// Number of pages that it listed.
    pub pages: u64,
    /// Number of blobs that it checked.
    pub handled: u64,
    /// Number of blobs that it deleted or moved.
    pub removed: u64,
    /// Number of due blobs that were gone when it tried to remove them.
    pub gone: u64,
    /// Number of its calls.
    pub calls: u64,
    /// Peak resident memory, in bytes.
    pub peak_bytes: u64,
    /// Processor time, in seconds.
    pub cpu_s: f64,
}

/// The facts about a run.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// Version of each blob before the sweep.
    pub before: Vec<Option<Tag>>,
    /// Version of each blob that exists after it.
    pub after: Vec<Option<Tag>>,
    /// Copy of each blob that has one.
    pub dead: BTreeMap<Number, Copy>,
    /// Places of blobs that are not from this run.
    pub foreign: Vec<String>,
    /// Reports of the workers that ended by themselves.
    pub workers: Vec<Worker>,
    /// Number of workers that were killed.
    pub killed: u64,
    /// Number of sweeps that did not end.
    pub stuck: u64,
    /// Prefix of `SourceUri` of a copy.
    pub endpoint: String,
}

/// A kind of error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Wrong {
    /// A blob that is not due is gone.
    UnexpiredGone,
    /// A blob that is not due has another version.
    UnexpiredChanged,
    /// A due blob still exists.
    ExpiredLeft,
    /// A blob that had to move is gone, and there is no copy.
    CopyMissing,
    /// The bytes of a copy differ from its source's.
    CopyUnequal,
    /// The metadata of a copy is wrong.
    CopyMetadata,
    /// A copy of a blob that did not have to move.
    CopyUnexpected,
    /// A blob that this run did not put.
    Foreign,
    /// A worker failed.
    WorkerFailed,
    /// A sweep did not end.
    Stuck,
    /// The number of removals that the workers report is not the number of blobs that are gone.
    Miscounted,
    /// Blobs that a worker tried to remove were already gone.
    DoneTwice,
    /// A worker did much more or less than its share.
    Uneven,
    /// A worker used too much memory.
    Memory,
}

impl Wrong {
    const fn words(self) -> &'static str {
        match self {
            Wrong::UnexpiredGone => "not due, but gone",
            Wrong::UnexpiredChanged => "not due, but changed",
            Wrong::ExpiredLeft => "due, but still there",
            Wrong::CopyMissing => "to be moved, but gone without a copy",
            Wrong::CopyUnequal => "copies whose bytes differ from their source",
            Wrong::CopyMetadata => "copies with wrong metadata",
            Wrong::CopyUnexpected => "copies of blobs that were not to be moved",
            Wrong::Foreign => "blobs that the run did not put",
            Wrong::WorkerFailed => "workers that failed",
            Wrong::Stuck => "sweeps that did not end",
            Wrong::Miscounted => "reported removals that differ from the blobs gone",
            Wrong::DoneTwice => "blobs that were gone when a worker came to them",
            Wrong::Uneven => "workers without an even share",
            Wrong::Memory => "workers that used more than 50 MiB",
        }
    }
}

/// Counts of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Account {
    /// Number of blobs that were put.
    pub put: u64,
    /// Number of due blobs.
    pub due: u64,
    /// Number of due blobs that had to move.
    pub to_move: u64,
    /// Number of processes that were killed.
    pub killed: u64,
    /// How often each error happened, and the first blobs of each.
    pub wrong: Wrongs<Wrong>,
}

impl Account {
    /// Accounts for the facts of a run.
    pub fn of(blobs: &Blobs, evidence: &Evidence) -> Self {
        let mut account = Account {
            put: blobs.count,
            killed: evidence.killed,
            ..Account::default()
        };
        for number in 0..blobs.count {
            account.judge_blob(blobs, evidence, number);
        }
        account.find(Wrong::Foreign, evidence.foreign.len() as u64, None);
        account.find(Wrong::Stuck, evidence.stuck, None);
        account.judge_workers(evidence);
        account
    }

    /// Whether there is no error.
    pub fn is_clean(&self) -> bool {
        self.wrong.is_empty()
    }

    fn judge_blob(&mut self, blobs: &Blobs, evidence: &Evidence, number: Number) {
        let at = usize::try_from(number).unwrap_or(usize::MAX);
        let of = |tags: &[Option<Tag>]| tags.get(at).cloned().flatten();
        let (before, after) = (of(&evidence.before), of(&evidence.after));
        let fate = blobs.fate(number);
        let copy = evidence.dead.get(&number);
        self.due += u64::from(fate.is_due());
        self.to_move += u64::from(fate == Fate::Moved);
        let wrong = match (fate.is_due(), &after) {
            (true, Some(_)) => Some(Wrong::ExpiredLeft),
            (false, None) => Some(Wrong::UnexpiredGone),
            (false, Some(_)) if before != after => Some(Wrong::UnexpiredChanged),
            _ => None,
        };
        self.find_one(wrong, number);
        let wrong = match (fate, copy) {
            (Fate::Moved, None) if after.is_none() => Some(Wrong::CopyMissing),
            (Fate::Moved, Some(copy)) => {
                judge_copy(blobs, number, copy, (&before, &evidence.endpoint))
            }
            (_, Some(_)) => Some(Wrong::CopyUnexpected),
            _ => None,
        };
        self.find_one(wrong, number);
    }

    fn judge_workers(&mut self, evidence: &Evidence) {
        let workers = &evidence.workers;
        // When workers were killed, a page may be left for the next cycle: exit code 1.
        let allowed = |worker: &&Worker| match worker.exit {
            Some(0) => true,
            Some(1) => evidence.killed > 0,
            _ => false,
        };
        let failed = workers.iter().filter(|worker| !allowed(worker)).count();
        self.find(Wrong::WorkerFailed, failed as u64, None);
        let large = workers.iter().filter(|w| w.peak_bytes > MEMORY_MAX_BYTES);
        self.find(Wrong::Memory, large.count() as u64, None);
        if evidence.killed > 0 {
            // A worker that was killed reports nothing about its work.
            return;
        }
        let there = |tags: &[Option<Tag>]| tags.iter().flatten().count() as u64;
        let gone = there(&evidence.before).saturating_sub(there(&evidence.after));
        let removed: u64 = workers.iter().map(|worker| worker.removed).sum();
        self.find(Wrong::Miscounted, removed.abs_diff(gone), None);
        self.find(
            Wrong::DoneTwice,
            workers.iter().map(|worker| worker.gone).sum(),
            None,
        );
        let pages: u64 = workers.iter().map(|worker| worker.pages).sum();
        if pages >= JUDGED_PAGES * workers.len() as u64 {
            let far = workers.iter().map(|worker| share(worker, workers));
            let far = far.filter(|share| (share - 1.0).abs() > UNEVEN_MAX);
            self.find(Wrong::Uneven, far.count() as u64, None);
        }
    }

    fn find_one(&mut self, wrong: Option<Wrong>, number: Number) {
        if let Some(wrong) = wrong {
            self.find(wrong, 1, Some(number));
        }
    }

    fn find(&mut self, wrong: Wrong, times: u64, number: Option<Number>) {
        wrongs::note(&mut self.wrong, wrong, times, number);
    }
}

/// Returns the share of a worker, as a multiple of an even one.
pub fn share(worker: &Worker, workers: &[Worker]) -> f64 {
    let all: u64 = workers.iter().map(|worker| worker.handled).sum();
    worker.handled as f64 * workers.len() as f64 / (all.max(1) as f64)
}

/// Checks that a copy has the bytes of its source and the owner's metadata; metadata for the
/// sweeper is left only in the copy's history (docs/sweeper.md).
fn judge_copy(
    blobs: &Blobs,
    number: Number,
    copy: &Copy,
    (before, endpoint): (&Option<Tag>, &str),
) -> Option<Wrong> {
    if copy.content != blobs.content(number).as_bytes() {
        return Some(Wrong::CopyUnequal);
    }
    let mut expected = lower_case(&blobs.metadata(number));
    for (name, read) in [
        (provenance::ORIGINAL_TTL, "timetolive"),
        (provenance::ORIGINAL_DBC, "deadblobcontainer"),
    ] {
        let value = expected.remove(read).unwrap_or_default();
        expected.insert(name.to_ascii_lowercase(), value);
    }
    let own = blobs.place(number);
    let name = own.name.replace(' ', "%20");
    let uri = format!("{endpoint}/{}/{name}", own.container);
    expected.insert(provenance::SOURCE_URI.to_ascii_lowercase(), uri);
    let etag = before.as_ref().map_or("", |tag| tag.0.trim_matches('"'));
    expected.insert(
        provenance::SOURCE_ETAG.to_ascii_lowercase(),
        etag.to_owned(),
    );
    let mut found = lower_case(&copy.metadata);
    // The exact values are unknown here: it checks only that the entries exist.
    for name in [
        provenance::SOURCE_LAST_MODIFIED,
        provenance::DELETED_DUE,
        provenance::SWEEP_ID,
    ] {
        let said = found.remove(&name.to_ascii_lowercase());
        if said.is_none_or(|said| said.is_empty()) {
            return Some(Wrong::CopyMetadata);
        }
    }
    (found != expected).then_some(Wrong::CopyMetadata)
}

/// Names of metadata are case-insensitive.
fn lower_case(metadata: &Metadata) -> BTreeMap<String, String> {
    let pairs = metadata.iter();
    pairs
        .map(|(name, value)| (name.to_ascii_lowercase(), value.clone()))
        .collect()
}

impl fmt::Display for Account {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "{} blobs, {} due, {} of them to be moved; {} processes killed",
            self.put, self.due, self.to_move, self.killed
        )?;
        if self.is_clean() {
            return write!(out, "; every blob is where it should be");
        }
        wrongs::write(out, &self.wrong, Wrong::words)
    }
}

#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;
