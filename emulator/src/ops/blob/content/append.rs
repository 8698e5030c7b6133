//! Appends to a block list: writes one chunk, however long the list is.
//!
//! Each holder of a list knows how many of its blocks are its own: the first ones. A snapshot or a
//! copy can thus share a list that still grows. A holder that appends to a list in which another
//! holder has appended gets its own copy, unless it is the only one left: then the other's blocks
//! are removed.

use super::blocks::{self, CHUNK_BLOCKS};
use crate::keys;
use crate::records::{BlobContent, BlockListChunk, CommittedBlock, Record};
use crate::store::{self, StoreError, StoreResult, Transaction};

/// The state of a list behind a holder's blocks.
enum End {
    Free,
    /// Another holder has appended.
    Taken,
}

/// Adds a block to a content of `length` bytes. Takes over the reference to the block's payload.
/// `fresh_id` is an unused list id: the tick of the commit.
pub fn append(
    tx: &mut Transaction<'_>,
    content: BlobContent,
    length: u64,
    block: CommittedBlock,
    fresh_id: u64,
) -> StoreResult<BlobContent> {
    let (id, count) = match content {
        BlobContent::Empty => return blocks::write(tx, fresh_id, &[block]),
        BlobContent::Payload(payload) => {
            let first = CommittedBlock {
                id: Vec::new(),
                length,
                payload: Some(payload),
            };
            return blocks::write(tx, fresh_id, &[first, block]);
        }
        BlobContent::Blocks { id, count } => (id, count),
        BlobContent::Pages { .. } => {
            return Err(StoreError::Corrupt("an append blob has pages".to_owned()));
        }
    };
    if let End::Taken = end(tx, id, count)? {
        if blocks::holders(tx, id)? > 1 {
            return fork(tx, content, block, fresh_id);
        }
        cut(tx, id, count)?;
    }
    let number = count / CHUNK_BLOCKS;
    let mut chunk = if count % CHUNK_BLOCKS == 0 {
        BlockListChunk {
            start: length,
            blocks: Vec::new(),
        }
    } else {
        blocks::chunk(tx, id, number)?
    };
    chunk.blocks.push(block);
    chunk.save(tx, keys::block_list(id, number))?;
    Ok(BlobContent::Blocks {
        id,
        count: count + 1,
    })
}

/// Whether there are blocks behind the first `count`.
fn end(tx: &Transaction<'_>, id: u64, count: u32) -> StoreResult<End> {
    let written = BlockListChunk::load(tx, &keys::block_list(id, count / CHUNK_BLOCKS))?;
    let written = written.map_or(0, |chunk| chunk.blocks.len());
    Ok(if written > (count % CHUNK_BLOCKS) as usize {
        End::Taken
    } else {
        End::Free
    })
}

/// Copies the list for one of several holders, with a cost proportional to its length.
fn fork(
    tx: &mut Transaction<'_>,
    content: BlobContent,
    block: CommittedBlock,
    fresh_id: u64,
) -> StoreResult<BlobContent> {
    let mut own = blocks::read(tx, content)?;
    for payload in own.iter().filter_map(|block| block.payload) {
        store::retain(tx, payload)?;
    }
    super::release(tx, content)?;
    own.push(block);
    blocks::write(tx, fresh_id, &own)
}

/// Removes the blocks behind the first `count`.
fn cut(tx: &mut Transaction<'_>, id: u64, count: u32) -> StoreResult<()> {
    let mut number = count / CHUNK_BLOCKS;
    let mut kept = (count % CHUNK_BLOCKS) as usize;
    while let Some(mut chunk) = BlockListChunk::load(tx, &keys::block_list(id, number))? {
        for payload in chunk.blocks.drain(kept..).filter_map(|block| block.payload) {
            store::release(tx, payload)?;
        }
        let key = keys::block_list(id, number);
        if kept == 0 {
            tx.delete(key);
        } else {
            chunk.save(tx, key)?;
        }
        kept = 0;
        number += 1;
    }
    Ok(())
}
