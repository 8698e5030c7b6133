//! Committed block lists, written once and reference-counted. A list changes only by growing at its
//! end ([`append`](super::append())), behind the blocks that its holders count as their own.
//!
//! A list is stored in chunks, so that no value of the store grows with it, and each chunk has the
//! offset of its first byte, so that a range of a large blob is found by bisection.

use std::ops::Range;

use bytes::Bytes;

use crate::keys;
use crate::records::{BlobContent, BlockListChunk, CommittedBlock, Record};
use crate::store::{self, PayloadId, StoreError, StoreResult, Transaction, View};

/// Blocks per chunk: with ids of 64 bytes a chunk stays well below the store's largest value.
pub(super) const CHUNK_BLOCKS: u32 = 64;

/// Writes a new list with one holder. `id` must be unused (the tick of the commit). Takes over one
/// reference to the payload of each block.
pub fn write(
    tx: &mut Transaction<'_>,
    id: u64,
    blocks: &[CommittedBlock],
) -> StoreResult<BlobContent> {
    let mut start = 0;
    for (number, part) in (0..).zip(blocks.chunks(CHUNK_BLOCKS as usize)) {
        let chunk = BlockListChunk {
            start,
            blocks: part.to_vec(),
        };
        start += part.iter().map(|block| block.length).sum::<u64>();
        chunk.save(tx, keys::block_list(id, number))?;
    }
    let count = u32::try_from(blocks.len())
        .map_err(|_| StoreError::Corrupt("a block list is too long".to_owned()))?;
    Ok(if count == 0 {
        BlobContent::Empty
    } else {
        BlobContent::Blocks { id, count }
    })
}

/// Returns all blocks of a content, in order; none unless it is a block list.
pub fn read(view: &dyn View, content: BlobContent) -> StoreResult<Vec<CommittedBlock>> {
    let BlobContent::Blocks { id, count } = content else {
        return Ok(Vec::new());
    };
    let mut blocks = Vec::with_capacity(count as usize);
    for number in 0..chunks(count) {
        blocks.extend(chunk(view, id, number)?.blocks);
    }
    // Other holders may have appended.
    blocks.truncate(count as usize);
    Ok(blocks)
}

/// Removes a list that has no other holder, and gives the caller its blocks with the references to
/// their payloads. If others hold the list, or the content is not a list, changes nothing and
/// returns `None`.
pub fn dissolve(
    tx: &mut Transaction<'_>,
    content: BlobContent,
) -> StoreResult<Option<Vec<CommittedBlock>>> {
    let BlobContent::Blocks { id, count } = content else {
        return Ok(None);
    };
    if holders(tx, id)? > 1 {
        return Ok(None);
    }
    let blocks = read(tx, content)?;
    for number in 0..chunks(count) {
        tx.delete(keys::block_list(id, number));
    }
    Ok(Some(blocks))
}

pub(super) fn retain(tx: &mut Transaction<'_>, id: u64) -> StoreResult<()> {
    let holders = holders(tx, id)?;
    set_holders(tx, id, holders + 1);
    Ok(())
}

/// Removes a holder; the last one releases every block.
pub(super) fn release(tx: &mut Transaction<'_>, id: u64, count: u32) -> StoreResult<()> {
    let holders = holders(tx, id)?;
    if holders > 1 {
        set_holders(tx, id, holders - 1);
        return Ok(());
    }
    // Includes blocks that former holders appended.
    let mut number = 0;
    while number < chunks(count) || tx.get(&keys::block_list(id, number))?.is_some() {
        for block in chunk(tx, id, number)?.blocks {
            if let Some(payload) = block.payload {
                store::release(tx, payload)?;
            }
        }
        tx.delete(keys::block_list(id, number));
        number += 1;
    }
    Ok(())
}

/// Called for each payload with its id and the requested range in it.
pub(super) type Visit<'a> = dyn FnMut(PayloadId, Range<u64>) -> StoreResult<()> + 'a;

/// Visits the payloads of a range of the list's bytes, in order.
pub(super) fn visit(
    view: &dyn View,
    id: u64,
    count: u32,
    range: Range<u64>,
    visit: &mut Visit<'_>,
) -> StoreResult<()> {
    for number in first_chunk(view, id, count, range.start)?..chunks(count) {
        let chunk = chunk(view, id, number)?;
        let mut start = chunk.start;
        for block in chunk.blocks {
            if start >= range.end {
                return Ok(());
            }
            let end = start + block.length;
            let wanted = range.start.max(start)..range.end.min(end);
            if let Some(payload) = block.payload
                && !wanted.is_empty()
            {
                visit(payload, wanted.start - start..wanted.end - start)?;
            }
            start = end;
        }
    }
    Ok(())
}

/// Returns the last chunk that starts at or before a byte.
fn first_chunk(view: &dyn View, id: u64, count: u32, byte: u64) -> StoreResult<u32> {
    let (mut low, mut high) = (0, chunks(count));
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if chunk(view, id, middle)?.start <= byte {
            low = middle;
        } else {
            high = middle;
        }
    }
    Ok(low)
}

fn chunks(count: u32) -> u32 {
    count.div_ceil(CHUNK_BLOCKS)
}

pub(super) fn chunk(view: &dyn View, id: u64, number: u32) -> StoreResult<BlockListChunk> {
    BlockListChunk::load(view, &keys::block_list(id, number))?
        .ok_or_else(|| StoreError::Corrupt(format!("chunk {number} of list {id} is missing")))
}

/// Returns the number of holders of a list; 1 if there is no record of it.
pub fn holders(view: &dyn View, id: u64) -> StoreResult<u64> {
    let Some(value) = view.get(&keys::block_list_refs(id))? else {
        return Ok(1);
    };
    let bytes = <[u8; 8]>::try_from(value.as_ref())
        .map_err(|_| StoreError::Corrupt(format!("the count of list {id} is not a number")))?;
    Ok(u64::from_be_bytes(bytes))
}

fn set_holders(tx: &mut Transaction<'_>, id: u64, holders: u64) {
    let key = keys::block_list_refs(id);
    if holders > 1 {
        tx.put(key, Bytes::copy_from_slice(&holders.to_be_bytes()));
    } else {
        tx.delete(key);
    }
}
