//! Processes a claimed page: each blob on its own, a bounded number at a time (S26, DS1).

use std::pin::pin;

use futures_util::stream::{self, StreamExt};
use smalt_sleeve::port::{
    BlobId, BlobItem, BlobProperties, Conditions, ErrorKind, PortError, PortResult,
};
use tokio::time::Instant;

use crate::calls::lock;
use crate::carried;
use crate::claim::{ClaimedPage, Completion};
use crate::decide::{self, Decision};
use crate::error::SweepError;
use crate::listing;
use crate::mover;
use crate::outcome::Outcome;
use crate::plan::CALLS_PER_MOVE;
use crate::report::{self, BlobRecord};
use crate::rule::tag_condition;
use crate::shared::Core;
use crate::state::Tally;
use crate::state::ledger;
use crate::store::{self, Patience};

/// How often a blob that changed during processing is decided again (D1: once).
const SECOND_LOOKS: u32 = 1;

/// The outcome of a blob, with a line of text where the outcome alone is not clear.
pub(crate) struct Done {
    pub(crate) outcome: Outcome,
    pub(crate) detail: Option<String>,
}

impl From<Outcome> for Done {
    fn from(outcome: Outcome) -> Self {
        Done {
            outcome,
            detail: None,
        }
    }
}

impl Done {
    pub(crate) fn with(outcome: Outcome, detail: impl std::fmt::Display) -> Self {
        Done {
            outcome,
            detail: Some(smalt_sleeve::redact(&detail.to_string())),
        }
    }
}

/// Processes a page. Returns `None` if another worker has reclaimed it; then nothing may be
/// written.
pub(crate) async fn work(core: &Core, page: &ClaimedPage) -> Option<Completion> {
    let mut tally = Tally::default();
    let (mut handled, mut denied) = (0, 0);
    {
        // A worker that is stopping (SL5), or has spent the day's budget, finishes the blobs it has
        // begun and begins no other.
        let goes_on = |_: &&_| !core.stop.is_set() && !core.exceeds_budget(CALLS_PER_MOVE);
        let begun = page.actions.iter().take_while(goes_on);
        let running = stream::iter(begun)
            .map(|(item, decision)| handle(core, page, item, decision.clone()))
            .buffer_unordered(core.config.parallelism);
        let mut running = pin!(running);
        let mut lost = pin!(keep(core, page));
        loop {
            let record = tokio::select! {
                biased;
                record = running.next() => record,
                () = &mut lost => {
                    tracing::warn!(page = page.page.id, "the page was reclaimed by another worker");
                    return None;
                }
            };
            let Some(record) = record else { break };
            if record.outcome == Outcome::Stopped {
                continue;
            }
            handled += 1;
            denied += usize::from(record.outcome == Outcome::Denied);
            report::count(&mut tally, record.outcome, record.length);
            lock(&core.report).blob(&page.label, &record);
        }
    }
    let finished = handled == page.actions.len();
    if finished {
        tally.add(&page.kept.tally);
        page.kept.note(core, &page.page.id, &page.label);
    } else {
        tally.seen = handled as u64;
    }
    Some(Completion {
        id: page.page.id.clone(),
        fence: page.page.fence,
        tally,
        finished,
        // A single denial may concern the destination; a whole page of denials means the
        // credential.
        denied: handled > 0 && denied == handled,
    })
}

/// Extends the deadline of the page repeatedly; returns when another worker owns it.
async fn keep(core: &Core, page: &ClaimedPage) {
    let deadline = core.config.page_deadline;
    let mut pause = deadline / 2;
    loop {
        tokio::time::sleep(pause).await;
        pause = match extend(core, page).await {
            Ok(true) => deadline / 2,
            Ok(false) => return,
            // Tries once more before the deadline. After it other workers may take the page, which
            // is harmless.
            Err(_) => deadline / 8,
        };
    }
}

async fn extend(core: &Core, page: &ClaimedPage) -> Result<bool, SweepError> {
    loop {
        let mut session = store::open(core, Patience::Unlimited).await?;
        let mut document = session.document.clone();
        let (id, fence) = (page.page.id.as_str(), page.page.fence);
        ledger::stamp(&mut document, &core.worker);
        let by = core.config.page_deadline;
        let owned = ledger::extend(&mut document, id, fence, core.now(), by);
        let written = if owned {
            session.commit(document).await
        } else {
            Ok(true)
        };
        session.close().await;
        if written? {
            return Ok(owned);
        }
    }
}

