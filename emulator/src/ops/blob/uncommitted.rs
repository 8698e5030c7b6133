//! Uncommitted blocks of a blob, which Put Block and Put Block From URL store.
//!
//! Source: remarks of "Put Block". They belong to a name, whether or not it has a blob, and expire
//! a week after the last one was put.

use std::ops::ControlFlow;

use smalt_protocol::limits::BLOCKS_UNCOMMITTED_MAX;
use smalt_protocol::{ErrorCode, StorageError, Timestamp};

use super::guard::{self, Guard};
use super::removal;
use crate::keys::{self, Generation};
use crate::ops::lookup::{BlobName, Place};
use crate::ops::tree;
use crate::records::{BlobKind, BlockRecord, ContainerRecord, Record, UncommittedRecord};
use crate::rules::encryption::{Encryption, Requested};
use crate::store::{self, PayloadId, Stamp, StoreResult, Transaction, View};

/// Where a block is stored, and the blocks that exist already.
pub struct Slot {
    generation: Generation,
    encryption: Option<Encryption>,
    record: Option<UncommittedRecord>,
    replaced: Option<BlockRecord>,
}

/// Checks whether a block may be put, and returns its slot.
///
/// # Errors
/// 404 `ContainerNotFound`, 412 for a missing or wrong lease id, 409 `InvalidBlobType`, 400
/// `InvalidBlobOrBlock` for an id whose length differs from the others, 409
/// `BlockCountExceedsLimit`, 403 and 409 for a different encryption.
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
    slot(view, name, &place.container, encryption, id, now)
}

/// Returns the slot of a block of a blob that may be written.
///
/// # Errors
/// As [`check`], from `InvalidBlobOrBlock` on.
pub fn slot(
    view: &dyn View,
    name: &BlobName,
    container: &ContainerRecord,
    encryption: &Requested,
    id: &[u8],
    now: Timestamp,
) -> Result<Slot, StorageError> {
    let generation = container.generation;
    let policy = &container.encryption_scope;
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

/// Rejects blobs that are not block blobs, or that a pending copy is writing.
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
    /// Returns the encryption of the block.
    pub fn encryption(&self) -> Option<&Encryption> {
        self.encryption.as_ref()
    }
}

/// Stores a block and replaces one with the same id. Takes over the reference to its bytes.
///
/// # Errors
/// When the store fails.
pub fn keep(
    tx: &mut Transaction<'_>,
    name: &BlobName,
    id: &[u8],
    slot: Slot,
    block: BlockRecord,
    stamp: &Stamp,
) -> StoreResult<()> {
    let generation = tree::make_folder(tx, name, slot.generation, stamp)?;
    let mut record = match slot.record {
        Some(record) => record,
        None => {
            // Drop expired blocks.
            removal::drop_uncommitted(tx, generation, &name.blob)?;
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

/// Creates the record of a block. An empty block needs no payload.
pub fn block(tx: &mut Transaction<'_>, staged: store::Staged) -> StoreResult<BlockRecord> {
    let length = staged.len();
    let payload: Option<PayloadId> = if staged.is_empty() {
        None
    } else {
        Some(store::adopt(tx, staged)?)
    };
    Ok(BlockRecord { length, payload })
}

/// Returns the record of a name's uncommitted blocks; `None` when there are none, or they have
/// expired.
///
/// # Errors
/// When the store fails.
pub fn record(
    view: &dyn View,
    generation: Generation,
    blob: &str,
    now: Timestamp,
) -> StoreResult<Option<UncommittedRecord>> {
    let record = UncommittedRecord::load(view, &keys::uncommitted(generation, blob))?;
    Ok(record.filter(|record| record.is_kept(now)))
}

/// Returns the uncommitted blocks of a name, ordered by id.
///
/// # Errors
/// When the store fails.
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
