//! The page map of a page blob: a tree of nodes, each with runs of slots.
//!
//! A node covers 512 slots: pages in a leaf, nodes of the level below in other levels. A run
//! describes consecutive slots. A written node never changes, so that blobs, snapshots and copies
//! can share it, and the same node in two of them means the same content.

use serde::{Deserialize, Serialize};

use crate::store::PayloadId;

/// A node of a page map.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageNode {
    /// Sorted runs without overlap. Slots outside of runs were never written.
    pub runs: Vec<Run>,
}

/// Consecutive slots with their content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Packed", into = "Packed")]
pub struct Run {
    /// The first slot.
    pub first: u16,
    /// The slot after the last.
    pub end: u16,
    /// Content of the slots.
    pub held: Held,
}

/// Content of slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// Bytes of a payload. Each run holds one reference to it.
    Data {
        /// The referenced payload.
        payload: PayloadId,
        /// Byte offset in the payload at which the first slot of the run begins.
        offset: u64,
    },
    /// Zeros, cleared by the commit of this tick.
    Cleared(u64),
    /// A node of the level below, by id. The run has one slot and holds one reference to it.
    Node(u64),
}

/// A run as stored: first, end, kind, payload or tick or node, offset. It has no field names, so
/// that a node of 512 runs stays within the largest value of the store.
type Packed = (u16, u16, u8, u64, u64);

impl From<Run> for Packed {
    fn from(run: Run) -> Packed {
        let (kind, id, offset) = match run.held {
            Held::Data { payload, offset } => (0, payload.0, offset),
            Held::Cleared(tick) => (1, tick, 0),
            Held::Node(id) => (2, id, 0),
        };
        (run.first, run.end, kind, id, offset)
    }
}

impl TryFrom<Packed> for Run {
    type Error = &'static str;

    fn try_from((first, end, kind, id, offset): Packed) -> Result<Run, &'static str> {
        let held = match kind {
            0 => Held::Data {
                payload: PayloadId(id),
                offset,
            },
            1 => Held::Cleared(id),
            2 => Held::Node(id),
            _ => return Err("unknown kind of run"),
        };
        Ok(Run { first, end, held })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::Record;
    use crate::store::INLINE_BYTES_MAX;

    #[test]
    fn full_node_fits_into_an_inline_value() {
        let run = |first: u16| Run {
            first,
            end: first + 1,
            held: Held::Data {
                payload: PayloadId(u64::MAX - u64::from(first)),
                offset: u64::from(u32::MAX),
            },
        };
        let full = PageNode {
            runs: (0..512).map(run).collect(),
        };
        let stored = full.encode().unwrap();
        assert!(stored.len() < INLINE_BYTES_MAX, "{}", stored.len());
        assert_eq!(PageNode::decode(&stored).unwrap(), full);
    }

    #[test]
    fn every_kind_is_decoded_as_encoded() {
        for held in [Held::Cleared(7), Held::Node(9)] {
            let run = Run {
                first: 3,
                end: 4,
                held,
            };
            let node = PageNode { runs: vec![run] };
            assert_eq!(PageNode::decode(&node.encode().unwrap()).unwrap(), node);
        }
        assert!(Run::try_from((0, 1, 3, 0, 0)).is_err());
    }
}
