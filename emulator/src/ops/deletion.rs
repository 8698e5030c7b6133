//! Shared code of Delete Container and Delete Queue.

use smalt_protocol::Timestamp;

use crate::keys::{self, Generation};
use crate::records::{GarbageRecord, Record};
use crate::store::{StoreResult, Transaction};

/// When the name of a deleted resource becomes free.
#[derive(Clone, Copy, Debug)]
pub struct Freed {
    /// Time of the deletion.
    pub now: Timestamp,
    /// How long the name stays reserved, in seconds; 0 frees it at once.
    pub being_deleted_s: u64,
}

/// Removes the record of `key`, or replaces it with `deleted` until the name is free. `maintain`
/// removes the contents, which their generation keys.
pub fn delete(
    tx: &mut Transaction<'_>,
    key: Vec<u8>,
    deleted: &impl Record,
    generation: Generation,
    freed: Freed,
) -> StoreResult<()> {
    let mut garbage = GarbageRecord::default();
    if freed.being_deleted_s == 0 {
        tx.delete(key);
    } else {
        garbage.tombstone = Some(key.clone());
        garbage.free_at = freed.now.plus_s(freed.being_deleted_s);
        deleted.save(tx, key)?;
    }
    garbage.save(tx, keys::garbage(generation))
}
