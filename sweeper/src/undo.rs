//! Restores moved blobs from the recorded history of their moves.
//!
//! The order is that of a move: copy conditionally, verify, then delete the dead copy
//! conditionally, so that the content always exists in at least one place. The time to live is not
//! restored: it has passed, and the next sweep would remove the blob again.
//!
//! The newest of several dead versions of one blob takes the original place. It is known only after
//! all were listed, so they are listed twice: first to find it, then to restore.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use smalt_protocol::Timestamp;
use smalt_sleeve::port::{BlobId, BlobItem, ListBlobs, Storage};

use crate::config::Collision;
use crate::error::SweepError;
use crate::provenance::{self, History};
use crate::report::FAILURES_MAX;
use crate::restore::{self, Dead};
use crate::shared::{Core, Stop};
use crate::state::Document;
use crate::sweeper::Sweeper;

/// Selects the blobs to restore, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Undo {
    /// Places to search: containers of the account for dead blobs, with prefixes.
    pub from: Vec<(String, String)>,
    /// Selects blobs that were moved at or after this time.
    pub since: Option<Timestamp>,
    /// Selects blobs that this cycle moved.
    pub cycle: Option<u64>,
    /// Selects blobs whose original place starts with `container/prefix`.
    pub place: Option<String>,
    /// What happens if another blob exists at the original place.
    pub on_collision: Collision,
    /// Whether to believe a blob's metadata about its origin even if the service has no record of
    /// the copy. Anyone who can write to the dead container can forge them.
    pub trust_metadata: bool,
    /// Whether to write nothing.
    pub dry_run: bool,
}

/// The result for one dead blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Undone {
    /// Restored, or would be in a dry run.
    Restored,
    /// Restored, but the dead copy stays: it was leased, changed, or may not be deleted.
    CopyKept,
    /// No origin is recorded: no sweep moved the blob.
    NoHistory,
    /// The origin is in an account that is not configured.
    Elsewhere,
    /// The recorded origin is not covered by any sweep, or is the place of the state document.
    NotSwept,
    /// Only the metadata name the origin; the service has no record of that copy.
    Unproven,
    /// A newer version of the same blob takes the original place.
    OlderVersion,
    /// Another blob exists at the original place.
    Collision,
    /// The dead copy itself is not complete.
    Incomplete,
    /// In the archive tier: must be rehydrated before it can be copied.
    Archived,
    /// Changed or removed in the meantime.
    Changed,
    /// The copy failed or does not equal the dead blob.
    CopyFailed,
    /// The service answered 401 or 403.
    Denied,
    /// Failed for another reason.
    Failed,
}

impl Undone {
    /// Returns whether the result needs attention.
    pub const fn is_failure(self) -> bool {
        !matches!(self, Undone::Restored | Undone::NoHistory)
    }
}

/// The name used in reports.
impl fmt::Display for Undone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// The result for one blob, with its places.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UndoRecord {
    /// The dead blob, as `container/name`.
    pub from: String,
    /// The original place.
    pub to: String,
    /// Result for this blob.
    pub outcome: Undone,
    /// The original time to live.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_to_live: Option<String>,
    /// One line of text where the outcome alone is not clear.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// The results for all blobs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct UndoReport {
    /// Whether this was a dry run, which writes nothing.
    pub dry_run: bool,
    /// Number of blobs per result; blobs that were not selected are not counted.
    pub outcomes: BTreeMap<Undone, u64>,
    /// Bytes restored.
    pub bytes: u64,
    /// The first blobs, except those without a history.
    pub blobs: Vec<UndoRecord>,
}

impl UndoReport {
    /// Returns the number of blobs with this result.
    pub fn count(&self, undone: Undone) -> u64 {
        self.outcomes.get(&undone).copied().unwrap_or(0)
    }

    /// Returns the number of blobs that need attention.
    pub fn failed(&self) -> u64 {
        let failed = self
            .outcomes
            .iter()
            .filter(|(undone, _)| undone.is_failure());
        failed.map(|(_, count)| count).sum()
    }

