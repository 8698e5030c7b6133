//! Pending copies between blobs of the store: how they are recorded and what ends them.
//!
//! Source: "Copy Blob": a copy fails if its source changes meanwhile. The source keeps a list of
//! the destinations that still read from it, so that a write to it can fail their copies.

use smalt_protocol::StorageError;

use super::content;
use crate::faults::Hold;
use crate::records::{BlobContent, BlobRecord, CopyReader, CopyStatus, PendingCopy, Record};
use crate::rules::pending_copy::{self, SOURCE_CHANGED};
use crate::store::{Stamp, StoreResult, Transaction};

/// Destinations that a source remembers. Beyond this the oldest is forgotten, and its copy succeeds
/// even if the source changes.
const READERS_MAX: usize = 32;

/// Makes a new copy pending as `hold` says. `source` is the source's key, given if it may change
/// meanwhile; `thaws` says whether it is archived.
///
/// # Errors
/// When the store fails.
pub fn hold(
    tx: &mut Transaction<'_>,
    mut blob: BlobRecord,
    destination: Vec<u8>,
    source: Option<Vec<u8>>,
    (hold, thaws): (&Hold, bool),
    stamp: &Stamp,
) -> Result<BlobRecord, StorageError> {
    let Some(plan) = pending_copy::plan(hold, blob.length, stamp.now) else {
        return Ok(blob);
    };
    let plan = PendingCopy { thaws, ..plan };
    if let Some(unwanted) = pending_copy::begin(&mut blob, plan) {
        content::release(tx, unwanted)?;
    }
    blob.save(tx, destination.clone())?;
    if let (Some(source), Some(copy)) = (source, &blob.copy) {
        let copy_id = copy.id.clone();
        note(
            tx,
            source,
            CopyReader {
                destination,
                copy_id,
            },
        )?;
    }
    Ok(blob)
}

/// Records at the source that a pending copy reads from it.
///
/// # Errors
/// When the store fails.
fn note(tx: &mut Transaction<'_>, source: Vec<u8>, reader: CopyReader) -> StoreResult<()> {
    let Some(mut blob) = BlobRecord::load(tx, &source)? else {
        return Ok(());
    };
    let readers = &mut blob.copied_to;
    readers.retain(|other| other.destination != reader.destination);
    if readers.len() >= READERS_MAX {
        readers.remove(0);
    }
    readers.push(reader);
    blob.save(tx, source)
}

/// Fails the pending copies that read from a blob which is written to or deleted.
///
/// # Errors
/// When the store fails.
pub fn fail_readers(
    tx: &mut Transaction<'_>,
    readers: &[CopyReader],
    stamp: &Stamp,
) -> Result<(), StorageError> {
    for reader in readers {
        let Some(mut blob) = BlobRecord::load(tx, &reader.destination)? else {
            continue;
        };
        pending_copy::settle(&mut blob, stamp.now);
        let copy = blob.copy.as_ref();
        // The destination may have a newer copy from another source.
        let is_same = copy.is_some_and(|copy| copy.id == reader.copy_id);
        if !is_same || !pending_copy::is_pending(&blob) {
            continue;
        }
        let (status, why) = (CopyStatus::Failed, Some(SOURCE_CHANGED));
        let kept = pending_copy::stop(&mut blob, status, why, (stamp.etag(), stamp.now));
        content::release(tx, kept)?;
        blob.save(tx, reader.destination.clone())?;
    }
    Ok(())
}

/// Returns the contents that a record refers to: its own, and that of a pending copy.
pub fn held(blob: &BlobRecord) -> [BlobContent; 2] {
    let copy = blob.copy.as_ref();
    let pending = copy.and_then(|copy| copy.pending.as_ref());
    let kept = pending.map_or(BlobContent::Empty, |pending| pending.content);
    [blob.content, kept]
}
