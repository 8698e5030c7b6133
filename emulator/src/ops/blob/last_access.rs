//! Tracks the last access to a blob, if the account has that enabled.
//!
//! Source: "Last access time tracking": only Get Blob counts as a read, "only the first read in the
//! last 24 hours updates the last access time", and "if a blob is modified between reads, the last
//! access time is the more recent of the two values". So a write records nothing, and reads of a
//! blob cost at most one small commit a day, which is as durable as any other.

use smalt_protocol::Timestamp;
use smalt_protocol::time::DAY_S;

use crate::keys::Generation;
use crate::operation::Note;
use crate::ops::lookup::BlobAddress;
use crate::records::{BlobRecord, Record};
use crate::rules::pending_copy;

/// Seconds after a recorded access during which further reads are not recorded.
const NOTED_EVERY_S: u64 = DAY_S;

/// Returns the value of `x-ms-last-access-time`.
pub fn of(blob: &BlobRecord) -> Timestamp {
    blob.last_access
        .map_or(blob.last_modified, |read| read.max(blob.last_modified))
}

/// Returns the note that records a read of a blob; usually `None`.
pub fn note(
    address: &BlobAddress,
    generation: Generation,
    blob: &BlobRecord,
    now: Timestamp,
) -> Option<Note> {
    if now < of(blob).plus_s(NOTED_EVERY_S) {
        return None;
    }
    let (key, etag) = (address.key(generation, blob), blob.etag);
    Some(Box::new(move |tx, _| {
        // The blob may have been replaced since.
        let Some(mut blob) = BlobRecord::load(tx, &key)? else {
            return Ok(());
        };
        pending_copy::settle(&mut blob, now);
        if blob.etag == etag {
            blob.last_access = blob.last_access.max(Some(now));
            blob.save(tx, key)?;
        }
        Ok(())
    }))
}