    fn add(&mut self, record: UndoRecord, bytes: u64) {
        *self.outcomes.entry(record.outcome).or_insert(0) += 1;
        if matches!(record.outcome, Undone::Restored | Undone::CopyKept) {
            self.bytes = self.bytes.saturating_add(bytes);
        }
        if record.outcome != Undone::NoHistory && self.blobs.len() < FAILURES_MAX {
            self.blobs.push(record);
        }
    }
}

impl Sweeper {
    /// Restores blobs. Calls `progress` after every blob.
    ///
    /// # Errors
    /// If the account for dead blobs is not configured, or a listing fails.
    pub async fn undo(
        &self,
        undo: &Undo,
        progress: impl Fn(&UndoReport) + Send,
    ) -> Result<UndoReport, SweepError> {
        let core = self.core(Stop::default());
        let document = self.document_or_none(&core).await?;
        let mut report = UndoReport {
            dry_run: undo.dry_run,
            ..UndoReport::default()
        };
        let search = Search {
            core: &core,
            document: &document,
            undo,
            account: dead_account(&core)?,
        };
        let mut newest = Newest::default();
        for place in &undo.from {
            let mut pages = Pages::new(place);
            while let Some(items) = pages.next(&search).await? {
                for item in &items {
                    if let Selection::Asked(asked) = search.find(item) {
                        newest.note(asked.history, DeadVersion::of(&place.0, item));
                    }
                }
            }
        }
        for place in &undo.from {
            let mut pages = Pages::new(place);
            while let Some(items) = pages.next(&search).await? {
                // Sequential: there are few blobs to restore, and the report keeps their order.
                for item in &items {
                    let bytes = item.properties.length;
                    if let Some(record) = undo_blob(&search, &mut newest, &place.0, item).await {
                        log(&record);
                        report.add(record, bytes);
                        progress(&report);
                    }
                }
            }
        }
        Ok(report)
    }
}

fn dead_account(core: &Core) -> Result<&Arc<dyn Storage>, SweepError> {
    let name = core.config.dead.account.as_deref().unwrap_or("default");
    let missing = || SweepError::Config(format!("no account `{name}` is configured"));
    core.accounts.get(name).ok_or_else(missing)
}

struct Search<'a> {
    core: &'a Core,
    document: &'a Document,
    undo: &'a Undo,
    account: &'a Arc<dyn Storage>,
}

/// How a dead blob relates to this undo.
enum Selection {
    /// No sweep moved it.
    NoHistory,
    /// The selection does not include it.
    Other,
    /// It is not restored, whatever its metadata say.
    Refused(History, Undone, Option<&'static str>),
    Asked(Asked),
}

/// A selected dead blob and its original place.
struct Asked {
    history: History,
    storage: Arc<dyn Storage>,
    source: BlobId,
}

impl Search<'_> {
    fn find(&self, item: &BlobItem) -> Selection {
        let (seen, undo) = (&item.properties, self.undo);
        let Some(history) = History::read(&seen.metadata) else {
            return Selection::NoHistory;
        };
        let too_old = undo.since.is_some_and(|since| seen.last_modified < since);
        let other_cycle = undo.cycle.is_some_and(|cycle| history.cycle != Some(cycle));
        if too_old || other_cycle {
            return Selection::Other;
        }
        let Some((storage, source)) = restore::origin(self.core, self.document, &history) else {
            return Selection::Refused(history, Undone::Elsewhere, None);
        };
        let old_place = format!("{}/{}", source.container, source.name);
        let mut asked = undo.place.iter();
        if asked.any(|place| !old_place.starts_with(place)) {
            return Selection::Other;
        }
        if !restore::is_swept(self.core, self.document, storage.as_ref(), &source) {
            let remedy = "no sweep covers that place; --container NAME declares one";
            return Selection::Refused(history, Undone::NotSwept, Some(remedy));
        }
        if !undo.trust_metadata && !provenance::is_recorded(seen, &history.source_uri) {
            let remedy = "the service has no record of that copy; --trust-metadata accepts it";
            return Selection::Refused(history, Undone::Unproven, Some(remedy));
        }
        Selection::Asked(Asked {
            history,
            storage,
            source,
        })
    }
}

/// The listing pages of a place for dead blobs.
struct Pages<'a> {
    place: &'a (String, String),
    marker: Option<String>,
    ended: bool,
}

