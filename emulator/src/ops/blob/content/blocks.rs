//! Committed block lists: written once and counted. All that ever changes is that one grows at its
//! end ([`append`](super::append())), behind what each of its holders counts as its own.
//!
//! A list is kept in chunks, so that no value of the store grows with it, and each chunk says where
//! its first byte is, so that a range of a large blob is found by bisection.

use std::ops::Range;

use bytes::Bytes;

use crate::keys;
use crate::records::{BlobContent, BlockListChunk, CommittedBlock, Record};
use crate::store::{self, PayloadId, StoreError, StoreResult, Transaction, View};

/// Blocks of one chunk: with ids of 64 bytes it stays well below the store's largest value.
pub(super) const CHUNK_BLOCKS: u32 = 64;

/// Writes a new list under an id that no other list has (the tick of the commit), with one holder.
/// Takes over one reference to the payload of each block.
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

/// All blocks of a content, in order; none unless it was made of blocks.
pub fn read(view: &dyn View, content: BlobContent) -> StoreResult<Vec<CommittedBlock>> {
    let BlobContent::Blocks { id, count } = content else {
        return Ok(Vec::new());
    };
    let mut blocks = Vec::with_capacity(count as usize);
    for number in 0..chunks(count) {
        blocks.extend(chunk(view, id, number)?.blocks);
    }
    // What others have appended since.
    blocks.truncate(count as usize);
    Ok(blocks)
}

/// Takes a list apart that nobody else holds: its blocks, each with its reference to its payload,
/// are the caller's. Absent when others hold the list, or when there is none; nothing happens then.
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

/// Adds a holder.
pub(super) fn retain(tx: &mut Transaction<'_>, id: u64) -> StoreResult<()> {
    let holders = holders(tx, id)?;
    set_holders(tx, id, holders + 1);
    Ok(())
}

/// Takes a holder away; the last one releases every block.
pub(super) fn release(tx: &mut Transaction<'_>, id: u64, count: u32) -> StoreResult<()> {
    let holders = holders(tx, id)?;
    if holders > 1 {
        set_holders(tx, id, holders - 1);
        return Ok(());
    }
    // With what others appended who are gone by now.
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

/// What a visit calls for each payload: its id, and the range of it that is asked for.
pub(super) type Visit<'a> = dyn FnMut(PayloadId, Range<u64>) -> StoreResult<()> + 'a;

/// Visits the payloads that hold a range of the list's bytes, in order.
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

/// The last chunk that starts at or before a byte.
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

/// How many hold a list; one where nothing is written.
pub fn holders(view: &dyn View, id: u64) -> StoreResult<u64> {
    let Some(value) = view.get(&keys::block_list_refs(id))? else {
        return Ok(1);
    };
    let bytes = <[u8; 8]>::try_from(value.as_ref())
        .map_err(|_| StoreError::Corrupt(format!("the count of list {id} is no number")))?;
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
