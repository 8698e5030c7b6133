//! The account of a run: from what was put, what is there afterwards, and what the workers say, to
//! what went wrong.

use std::collections::BTreeMap;
use std::fmt;

use bytes::Bytes;
use smalt_sleeve::port::{Metadata, Tag};
use smalt_sweeper::provenance;

use super::blobs::{Blobs, Fate, Number};
use crate::fleet::wrongs::{self, Wrongs};

/// A worker's part may be so far from the even one, in parts of it.
pub const UNEVEN_MAX: f64 = 0.2;
/// From so many pages for each worker on the parts are judged: of few pages one is much.
const JUDGED_PAGES: u64 = 25;
/// Most memory of a worker.
pub const MEMORY_MAX_BYTES: u64 = 50 * 1024 * 1024;

/// A copy among the dead blobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copy {
    /// Its content.
    pub content: Bytes,
    /// Its metadata.
    pub metadata: Metadata,
}

/// What a worker that ended by itself said.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Worker {
    /// Its name.
    pub name: String,
    /// Its exit code; a signal leaves none.
    pub exit: Option<i32>,
    /// Pages that it listed.
    pub pages: u64,
    /// Blobs that it looked at.
    pub handled: u64,
    /// Blobs that it deleted or moved.
    pub removed: u64,
    /// Due blobs that were gone when it came to them.
    pub gone: u64,
    /// Its calls.
    pub calls: u64,
    /// The most resident memory that was seen, in bytes.
    pub peak_bytes: u64,
    /// Time on processors that was seen, in seconds.
    pub cpu_s: f64,
}

/// What a run left behind.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// Version of each blob before the sweep.
    pub before: Vec<Option<Tag>>,
    /// Version of each blob that is there after it.
    pub after: Vec<Option<Tag>>,
    /// The copies of each blob.
    pub dead: BTreeMap<Number, Copy>,
    /// Places of blobs that are nobody's.
    pub foreign: Vec<String>,
    /// The workers that ended by themselves.
    pub workers: Vec<Worker>,
    /// Workers that were killed.
    pub killed: u64,
    /// Sweeps that did not end.
    pub stuck: u64,
    /// What `SourceUri` of a copy begins with.
    pub endpoint: String,
}

/// Something that must not happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Wrong {
    /// A blob whose time is not over is gone.
    UnexpiredGone,
    /// A blob whose time is not over is another version.
    UnexpiredChanged,
    /// A blob whose time is over is still there.
    ExpiredLeft,
    /// A blob that was to be kept elsewhere is gone, and there is no copy.
    CopyMissing,
    /// A copy has other bytes than its source had.
    CopyUnequal,
    /// A copy has other metadata than it should.
    CopyMetadata,
    /// A copy of a blob that was not to be moved, or is at two places.
    CopyUnexpected,
    /// A blob that nobody put.
    Foreign,
    /// A worker ended badly.
    WorkerFailed,
    /// A sweep did not end.
    Stuck,
    /// What the workers say that they removed is not what is gone.
    Miscounted,
    /// Blobs that a worker wanted to remove were gone already.
    DoneTwice,
    /// A worker did much more or less than its part.
    Uneven,
    /// A worker took too much memory.
    Memory,
}

impl Wrong {
    const fn words(self) -> &'static str {
        match self {
            Wrong::UnexpiredGone => "not due, and gone",
            Wrong::UnexpiredChanged => "not due, and changed",
            Wrong::ExpiredLeft => "due, and still there",
            Wrong::CopyMissing => "to be kept elsewhere, and gone without a copy",
            Wrong::CopyUnequal => "copies with other bytes than their source",
            Wrong::CopyMetadata => "copies with other metadata than they should have",
            Wrong::CopyUnexpected => "copies of what is there or was to be deleted",
            Wrong::Foreign => "blobs that nobody put",
            Wrong::WorkerFailed => "workers that ended badly",
            Wrong::Stuck => "sweeps that did not end",
            Wrong::Miscounted => "removals told more or fewer than blobs gone",
            Wrong::DoneTwice => "blobs that were gone when a worker came to them",
            Wrong::Uneven => "workers that did not do about an even part",
            Wrong::Memory => "workers with more than 50 MiB",
        }
    }
}

/// The account.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Account {
    /// Blobs that were put.
    pub put: u64,
    /// Of them due.
    pub due: u64,
    /// Of those to be kept elsewhere.
    pub to_move: u64,
    /// Processes that were killed.
    pub killed: u64,
    /// How often each wrong thing happened, and the first numbers of it.
    pub wrong: Wrongs<Wrong>,
}

impl Account {
    /// Makes the account.
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

    /// Whether nothing is wrong.
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
        // Where workers died a page may have been given up until the next cycle: exit code 1.
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
            // Who dies says nothing of what it did.
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

/// The part of a worker, as a multiple of the even one.
#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
pub fn share(worker: &Worker, workers: &[Worker]) -> f64 {
    let all: u64 = workers.iter().map(|worker| worker.handled).sum();
    worker.handled as f64 * workers.len() as f64 / (all.max(1) as f64)
}

/// A copy has the bytes of its source and the owner's metadata; of what the sweeper reads nothing
/// is left but in its history (docs/sweeper.md).
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
    // When it was changed, was due, and by whom it was swept: only that it is said is known here.
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

/// Names of metadata have no case.
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
