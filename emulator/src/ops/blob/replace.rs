//! Putting a base blob in place of what stands under its name, and taking one away.
//!
//! Sources: remarks of "Put Blob", "Put Block List", "Copy Blob" and "Delete Blob"; recordings for
//! the creation time, which an overwrite keeps.

use std::ops::ControlFlow;

use smalt_protocol::{Metadata, StorageError, Timestamp};

use super::retention::{self, Spot};
use super::tag_index::Owner;
use super::{content, expiry, pending};
use crate::keys::{self, Generation};
use crate::ops::lookup::{BlobName, Place};
use crate::records::{
    Access, BlobContent, BlobKind, BlobRecord, BlockRecord, ContentHeaders, CopyRecord,
    Immutability, Record,
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
    /// What keeps it from being changed.
    pub marks: Marks,
}

/// What keeps a blob from being changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// An append blob that nothing can be appended to.
    pub sealed: bool,
    /// Immutability policy.
    pub immutability: Option<Immutability>,
    /// Legal hold.
    pub legal_hold: Option<bool>,
}

/// Writes a new base blob under a name. What stood there is set aside or let go; snapshots, an
/// active lease and, where no versions are kept, the time of creation stay. So do uncommitted
/// blocks: [`drop_uncommitted`] is the caller's to call where its operation says so.
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
    let spot = Spot {
        name,
        generation: place.container.generation,
    };
    let old = place.blob.as_ref();
    let snapshots = match old {
        Some(old) => {
            expiry::forget(tx, name.key(spot.generation), old);
            pending::fail_readers(tx, &old.copied_to, stamp)?;
            spot.set_aside(tx, old, stamp)?;
            old.snapshots
        }
        None => {
            expiry::remove_expired(tx, name.key(spot.generation), stamp.now)?;
            spot.succeed(tx, new.kind, stamp)?
        }
    };
    // Recorded: where versions are kept, a copy keeps the time of creation and Put Blob does not.
    let makes_version = name.container.settings.versioning && new.copy.is_none();
    let kept_birth = old.filter(|_| !makes_version);
    let had = old.map_or(&[][..], |old| &old.tags);
    Owner::base(spot.generation, &name.blob).change(tx, had, &new.tags);
    let blob = BlobRecord {
        kind: new.kind,
        created: kept_birth.map_or(stamp.now, |old| old.created),
        etag: stamp.etag(),
        last_modified: stamp.now,
        length: new.length,
        content: new.content,
        headers: new.headers,
        metadata: new.metadata,
        tags: new.tags,
        lease: old.map(|old| old.lease.after_write()).unwrap_or_default(),
        copy: new.copy,
        access: new.access,
        snapshots,
        encryption: new.encryption,
        sequence_number: new.sequence_number,
        origin: stamp.tick.ticks(),
        incremental: None,
        sealed: new.marks.sealed,
        version_id: new_version_id(name, stamp),
        is_previous: false,
        deleted: None,
        immutability: new.marks.immutability,
        legal_hold: new.marks.legal_hold,
        expires: None,
        protection: None,
        last_access: None,
        copied_to: Vec::new(),
    };
    blob.save(tx, name.key(spot.generation))?;
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
    blob.etag = stamp.etag();
    blob.last_modified = stamp.now;
    blob.lease = blob.lease.after_write();
    pending::fail_readers(tx, &std::mem::take(&mut blob.copied_to), stamp)?;
    blob.save(tx, name.key(generation))?;
    Ok(blob)
}

/// Stores a base blob that an operation changed in a way that makes a version: as [`touch`], but
/// `old`, the blob before, is kept where the account keeps versions.
///
/// # Errors
/// The store's own.
pub fn touch_version(
    tx: &mut Transaction<'_>,
    name: &BlobName,
    generation: Generation,
    old: &BlobRecord,
    blob: BlobRecord,
    stamp: &Stamp,
) -> Result<BlobRecord, StorageError> {
    let blob = next_version(tx, name, generation, old, blob, stamp)?;
    touch(tx, name, generation, blob, stamp)
}

/// Keeps `old` as a previous version and gives `blob`, which shares its content, the id of the next
/// one, where the account keeps versions.
///
/// # Errors
/// The store's own.
pub fn next_version(
    tx: &mut Transaction<'_>,
    name: &BlobName,
    generation: Generation,
    old: &BlobRecord,
    blob: BlobRecord,
    stamp: &Stamp,
) -> StoreResult<BlobRecord> {
    if retention::keeps_version(&name.container, old) {
        content::retain(tx, old.content)?;
        Spot { name, generation }.keep_version(tx, old, stamp)?;
    }
    Ok(BlobRecord {
        version_id: new_version_id(name, stamp),
        ..blob
    })
}

/// Id of the version that a write makes, where the account keeps versions.
fn new_version_id(name: &BlobName, stamp: &Stamp) -> Option<Timestamp> {
    let keeps = name.container.settings.versioning;
    keeps.then(|| stamp.second_tick())
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

/// Whether a key starts with a prefix.
///
/// # Errors
/// The store's own.
pub fn has_any(view: &dyn View, prefix: Vec<u8>) -> StoreResult<bool> {
    let mut found = false;
    view.scan(&prefix, &keys::after(prefix.clone()), &mut |_, _| {
        found = true;
        ControlFlow::Break(())
    })?;
    Ok(found)
}

/// Every key that starts with a prefix.
///
/// # Errors
/// The store's own.
pub fn keys_from(view: &dyn View, prefix: Vec<u8>) -> StoreResult<Vec<Vec<u8>>> {
    let mut found = Vec::new();
    view.scan(&prefix, &keys::after(prefix.clone()), &mut |key, _| {
        found.push(key.to_vec());
        ControlFlow::Continue(())
    })?;
    Ok(found)
}

#[cfg(test)]
mod tests;
