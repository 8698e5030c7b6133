//! Putting a base blob in place of what stands under its name, and taking one away.
//!
//! Sources: remarks of "Put Blob", "Put Block List", "Copy Blob" and "Delete Blob"; recordings for
//! the creation time, which an overwrite keeps.

use std::ops::ControlFlow;

use smalt_protocol::{ETag, Metadata, StorageError};

use super::{content, pending};
use crate::keys::{self, Generation};
use crate::ops::lookup::{BlobName, Place};
use crate::records::{
    Access, BlobContent, BlobKind, BlobRecord, BlockRecord, ContentHeaders, CopyRecord, Record,
};
use crate::rules::encryption::Encryption;
use crate::store::{self, Stamp, StoreResult, Transaction, View};

/// Everything that a write which replaces a blob decides.
#[derive(Clone, Debug, PartialEq)]
pub struct NewBlob {
    /// Kind.
    pub kind: BlobKind,
    /// Length in bytes.
    pub length: u64,
    /// Bytes, with one reference for the blob.
    pub content: BlobContent,
    /// Content headers.
    pub headers: ContentHeaders,
    /// User metadata.
    pub metadata: Metadata,
    /// Index tags.
    pub tags: Vec<(String, String)>,
    /// Access tier.
    pub access: Access,
    /// The copy that makes it, if one does.
    pub copy: Option<CopyRecord>,
    /// What the client has it encrypted with.
    pub encryption: Option<Encryption>,
    /// Sequence number of a page blob, else 0.
    pub sequence_number: u64,
}

/// Writes a new base blob under a name. Releases the content that stood there; keeps snapshots, an
/// active lease and the time of creation. Uncommitted blocks stay: [`drop_uncommitted`] is the
/// caller's to call where its operation says so.
///
/// # Errors
/// The store's own.
pub fn replace(
    tx: &mut Transaction<'_>,
    name: &BlobName,
    place: &Place,
    new: NewBlob,
    stamp: &Stamp,
) -> Result<BlobRecord, StorageError> {
    let old = place.blob.as_ref();
    if let Some(old) = old {
        content::release(tx, old.content)?;
        pending::fail_readers(tx, &old.copied_to, stamp)?;
    }
    let blob = BlobRecord {
        kind: new.kind,
        created: old.map_or(stamp.now, |old| old.created),
        etag: ETag::from_tick(stamp.tick),
        last_modified: stamp.now,
        length: new.length,
        content: new.content,
        headers: new.headers,
        metadata: new.metadata,
        tags: new.tags,
        lease: old.map(|old| old.lease.after_write()).unwrap_or_default(),
        copy: new.copy,
        access: new.access,
        snapshots: old.map_or(0, |old| old.snapshots),
        encryption: new.encryption,
        sequence_number: new.sequence_number,
        sealed: false,
        version_id: None,
        deleted: None,
        immutability: None,
        legal_hold: None,
        expires: None,
        last_access: None,
        copied_to: Vec::new(),
    };
    blob.save(tx, name.key(place.container.generation))?;
    Ok(blob)
}

/// Stores a base blob whose properties or metadata an operation changed: a new tag and time, and no
/// lease that is over.
///
/// # Errors
/// The store's own.
pub fn touch(
    tx: &mut Transaction<'_>,
    name: &BlobName,
    generation: Generation,
    mut blob: BlobRecord,
    stamp: &Stamp,
) -> Result<BlobRecord, StorageError> {
    blob.etag = ETag::from_tick(stamp.tick);
    blob.last_modified = stamp.now;
    blob.lease = blob.lease.after_write();
    pending::fail_readers(tx, &std::mem::take(&mut blob.copied_to), stamp)?;
    blob.save(tx, name.key(generation))?;
    Ok(blob)
}

/// Takes a base blob away, its content and its uncommitted blocks with it.
///
/// # Errors
/// The store's own.
pub fn remove(
    tx: &mut Transaction<'_>,
    name: &BlobName,
    generation: Generation,
    blob: &BlobRecord,
) -> StoreResult<()> {
    content::release(tx, blob.content)?;
    tx.delete(name.key(generation));
    drop_uncommitted(tx, generation, &name.blob)
}

/// Takes all snapshots of a blob away.
///
/// # Errors
/// The store's own.
pub fn remove_snapshots(
    tx: &mut Transaction<'_>,
    generation: Generation,
    blob: &str,
) -> StoreResult<()> {
    let from = keys::snapshots(generation, blob);
    for key in keys_from(tx, from)? {
        if let Some(snapshot) = BlobRecord::load(tx, &key)? {
            content::release(tx, snapshot.content)?;
        }
        tx.delete(key);
    }
    Ok(())
}

/// Takes all uncommitted blocks of a blob away.
///
/// # Errors
/// The store's own.
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
        let block = BlockRecord::load(tx, &key)?;
        if let Some(payload) = block.and_then(|block| block.payload) {
            store::release(tx, payload)?;
        }
        tx.delete(key);
    }
    tx.delete(record);
    Ok(())
}

/// Every key that starts with a prefix.
fn keys_from(view: &dyn View, prefix: Vec<u8>) -> StoreResult<Vec<Vec<u8>>> {
    let mut found = Vec::new();
    view.scan(&prefix, &keys::after(prefix.clone()), &mut |key, _| {
        found.push(key.to_vec());
        ControlFlow::Continue(())
    })?;
    Ok(found)
}

#[cfg(test)]
mod tests;
