//! Resolves the entries of a Put Block List request to blocks.
//!
//! Source: "Put Block List", the request body: `Committed` looks in the committed list only,
//! `Uncommitted` among the uncommitted blocks only, `Latest` in the uncommitted blocks first.

use std::collections::HashMap;

use smalt_protocol::ErrorCode;
use smalt_protocol::xml::BlockSource;

use crate::records::{BlockRecord, CommittedBlock};

/// One entry of the request: the list to search and the block id.
pub type Entry = (BlockSource, Vec<u8>);

/// A block of the new block list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// The block as the new list stores it.
    pub block: CommittedBlock,
    /// `true` if the block was uncommitted until now.
    pub is_new: bool,
}

/// Returns the block of each entry, in the order of the entries.
///
/// # Errors
/// `InvalidBlockList` for an id that is missing from the list its entry names, and for an id listed
/// under elements of two kinds.
pub fn choose(
    entries: &[Entry],
    uncommitted: &[(Vec<u8>, BlockRecord)],
    committed: &[CommittedBlock],
) -> Result<Vec<Chosen>, ErrorCode> {
    let old: HashMap<&[u8], &CommittedBlock> = committed
        .iter()
        .map(|block| (block.id.as_slice(), block))
        .collect();
    let mut asked: HashMap<&[u8], BlockSource> = HashMap::with_capacity(entries.len());
    let mut chosen = Vec::with_capacity(entries.len());
    for (source, id) in entries {
        if *asked.entry(id).or_insert(*source) != *source {
            return Err(ErrorCode::InvalidBlockList);
        }
        // `uncommitted` is sorted by block id.
        let new = || {
            let at = uncommitted
                .binary_search_by(|(known, _)| known.cmp(id))
                .ok()?;
            let (_, block) = uncommitted.get(at)?;
            Some(Chosen {
                block: CommittedBlock {
                    id: id.clone(),
                    length: block.length,
                    payload: block.payload,
                },
                is_new: true,
            })
        };
        let old = || {
            old.get(id.as_slice()).map(|block| Chosen {
                block: (*block).clone(),
                is_new: false,
            })
        };
        let block = match source {
            BlockSource::Committed => old(),
            BlockSource::Uncommitted => new(),
            BlockSource::Latest => new().or_else(old),
        };
        chosen.push(block.ok_or(ErrorCode::InvalidBlockList)?);
    }
    Ok(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;
    use BlockSource::{Committed, Latest, Uncommitted};

    fn lengths(entries: &[(BlockSource, &str)]) -> Option<Vec<(u64, bool)>> {
        let entries: Vec<Entry> = entries
            .iter()
            .map(|(source, id)| (*source, id.as_bytes().to_vec()))
            .collect();
        let new = |id: &str, length| {
            let payload = None;
            (id.as_bytes().to_vec(), BlockRecord { length, payload })
        };
        let old = |id: &str, length| CommittedBlock {
            id: id.as_bytes().to_vec(),
            length,
            payload: None,
        };
        let uncommitted = [new("b", 20), new("c", 30)];
        let committed = [old("b", 2), old("a", 1)];
        match choose(&entries, &uncommitted, &committed) {
            Ok(chosen) => Some(chosen.iter().map(|c| (c.block.length, c.is_new)).collect()),
            Err(error) => {
                assert_eq!(error, ErrorCode::InvalidBlockList);
                None
            }
        }
    }

    #[test]
    fn each_kind_searches_its_list() {
        for (entries, expected) in [
            (&[][..], Some(vec![])),
            (
                &[(Latest, "b"), (Latest, "a"), (Latest, "c")],
                Some(vec![(20, true), (1, false), (30, true)]),
            ),
            (
                &[(Committed, "b"), (Uncommitted, "c")],
                Some(vec![(2, false), (30, true)]),
            ),
            (
                &[(Latest, "b"), (Latest, "b")],
                Some(vec![(20, true), (20, true)]),
            ),
            (&[(Committed, "c")], None),
            (&[(Uncommitted, "a")], None),
            (&[(Latest, "d")], None),
            (&[(Committed, "b"), (Uncommitted, "b")], None),
        ] {
            assert_eq!(lengths(entries), expected, "{entries:?}");
        }
    }
}
