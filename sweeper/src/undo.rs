//! Bringing blobs back from the places for dead blobs, by the history that a move writes down.
//!
//! The order is that of a move: copy on condition, verify, then delete the dead copy on condition;
//! at every instant the content stands in one place at least. The time to live is not brought back:
//! it is over, and the next sweep would take the blob again.

use std::collections::BTreeMap;

use serde::Serialize;
use smalt_protocol::Timestamp;
use smalt_sleeve::port::{BlobItem, ListBlobs};

use crate::config::Collision;
use crate::error::SweepError;
use crate::provenance::History;
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

    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Undone::Restored => "restored",
            Undone::CopyKept => "copy_kept",
            Undone::NoHistory => "no_history",
            Undone::Elsewhere => "elsewhere",
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
        for (container, prefix) in &undo.from {
            let place = (container.as_str(), prefix.as_str());
            undo_container(&core, &document, undo, place, &mut report, &progress).await?;
        }
        Ok(report)
    }
}

async fn undo_container(
    core: &Core,
    document: &Document,
    undo: &Undo,
    (container, prefix): (&str, &str),
    report: &mut UndoReport,
    progress: &(impl Fn(&UndoReport) + Send),
) -> Result<(), SweepError> {
    let name = core.config.dead.account.as_deref().unwrap_or("default");
    let missing = || SweepError::Config(format!("no account `{name}` is configured"));
    let account = core.accounts.get(name).ok_or_else(missing)?;
    let mut marker = None;
    loop {
        let list = ListBlobs {
            prefix: prefix.to_owned(),
            marker,
            page_size: core.config.page_size,
            tags: false,
        };
        let cx = core.context("undo");
        let call = || account.list_blobs(&cx, container, &list);
        let calls = &core.calls;
        let page = calls.repeated(&core.entropy, "list_blobs", call).await?;
        // One after the other: what is brought back is few, and its order is the report's.
        for item in &page.blobs {
            let bytes = item.properties.length;
            if let Some(record) = undo_blob(core, document, undo, container, item).await {
                log(&record);
                report.add(record, bytes);
                progress(report);
            }
        }
        marker = page.next_marker;
        if marker.is_none() {
            return Ok(());
        }
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
    core: &Core,
    document: &Document,
    undo: &Undo,
    container: &str,
    item: &BlobItem,
) -> Option<UndoRecord> {
    let seen = &item.properties;
    let mut record = UndoRecord {
        from: format!("{container}/{}", item.name),
        to: String::new(),
        outcome: Undone::NoHistory,
        time_to_live: None,
        detail: None,
    };
    let Some(history) = History::read(&seen.metadata) else {
        return Some(record);
    };
    let too_old = undo.since.is_some_and(|since| seen.last_modified < since);
    let other_cycle = undo.cycle.is_some_and(|cycle| history.cycle != Some(cycle));
    if too_old || other_cycle {
        return None;
    }
    record.to.clone_from(&history.source_uri);
    record.time_to_live.clone_from(&history.time_to_live);
    let Some((storage, source)) = restore::origin(core, document, &history) else {
        record.outcome = Undone::Elsewhere;
        return Some(record);
    };
    let old_place = format!("{}/{}", source.container, source.name);
    if undo
        .place
        .as_ref()
        .is_some_and(|place| !old_place.starts_with(place))
    {
        return None;
    }
    let dead = Dead::new(core, container, item).await;
    let restored = restore::restore(core, &dead?, storage.as_ref(), source, undo).await;
    (record.to, record.outcome, record.detail) = restored;
    Some(record)
}
