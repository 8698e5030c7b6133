//! Blobs whose time has come, in the order of their expiry.

use smalt_protocol::Timestamp;

use super::entries;
use crate::keys;
use crate::ops::blob::expiry;
use crate::records::{BlobRecord, Record};
use crate::store::{Store, StoreResult, Transaction};

/// Removes up to `most` expired blobs; 0 where there is none. Entries that a deleted container left
/// behind go with them.
pub(super) fn work(store: &Store, now: Timestamp, most: usize) -> StoreResult<usize> {
    let (from, to) = keys::expired(now);
    if most == 0 || store.read(|view| entries(view, &from, &to, 1))?.is_empty() {
        return Ok(0);
    }
    store.commit_blocking(move |tx| {
        let due = entries(tx, &from, &to, most)?;
        for (key, _) in &due {
            remove(tx, key)?;
        }
        Ok(due.len())
    })
}

fn remove(tx: &mut Transaction<'_>, key: &[u8]) -> StoreResult<()> {
    let (at, generation, name) = keys::expiring_parts(key);
    tx.delete(key.to_vec());
    match BlobRecord::load(tx, &keys::blob(generation, &name))? {
        Some(blob) if blob.expires == Some(at) => expiry::remove(tx, generation, &name, &blob),
        _ => Ok(()),
    }
}
