//! Transfers the references to the payloads of blocks from the old list to the new one.

use std::collections::{BTreeMap, HashSet};

use crate::ops::blob::content::blocks;
use crate::records::{BlobContent, BlobRecord, CommittedBlock};
use crate::rules::block_list::Chosen;
use crate::store::{self, PayloadId, StoreResult, Transaction};

/// Takes the blocks of the replaced list, with their references. A list that a snapshot or a copy
/// shares stays, and yields none.
pub(super) fn dissolve(
    tx: &mut Transaction<'_>,
    old: &mut BlobRecord,
) -> StoreResult<Vec<CommittedBlock>> {
    match blocks::dissolve(tx, old.content)? {
        Some(blocks) => {
            old.content = BlobContent::Empty;
            Ok(blocks)
        }
        None => Ok(Vec::new()),
    }
}

/// Ensures one reference for each block of the new list. An uncommitted block passes on its own the
/// first time, a dissolved one as often as it was in the old list: a list that grows by a block
/// writes nothing about the others. Missing references are added, and those left over are released.
pub(super) fn take(
    tx: &mut Transaction<'_>,
    chosen: &[Chosen],
    dissolved: &[CommittedBlock],
    key: impl Fn(&[u8]) -> Vec<u8>,
) -> StoreResult<()> {
    let mut at_hand: BTreeMap<PayloadId, usize> = BTreeMap::new();
    for payload in dissolved.iter().filter_map(|block| block.payload) {
        *at_hand.entry(payload).or_default() += 1;
    }
    let mut handed_over = HashSet::new();
    for Chosen { block, is_new } in chosen {
        if *is_new && handed_over.insert(block.id.as_slice()) {
            tx.delete(key(&block.id));
        } else if let Some(payload) = block.payload {
            match at_hand.get_mut(&payload) {
                Some(left) if *left > 0 => *left -= 1,
                _ => store::retain(tx, payload)?,
            }
        }
    }
    for (payload, left) in at_hand {
        for _ in 0..left {
            store::release(tx, payload)?;
        }
    }
    Ok(())
}
