//! Removes what is left of blobs: snapshots and versions, base blobs that have expired, uncommitted
//! blocks.

use std::ops::ControlFlow;

use smalt_protocol::Timestamp;

use super::{content, pending, tag_index};
use crate::keys::{self, Generation};
use crate::records::{BlobRecord, BlockRecord, Record};
use crate::store::{self, StoreResult, Transaction, View};

/// Removes a snapshot or version, deleted or not, and its content.
///
/// # Errors
/// When the store fails.
pub fn remove(tx: &mut Transaction<'_>, key: Vec<u8>, part: &BlobRecord) -> StoreResult<()> {
    if let Some(deleted) = part.deleted {
        tx.delete(keys::expiring(deleted.until(), &key));
    }
    content::release(tx, part.content)?;
    tag_index::forget(tx, &key, part);
    tx.delete(key);
    Ok(())
}

/// Removes the reminder of a base blob's expiry.
pub fn forget(tx: &mut Transaction<'_>, key: Vec<u8>, blob: &BlobRecord) {
    if let Some(expires) = blob.expires {
        tx.delete(keys::expiring(expires, &key));
    }
}

/// Removes an expired base blob and its snapshots, if there is one under `key`. Keeps uncommitted
/// blocks of the name: they belong to the next blob. Returns the number of steps.
///
/// # Errors
/// When the store fails.
pub fn remove_expired(
    tx: &mut Transaction<'_>,
    key: Vec<u8>,
    now: Timestamp,
) -> StoreResult<usize> {
    let Some(blob) = BlobRecord::load(tx, &key)?.filter(|blob| !blob.is_there(now)) else {
        return Ok(1);
    };
    let (generation, name) = (keys::generation(&key), keys::blob_name(&key));
    let mut steps = 1 + blob.content.blocks() as usize;
    forget(tx, key.clone(), &blob);
    if blob.snapshots > 0 {
        for key in keys_from(tx, keys::snapshots(generation, &name))? {
            if let Some(snapshot) = BlobRecord::load(tx, &key)? {
                remove(tx, key, &snapshot)?;
            }
            steps += 1;
        }
    }
    tag_index::forget(tx, &key, &blob);
    for content in pending::held(&blob) {
        content::release(tx, content)?;
    }
    tx.delete(key);
    Ok(steps)
}

/// Makes room for another path: removes an expired file of the name, and its uncommitted blocks.
///
/// # Errors
/// When the store fails.
pub fn make_room(
    tx: &mut Transaction<'_>,
    generation: Generation,
    name: &str,
    now: Timestamp,
) -> StoreResult<()> {
    remove_expired(tx, keys::blob(generation, name), now)?;
    drop_uncommitted(tx, generation, name)
}

/// Removes all uncommitted blocks of a blob.
///
/// # Errors
/// When the store fails.
pub fn drop_uncommitted(
    tx: &mut Transaction<'_>,
    generation: Generation,
    blob: &str,
) -> StoreResult<()> {
    let record = keys::uncommitted(generation, blob);
    if tx.get(&record)?.is_none() {
        return Ok(());
    }
    for key in keys_from(tx, keys::blocks(generation, blob))? {
        drop_block(tx, key)?;
    }
    tx.delete(record);
    Ok(())
}

/// Removes an uncommitted block.
///
/// # Errors
/// When the store fails.
pub fn drop_block(tx: &mut Transaction<'_>, key: Vec<u8>) -> StoreResult<()> {
    let block = BlockRecord::load(tx, &key)?;
    if let Some(payload) = block.and_then(|block| block.payload) {
        store::release(tx, payload)?;
    }
    tx.delete(key);
    Ok(())
}

/// Returns every key with this prefix.
///
/// # Errors
/// When the store fails.
pub fn keys_from(view: &dyn View, prefix: Vec<u8>) -> StoreResult<Vec<Vec<u8>>> {
    let mut found = Vec::new();
    view.scan(&prefix, &keys::after(prefix.clone()), &mut |key, _| {
        found.push(key.to_vec());
        ControlFlow::Continue(())
    })?;
    Ok(found)
}