/// Carries out the decision for one blob; decides once more if the blob has another version.
async fn handle(
    core: &Core,
    page: &ClaimedPage,
    item: &BlobItem,
    decision: Decision,
) -> BlobRecord {
    let began = Instant::now();
    let blob = BlobId::new(&page.place.container, &item.name);
    let mut seen = item.properties.clone();
    let mut decision = decision;
    let mut looks = 0;
    let done = loop {
        let done = execute(core, page, &blob, &seen, &decision).await;
        if done.outcome != Outcome::Changed || looks == SECOND_LOOKS || !decision.removes() {
            break done;
        }
        looks += 1;
        match page.source(core).blob_properties(&blob).await {
            Ok((newer, now)) => {
                let storage = page.place.storage.as_ref();
                let newer = carried::with_tags(core, storage, &blob, newer).await;
                let scene = listing::scene(core, &page.place, &page.swept);
                let policy = core.policy();
                decision = decide::decide(&policy, &scene, &blob.name, &newer, now);
                seen = newer;
                if !decision.removes() {
                    // The owner extended or replaced the blob, which is its outcome.
                    break Done::from(Outcome::Changed);
                }
            }
            Err(error) if error.kind == ErrorKind::NotFound => break Outcome::Gone.into(),
            Err(error) => break failed(&error),
        }
    };
    let record = BlobRecord {
        container: blob.container,
        blob: blob.name,
        etag: seen.etag.0,
        length: seen.length,
        outcome: done.outcome,
        detail: done.detail,
    };
    record.log(&page.page.id, Some(began.elapsed()));
    record
}

async fn execute(
    core: &Core,
    page: &ClaimedPage,
    blob: &BlobId,
    seen: &BlobProperties,
    decision: &Decision,
) -> Done {
    match decision {
        Decision::Keep(outcome) => (*outcome).into(),
        Decision::Delete { .. } => match delete(core, page, blob, seen).await {
            Ok(()) => Outcome::Deleted.into(),
            Err(error) => failed(&error),
        },
        Decision::Move { due, destination } => {
            let moving = mover::Moving {
                core,
                page,
                blob,
                seen,
                due: *due,
            };
            mover::move_blob(&moving, destination).await
        }
    }
}

/// Deletes exactly the version that was decided about (DS6).
pub(crate) async fn delete(
    core: &Core,
    page: &ClaimedPage,
    blob: &BlobId,
    seen: &BlobProperties,
) -> PortResult<()> {
    let mut conditions = Conditions::matching(&seen.etag);
    conditions.if_tags = tag_condition(&core.policy(), &page.place.container, &blob.name, seen);
    let snapshots = core.config.snapshots;
    let source = page.source(core);
    source.delete_blob(blob, &conditions, snapshots).await
}

/// Returns the outcome for a failed call on the source (D1, D4).
pub(crate) fn failed(error: &PortError) -> Done {
    let outcome = match error.kind {
        ErrorKind::NotFound => return Outcome::Gone.into(),
        ErrorKind::ConditionNotMet => return Outcome::Changed.into(),
        ErrorKind::Leased | ErrorKind::LeaseTaken | ErrorKind::LeaseLost => Outcome::Leased,
        ErrorKind::SnapshotsPresent => Outcome::SnapshotsPresent,
        ErrorKind::Immutable => Outcome::Immutable,
        ErrorKind::Archived => Outcome::Archived,
        ErrorKind::CopyPending => Outcome::Changed,
        ErrorKind::Denied => Outcome::Denied,
        ErrorKind::Busy
        | ErrorKind::OutcomeUnknown
        | ErrorKind::Unreachable
        | ErrorKind::Untrusted => Outcome::Deferred,
        ErrorKind::Invalid
        | ErrorKind::Refused
        | ErrorKind::AlreadyExists
        | ErrorKind::ReceiptMismatch => Outcome::Failed,
    };
    Done::with(outcome, error)
}
