//! Asynchronous copies: pending, then successful or failed, driven by the emulator's clock alone.
//!
//! Sources: "Copy Blob", "Get Blob Properties". The record of a pending copy contains the content
//! that the blob will have; nothing runs meanwhile. Every access settles the blob first: once the
//! end has passed, the blob has its final content, as of that end.

use serde::{Deserialize, Serialize};
use smalt_protocol::time::{DAY_S, TICKS_PER_SECOND};
use smalt_protocol::{ETag, Timestamp};

use crate::records::{BlobContent, BlobKind, BlobRecord, CopyRecord, CopyStatus, PendingCopy};

/// A copy that takes two weeks fails. "Copy Blob".
const LONGEST_S: u64 = 14 * DAY_S;
/// Status description of a copy that takes too long. Same page.
const CANCELLED: &str = "500 OperationCancelled \"Copy failed.\"";
/// Status description of a copy whose source was changed or deleted meanwhile. The form is that of
/// "Get Blob Properties", `x-ms-copy-status-description`.
pub const SOURCE_CHANGED: &str = "412 ConditionNotMet \"Copy failed when reading the source.\"";

/// How long a copy stays pending. Without a duration and a rate it is pending until it is aborted,
/// or fails after two weeks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hold {
    /// Duration in seconds; takes precedence over `bytes_per_s`.
    #[serde(default)]
    pub duration_s: Option<u64>,
    /// Speed in bytes per second.
    #[serde(default)]
    pub bytes_per_s: Option<u64>,
    /// If set, the copy fails in the end with this `x-ms-copy-status-description`.
    #[serde(default)]
    pub failure: Option<String>,
}

/// Plans a copy of `length` bytes that starts at `began`; `None` if it completes at once.
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
    // The `ETag` of the end is the tick before it, which must differ from the `ETag` of the start.
    (ends > began.plus_ticks(1)).then_some(PendingCopy {
        began,
        ends,
        failure,
        content: BlobContent::Empty,
        content_md5: None,
        thaws: false,
    })
}

/// Makes the copy pending: empties the blob, or zeroes it if it is a page blob. Stores the final
/// content in the pending copy, or returns it if the copy is planned to fail.
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

/// Updates the blob to its state at `now`: the progress of a pending copy, or its outcome.
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
    // No later write has this `ETag`: a write at or after the end has a higher one.
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

/// Ends a pending copy early and returns its content. The blob stays empty, with its metadata, the
/// new `ETag` and the new modification time.
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

/// Returns `true` if a copy into the blob is pending. The blob must be settled.
pub fn is_pending(blob: &BlobRecord) -> bool {
    let copy = blob.copy.as_ref();
    copy.is_some_and(|copy| copy.status == CopyStatus::Pending)
}

/// Returns the bytes copied so far, proportional to the time; 0 for a copy that will fail.
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
