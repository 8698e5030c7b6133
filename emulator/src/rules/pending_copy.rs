//! Copies that take their time: pending, then done or failed, by the emulator's clock alone.
//!
//! Sources: "Copy Blob", "Get Blob Properties". A copy that is planned to end keeps what the blob
//! will have then in its record; nothing runs meanwhile. Whoever looks at the blob settles it: once
//! the time has come, the blob is what it was going to be, since that moment.

use serde::{Deserialize, Serialize};
use smalt_protocol::time::{DAY_S, TICKS_PER_SECOND};
use smalt_protocol::{ETag, Timestamp};

use crate::records::{BlobContent, BlobKind, BlobRecord, CopyRecord, CopyStatus, PendingCopy};

/// What is not copied within two weeks fails. "Copy Blob".
const LONGEST_S: u64 = 14 * DAY_S;
/// What is said of it. Same page.
const CANCELLED: &str = "500 OperationCancelled \"Copy failed.\"";
/// What is said of a copy whose source was changed or deleted meanwhile. The form is that of "Get
/// Blob Properties", on `x-ms-copy-status-description`.
pub const SOURCE_CHANGED: &str = "412 ConditionNotMet \"Copy failed when reading the source.\"";

/// How long a copy is held pending. Neither duration nor rate: until it is aborted, or has failed
/// after two weeks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hold {
    /// How long it takes, in seconds.
    #[serde(default)]
    pub duration_s: Option<u64>,
    /// In place of it: how many bytes are copied in a second.
    #[serde(default)]
    pub bytes_per_s: Option<u64>,
    /// It fails in the end, and `x-ms-copy-status-description` says this.
    #[serde(default)]
    pub failure: Option<String>,
}

/// What becomes of a copy of this many bytes that a rule holds pending from now on; absent where it
/// is done at once.
pub fn plan(hold: &Hold, length: u64, began: Timestamp) -> Option<PendingCopy> {
    let by_duration = hold.duration_s.map(|s| s.saturating_mul(TICKS_PER_SECOND));
    let by_rate = hold.bytes_per_s.map(|rate| {
        let ticks = u128::from(length) * u128::from(TICKS_PER_SECOND);
        u64::try_from(ticks / u128::from(rate.max(1))).unwrap_or(u64::MAX)
    });
    let longest = LONGEST_S * TICKS_PER_SECOND;
    let ticks = by_duration.or(by_rate).unwrap_or(longest);
    let failure = if ticks >= longest {
        Some(CANCELLED.to_owned())
    } else {
        hold.failure.clone()
    };
    let ends = began.plus_ticks(ticks.min(longest));
    // The time is told by tags as well: the last one before the end must still be free.
    (ends > began.plus_ticks(1)).then_some(PendingCopy {
        began,
        ends,
        failure,
        content: BlobContent::Empty,
        content_md5: None,
    })
}

/// A blob whose copy is pending: empty, or zeros where it has pages. What the plan leads to is kept
/// with it; where it leads to a failure, nothing is, and the content is handed back.
pub fn begin(blob: &mut BlobRecord, plan: PendingCopy) -> Option<BlobContent> {
    let total = blob.length;
    let content = std::mem::replace(&mut blob.content, BlobContent::Empty);
    let content_md5 = blob.headers.content_md5.take();
    if blob.kind != BlobKind::Page {
        blob.length = 0;
    }
    let fails = plan.failure.is_some();
    if let Some(copy) = &mut blob.copy {
        *copy = CopyRecord {
            status: CopyStatus::Pending,
            progress: (0, total),
            completed: None,
            pending: Some(PendingCopy {
                content: if fails { BlobContent::Empty } else { content },
                content_md5,
                ..plan
            }),
            ..copy.clone()
        };
    }
    fails.then_some(content)
}

/// The blob as it stands at a time.
pub fn settle(blob: &mut BlobRecord, now: Timestamp) {
    let Some(copy) = &mut blob.copy else {
        return;
    };
    let total = copy.progress.1;
    let pending = match &copy.pending {
        Some(pending) if now < pending.ends => {
            copy.progress.0 = progress(pending, total, now);
            return;
        }
        _ => copy.pending.take(),
    };
    let Some(pending) = pending else {
        return;
    };
    copy.completed = Some(pending.ends);
    blob.last_modified = pending.ends;
    // No later write has this tag: whatever is written at the end or after it has a higher one.
    let before = pending.ends.ticks().saturating_sub(1);
    blob.etag = ETag::from_tick(Timestamp::from_ticks(before));
    match pending.failure {
        Some(failure) => {
            copy.status = CopyStatus::Failed;
            copy.description = Some(failure);
            blob.length = 0;
        }
        None => {
            copy.status = CopyStatus::Success;
            copy.progress.0 = total;
            blob.content = pending.content;
            blob.headers.content_md5 = pending.content_md5;
            blob.length = total;
        }
    }
}

/// Ends a pending copy before its time; the content that nobody waits for any more. The blob is
/// left empty, with its metadata, and is `modified` with a new tag.
pub fn stop(
    blob: &mut BlobRecord,
    status: CopyStatus,
    description: Option<&str>,
    (etag, modified): (ETag, Timestamp),
) -> BlobContent {
    blob.etag = etag;
    blob.last_modified = modified;
    blob.length = 0;
    let Some(copy) = &mut blob.copy else {
        return BlobContent::Empty;
    };
    copy.status = status;
    copy.completed = Some(modified);
    copy.description = description.map(str::to_owned);
    copy.pending
        .take()
        .map_or(BlobContent::Empty, |pending| pending.content)
}

/// Whether a copy into the blob is under way. The blob is settled.
pub fn is_pending(blob: &BlobRecord) -> bool {
    let copy = blob.copy.as_ref();
    copy.is_some_and(|copy| copy.status == CopyStatus::Pending)
}

/// As much of the bytes as of the time; nothing of a copy that comes to nothing.
fn progress(pending: &PendingCopy, total: u64, now: Timestamp) -> u64 {
    if pending.failure.is_some() {
        return 0;
    }
    let ticks = |until: Timestamp| u128::from(until.ticks().saturating_sub(pending.began.ticks()));
    let share = u128::from(total) * ticks(now) / ticks(pending.ends).max(1);
    u64::try_from(share).unwrap_or(total).min(total)
}

#[cfg(test)]
mod tests;
