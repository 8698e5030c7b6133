//! Uncommitted blocks of a blob: where Put Block and Put Block From URL keep them.
//!
//! Source: remarks of "Put Block". They belong to a name, whether or not a blob stands under it,
//! and are forgotten when a week passes without another one.

use std::ops::ControlFlow;

use smalt_protocol::limits::BLOCKS_UNCOMMITTED_MAX;
use smalt_protocol::{ErrorCode, StorageError, Timestamp};

use super::guard::{self, Guard};
use super::replace;
use crate::keys::{self, Generation};
use crate::ops::lookup::{BlobName, Place};
use crate::records::{BlobKind, BlockRecord, Record, UncommittedRecord};
use crate::rules::encryption::{Encryption, Requested};
use crate::store::{self, PayloadId, Stamp, StoreResult, Transaction, View};

/// Where a block goes, and what is there already.
pub struct Slot {
    generation: Generation,
    encryption: Option<Encryption>,
    record: Option<UncommittedRecord>,
    replaced: Option<BlockRecord>,
}

/// Finds the place of a block and judges whether it may be put there.
///
/// # Errors
/// 404 `ContainerNotFound`, 412 of the lease, 409 `InvalidBlobType`, 400 `InvalidBlobOrBlock` for
/// an id of another length than those before it, 409 `BlockCountExceedsLimit`, 403 and 409 of the
/// encryption.
pub fn check(
    view: &dyn View,
    name: &BlobName,
    guard: &Guard,
    encryption: &Requested,
    id: &[u8],
    now: Timestamp,
) -> Result<Slot, StorageError> {
    let place = name.find_place(view, now)?;
    guard.check_lease(&place)?;
    check_block_blob(&place)?;
    let generation = place.container.generation;
    let policy = &place.container.encryption_scope;
    let record = record(view, generation, &name.blob, now)?;
    if let Some(record) = &record {
        encryption.check_write(record.encryption.as_ref(), policy)?;
    }
    let replaced = match &record {
        Some(record) => {
            if record.id_length as usize != id.len() {
                return Err(ErrorCode::InvalidBlobOrBlock.into());
            }
            let replaced = BlockRecord::load(view, &keys::block(generation, &name.blob, id))?;
            if replaced.is_none() && record.blocks as usize >= BLOCKS_UNCOMMITTED_MAX {
                return Err(too_many());
            }
            replaced
        }
        None => None,
    };
    Ok(Slot {
        generation,
        encryption: encryption.of_new(policy)?,
        record,
        replaced,
    })
}

/// Only a block blob that no copy is writing takes blocks.
///
/// # Errors
/// 409 `InvalidBlobType`, 409 `PendingCopyOperation`, 409 `BlobArchived`.
pub fn check_block_blob(place: &Place) -> Result<(), StorageError> {
    match &place.blob {
        Some(blob) if blob.kind != BlobKind::Block => Err(ErrorCode::InvalidBlobType.into()),
        Some(blob) => guard::check_settled(blob),
        None => Ok(()),
    }
}

fn too_many() -> StorageError {
    StorageError::new(ErrorCode::BlockCountExceedsLimit).with_message(format!(
        "The uncommitted block count cannot exceed the maximum limit of {BLOCKS_UNCOMMITTED_MAX} \
         blocks."
    ))
}

impl Slot {
    /// What the block is encrypted with.
    pub fn encryption(&self) -> Option<&Encryption> {
        self.encryption.as_ref()
    }
}

/// Keeps a block, in place of one of the same id. Takes over the reference to its bytes.
///
/// # Errors
/// The store's own.
pub fn keep(
    tx: &mut Transaction<'_>,
    name: &BlobName,
    id: &[u8],
    slot: Slot,
    block: BlockRecord,
    stamp: &Stamp,
) -> StoreResult<()> {
    let generation = slot.generation;
    let mut record = match slot.record {
        Some(record) => record,
        None => {
            // What an older week left behind.
            replace::drop_uncommitted(tx, generation, &name.blob)?;
            UncommittedRecord {
                created: stamp.now,
                touched: stamp.now,
                blocks: 0,
                // At most 64.
                id_length: id.len() as u32,
                encryption: slot.encryption,
            }
        }
    };
    match slot.replaced {
        Some(BlockRecord {
            payload: Some(payload),
            ..
        }) => store::release(tx, payload)?,
        Some(_) => {}
        None => record.blocks += 1,
    }
    record.touched = stamp.now;
    record.save(tx, keys::uncommitted(generation, &name.blob))?;
    block.save(tx, keys::block(generation, &name.blob, id))
}

/// A block of these bytes; none need no payload.
pub fn block(tx: &mut Transaction<'_>, staged: store::Staged) -> StoreResult<BlockRecord> {
    let length = staged.len();
    let payload: Option<PayloadId> = if staged.is_empty() {
        None
    } else {
        Some(store::adopt(tx, staged)?)
    };
    Ok(BlockRecord { length, payload })
}

/// What is known of the uncommitted blocks of a name; absent when there are none, or none that is
/// still kept.
///
/// # Errors
/// The store's own.
pub fn record(
    view: &dyn View,
    generation: Generation,
    blob: &str,
    now: Timestamp,
) -> StoreResult<Option<UncommittedRecord>> {
    let record = UncommittedRecord::load(view, &keys::uncommitted(generation, blob))?;
    Ok(record.filter(|record| record.is_kept(now)))
}

/// The uncommitted blocks of a name, in the order of their ids.
///
/// # Errors
/// The store's own.
pub fn read(
    view: &dyn View,
    generation: Generation,
    blob: &str,
    now: Timestamp,
) -> StoreResult<Vec<(Vec<u8>, BlockRecord)>> {
    let Some(record) = record(view, generation, blob, now)? else {
        return Ok(Vec::new());
    };
    let from = keys::blocks(generation, blob);
    let mut blocks = Vec::with_capacity(record.blocks as usize);
    let mut broken = None;
    view.scan(
        &from,
        &keys::after(from.clone()),
        &mut |key, value| match BlockRecord::decode(value) {
            Ok(block) => {
                blocks.push((key[from.len()..].to_vec(), block));
                ControlFlow::Continue(())
            }
            Err(error) => {
                broken = Some(error);
                ControlFlow::Break(())
            }
        },
    )?;
    broken.map_or(Ok(blocks), Err)
}
