//! Bringing blobs back from the places for dead blobs, by the history that a move writes down.
//!
//! The order is that of a move: copy on condition, verify, then delete the dead copy on condition;
//! at every instant the content stands in one place at least. The time to live is not brought back:
//! it is over, and the next sweep would take the blob again.
//!
//! Of several dead versions of one blob the newest takes its old place. Which one that is, shows
//! only when all were listed, so they are listed twice: first for that, then to bring them back.

use std::collections::BTreeMap;
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

/// Which blobs are to come back, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Undo {
    /// Where dead blobs are: containers of the account for them, with prefixes.
    pub from: Vec<(String, String)>,
    /// Only those that were moved at this time or later.
    pub since: Option<Timestamp>,
    /// Only those that this cycle moved.
    pub cycle: Option<u64>,
    /// Only those whose place was there: `container/prefix`.
    pub place: Option<String>,
    /// What happens when something stands at a blob's old place.
    pub on_collision: Collision,
    /// Whether a blob's own metadata are believed about where it came from, although the service
    /// has no record of that copy. Whoever may write to a place for dead blobs writes them.
    pub trust_metadata: bool,
    /// Whether nothing is to be written.
    pub dry_run: bool,
}

/// What became of one dead blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Undone {
    /// It is back, or would be in a dry run.
    Restored,
    /// It is back, and the dead copy stays: it was leased, changed, or may not be deleted.
    CopyKept,
    /// It does not say where it came from: no sweep moved it.
    NoHistory,
    /// It came from an account that is not configured.
    Elsewhere,
    /// It says that it came from a place that no sweep covers, or that of the state document.
    NotSwept,
    /// Only its metadata says where it came from; the service has no record of that copy.
    Unproven,
    /// A newer version of the same blob takes its old place.
    OlderVersion,
    /// Something stands at its old place.
    Collision,
    /// The dead copy itself is not complete.
    Incomplete,
    /// Archive tier: cannot be copied before it is rehydrated.
    Archived,
    /// Changed or removed while it was worked on.
    Changed,
    /// The copy failed or is not equal.
    CopyFailed,
    /// 401 or 403.
    Denied,
    /// Failed for another reason.
    Failed,
}

impl Undone {
    /// Whether somebody should look at it.
    pub const fn is_failure(self) -> bool {
        !matches!(self, Undone::Restored | Undone::NoHistory)
    }

    /// The word for it in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Undone::Restored => "restored",
            Undone::CopyKept => "copy_kept",
            Undone::NoHistory => "no_history",
            Undone::Elsewhere => "elsewhere",
            Undone::NotSwept => "not_swept",
            Undone::Unproven => "unproven",
            Undone::OlderVersion => "older_version",
            Undone::Collision => "collision",
            Undone::Incomplete => "incomplete",
            Undone::Archived => "archived",
            Undone::Changed => "changed",
            Undone::CopyFailed => "copy_failed",
            Undone::Denied => "denied",
            Undone::Failed => "failed",
        }
    }
}

/// One blob that came back, or did not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UndoRecord {
    /// The dead blob, `container/name`.
    pub from: String,
    /// Where it came from.
    pub to: String,
    /// What became of it.
    pub outcome: Undone,
    /// The time to live that it had.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_to_live: Option<String>,
    /// One line for people, where the outcome alone does not say it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// What became of all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct UndoReport {
    /// Whether nothing was written.
    pub dry_run: bool,
    /// Blobs by what became of them; those of other times or places are not counted.
    pub outcomes: BTreeMap<Undone, u64>,
    /// Bytes brought back.
    pub bytes: u64,
    /// The first blobs, except those without a history.
    pub blobs: Vec<UndoRecord>,
}

impl UndoReport {
    /// How many ended so.
    pub fn count(&self, undone: Undone) -> u64 {
        self.outcomes.get(&undone).copied().unwrap_or(0)
    }

