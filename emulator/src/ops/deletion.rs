//! What Delete Container and Delete Queue have in common.

use smalt_protocol::Timestamp;

use crate::keys::{self, Generation};
use crate::records::{GarbageRecord, Record};
use crate::store::{StoreResult, Transaction};

/// When a name is free again.
#[derive(Clone, Copy, Debug)]
pub struct Freed {
    /// Time of the deletion.
    pub now: Timestamp,
    /// How long the name stays taken, in seconds; 0 for not at all.
    pub being_deleted_s: u64,
}

/// Removes the record of `key`, or keeps it as `deleted` until its name is free. The contents,
/// keyed by their generation, are left to `maintain`.
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
