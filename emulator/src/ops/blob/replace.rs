//! Replaces and removes base blobs.
//!
//! Sources: remarks of "Put Blob", "Put Block List", "Copy Blob" and "Delete Blob"; recordings for
//! the creation time, which an overwrite keeps.

use std::ops::ControlFlow;

use smalt_protocol::{Metadata, StorageError, Timestamp};

use super::retention::{self, Spot};
use super::tag_index::Owner;
use super::{content, pending, removal};
use crate::keys::{self, Generation};
use crate::ops::lookup::{BlobName, Place};
use crate::ops::tree;
use crate::records::{
    Access, BlobContent, BlobKind, BlobRecord, ContentHeaders, CopyRecord, Immutability, Record,
};
use crate::rules::encryption::Encryption;
use crate::store::{Stamp, StoreResult, Transaction, View};

/// All properties of a blob that a write sets.
#[derive(Clone, Debug, PartialEq)]
pub struct NewBlob {
    /// Block, append or page blob.
    pub kind: BlobKind,
    /// Length in bytes.
    pub length: u64,
    /// The bytes, with one reference for the blob.
    pub content: BlobContent,
    /// Content headers.
    pub headers: ContentHeaders,
    /// User metadata.
    pub metadata: Metadata,
    /// Index tags.
    pub tags: Vec<(String, String)>,
    /// Access tier.
    pub access: Access,
    /// The record of the copy that creates the blob, if any.
    pub copy: Option<CopyRecord>,
    /// The client-chosen key or scope, if any.
    pub encryption: Option<Encryption>,
    /// Sequence number of a page blob, otherwise 0.
    pub sequence_number: u64,
    /// Seal, immutability policy and legal hold.
    pub marks: Marks,
}

/// The properties that protect a blob from changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// Whether an append blob is sealed, so that nothing can be appended.
    pub sealed: bool,
    /// Immutability policy.
    pub immutability: Option<Immutability>,
    /// Legal hold.
    pub legal_hold: Option<bool>,
}

/// Writes a new base blob. The blob that it replaces is kept or released; snapshots, an active
/// lease and, where no versions are kept, the creation time stay. So do uncommitted blocks: the
/// caller calls [`drop_uncommitted`] if its operation drops them.
///
/// # Errors
/// When the store fails.
pub fn replace(
    tx: &mut Transaction<'_>,
    name: &BlobName,
    place: &Place,
    new: NewBlob,
    stamp: &Stamp,
) -> Result<BlobRecord, StorageError> {
    let generation = tree::make_folder(tx, name, place.container.generation, stamp)?;
    let spot = Spot { name, generation };
    let old = place.blob.as_ref();
    let snapshots = match old {
        Some(old) => {
            removal::forget(tx, name.key(spot.generation), old);
            pending::fail_readers(tx, &old.copied_to, stamp)?;
            spot.set_aside(tx, old, stamp)?;
            old.snapshots
        }
        None => {
            removal::remove_expired(tx, name.key(spot.generation), stamp.now)?;
            spot.succeed(tx, new.kind, stamp)?
        }
    };
    // Recorded: where versions are kept, a copy keeps the creation time and Put Blob does not.
    let makes_version = name.container.settings.versioning && new.copy.is_none();
    let kept_birth = old.filter(|_| !makes_version);
    let posix = match old {
        Some(old) => old.posix.clone(),
        None => tree::posix_of_new(tx, name, generation, stamp.now)?,
    };
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
        worm: None,
        last_access: None,
        copied_to: Vec::new(),
        directory: None,
        posix,
        encryption_context: None,
    };
    blob.save(tx, name.key(spot.generation))?;
    Ok(blob)
}

/// Stores a base blob with changed properties or metadata: with a new ETag and last-modified time,
/// and without an expired lease.
///
/// # Errors
/// When the store fails.
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

/// Stores a base blob as [`touch`] does and, if the account keeps versions, keeps `old`, the blob
/// before the change, as a previous version.
///
/// # Errors
/// When the store fails.
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

/// If the account keeps versions, stores `old` as a previous version and gives `blob`, which shares
/// its content, the id of the next one.
///
/// # Errors
/// When the store fails.
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

/// Returns the id of the version that a write creates, if the account keeps versions.
fn new_version_id(name: &BlobName, stamp: &Stamp) -> Option<Timestamp> {
    let keeps = name.container.settings.versioning;
    keeps.then(|| stamp.second_tick())
}

/// Whether there is a key with this prefix.
///
/// # Errors
/// When the store fails.
pub fn has_any(view: &dyn View, prefix: Vec<u8>) -> StoreResult<bool> {
    let mut found = false;
    view.scan(&prefix, &keys::after(prefix.clone()), &mut |_, _| {
        found = true;
        ControlFlow::Break(())
    })?;
    Ok(found)
}

#[cfg(test)]
mod tests;