    /// How many somebody should look at.
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
    /// Brings blobs back. `progress` hears of every blob.
    ///
    /// # Errors
    /// When the account for dead blobs is not configured, or a listing fails.
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
                    if let Found::Asked(asked) = search.find(item) {
                        newest.note(asked.history, Version::of(&place.0, item));
                    }
                }
            }
        }
        for place in &undo.from {
            let mut pages = Pages::new(place);
            while let Some(items) = pages.next(&search).await? {
                // One after the other: what is brought back is few, and its order is the report's.
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

/// What is looked for, and where.
struct Search<'a> {
    core: &'a Core,
    document: &'a Document,
    undo: &'a Undo,
    account: &'a Arc<dyn Storage>,
}

/// What a dead blob is to this undo.
enum Found {
    /// No sweep moved it.
    NoHistory,
    /// Not among those that were asked for.
    Other,
    /// It does not come back, whatever its metadata say.
    Refused(History, Undone, Option<&'static str>),
    Asked(Asked),
}

/// A dead blob that is to come back, and where to.
struct Asked {
    history: History,
    storage: Arc<dyn Storage>,
    source: BlobId,
}

impl Search<'_> {
    fn find(&self, item: &BlobItem) -> Found {
        let (seen, undo) = (&item.properties, self.undo);
        let Some(history) = History::read(&seen.metadata) else {
            return Found::NoHistory;
        };
        let too_old = undo.since.is_some_and(|since| seen.last_modified < since);
        let other_cycle = undo.cycle.is_some_and(|cycle| history.cycle != Some(cycle));
        if too_old || other_cycle {
            return Found::Other;
        }
        let Some((storage, source)) = restore::origin(self.core, self.document, &history) else {
            return Found::Refused(history, Undone::Elsewhere, None);
        };
        let old_place = format!("{}/{}", source.container, source.name);
        let mut asked = undo.place.iter();
        if asked.any(|place| !old_place.starts_with(place)) {
            return Found::Other;
        }
        if !restore::is_swept(self.core, self.document, storage.as_ref(), &source) {
            let remedy = "no sweep covers that place; --container NAME says that one does";
            return Found::Refused(history, Undone::NotSwept, Some(remedy));
        }
        if !undo.trust_metadata && !provenance::is_recorded(seen, &history.source_uri) {
            let remedy = "the service has no record of that copy; --trust-metadata believes it";
            return Found::Refused(history, Undone::Unproven, Some(remedy));
        }
        Found::Asked(Asked {
            history,
            storage,
            source,
        })
    }
}

/// The pages of a place for dead blobs.
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

/// A dead version of a blob. The greater one is the newer: that was written later, where the copies
/// say when, and moved later otherwise.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Version {
    changed: Timestamp,
    moved: Timestamp,
    from: String,
}

impl Version {
    fn of(container: &str, item: &BlobItem) -> Self {
        let moved = item.properties.last_modified;
        let history = History::read(&item.properties.metadata);
        Version {
            changed: history.and_then(|h| h.changed).unwrap_or(moved),
            moved,
            from: format!("{container}/{}", item.name),
        }
    }
}

/// By the URL of its source the version that takes its old place.
#[derive(Default)]
struct Newest(BTreeMap<String, Version>);

impl Newest {
    fn note(&mut self, history: History, version: Version) {
        let known = self.0.entry(history.source_uri);
        let known = known.or_insert_with(|| version.clone());
        if *known < version {
            *known = version;
        }
    }

    /// The other version that takes the place, if there is one. What came after the first listing
    /// does not: it might write over what this very undo has brought back.
    fn instead_of(&mut self, source_uri: &str, version: Version) -> Option<&str> {
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
        outcome = record.outcome.name(),
        detail = record.detail,
    );
}

/// One dead blob; `None` when it is not among those that were asked for.
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
        Found::NoHistory => return Some(record),
        Found::Other => return None,
        Found::Refused(history, outcome, remedy) => {
            record.outcome = outcome;
            record.to = history.source_uri;
            record.time_to_live = history.time_to_live;
            record.detail = remedy.map(str::to_owned);
            return Some(record);
        }
        Found::Asked(asked) => asked,
    };
    record.to.clone_from(&history.source_uri);
    record.time_to_live.clone_from(&history.time_to_live);
    let other = newest.instead_of(&history.source_uri, Version::of(container, item));
    let other = other.map(|from| format!("{from} takes its place"));
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