impl<'a> Pages<'a> {
    fn new(place: &'a (String, String)) -> Self {
        Pages {
            place,
            marker: None,
            ended: false,
        }
    }

    async fn next(&mut self, search: &Search<'_>) -> Result<Option<Vec<BlobItem>>, SweepError> {
        if self.ended {
            return Ok(None);
        }
        let core = search.core;
        let (container, prefix) = self.place;
        let list = ListBlobs {
            prefix: prefix.clone(),
            marker: self.marker.take(),
            page_size: core.config.page_size,
            tags: false,
        };
        let account = core.paced(search.account.as_ref(), "undo");
        let page = account.list_blobs(container, &list).await?;
        self.marker = page.next_marker;
        self.ended = self.marker.is_none();
        Ok(Some(page.blobs))
    }
}

/// A dead version of a blob. Versions order by the recorded Last-Modified of the source (or the
/// time of the move if it is not recorded), then by the time of the move.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct DeadVersion {
    changed: Timestamp,
    moved: Timestamp,
    from: String,
}

impl DeadVersion {
    fn of(container: &str, item: &BlobItem) -> Self {
        let moved = item.properties.last_modified;
        let history = History::read(&item.properties.metadata);
        DeadVersion {
            changed: history.and_then(|h| h.changed).unwrap_or(moved),
            moved,
            from: format!("{container}/{}", item.name),
        }
    }
}

/// The version that takes the original place, by the URL of the source.
#[derive(Default)]
struct Newest(BTreeMap<String, DeadVersion>);

impl Newest {
    fn note(&mut self, history: History, version: DeadVersion) {
        let known = self.0.entry(history.source_uri);
        let known = known.or_insert_with(|| version.clone());
        if *known < version {
            *known = version;
        }
    }

    /// Returns the other version that takes the place, if any. Versions that appeared after the
    /// first listing do not count: they could overwrite a blob that this undo has restored.
    fn instead_of(&mut self, source_uri: &str, version: DeadVersion) -> Option<&str> {
        let known = self.0.entry(source_uri.to_owned());
        let taken = known.or_insert_with(|| version.clone());
        (taken.from != version.from).then_some(taken.from.as_str())
    }
}

fn log(record: &UndoRecord) {
    tracing::debug!(
        op = "undo",
        from = record.from,
        to = record.to,
        outcome = record.outcome.to_string(),
        detail = record.detail,
    );
}

/// Processes one dead blob; `None` if it was not selected.
async fn undo_blob(
    search: &Search<'_>,
    newest: &mut Newest,
    container: &str,
    item: &BlobItem,
) -> Option<UndoRecord> {
    let mut record = UndoRecord {
        from: format!("{container}/{}", item.name),
        to: String::new(),
        outcome: Undone::NoHistory,
        time_to_live: None,
        detail: None,
    };
    let Asked {
        history,
        storage,
        mut source,
    } = match search.find(item) {
        Selection::NoHistory => return Some(record),
        Selection::Other => return None,
        Selection::Refused(history, outcome, remedy) => {
            record.outcome = outcome;
            record.to = history.source_uri;
            record.time_to_live = history.time_to_live;
            record.detail = remedy.map(str::to_owned);
            return Some(record);
        }
        Selection::Asked(asked) => asked,
    };
    record.to.clone_from(&history.source_uri);
    record.time_to_live.clone_from(&history.time_to_live);
    let other = newest.instead_of(&history.source_uri, DeadVersion::of(container, item));
    let other = other.map(|from| format!("{from} is newer and takes its place"));
    if other.is_some() && search.undo.on_collision != Collision::Suffix {
        record.outcome = Undone::OlderVersion;
        record.detail = other;
        return Some(record);
    }
    let dead = Dead::new(search.core, container, item).await?;
    if other.is_some() {
        let Some(beside) = dead.beside(&source) else {
            record.outcome = Undone::Collision;
            return Some(record);
        };
        source = beside;
    }
    let restored = restore::restore(search.core, &dead, storage.as_ref(), source, search.undo);
    (record.to, record.outcome, record.detail) = restored.await;
    Some(record)
}
