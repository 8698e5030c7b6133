//! The map of a page blob: where each page is stored, and which pages were cleared.
//!
//! A tree of four levels with 512 slots per node, from pages to 8 TiB (see
//! [`crate::rules::pages`]). Nodes are immutable: a write makes new ones from the changed page up
//! to the top, and shares all others. So a snapshot or a copy of any blob costs one counter, a
//! write or a clearing of any length rewrites a handful of nodes, and two maps differ only in the
//! nodes written between them.
//!
//! A long run of slots is one entry, at whichever level it fills slots whole: a clearing of 8 TiB
//! is one run at the top. The replaced part of the tree is released in bounded steps, some at once
//! and the rest by `maintain`.

mod release;
mod visit;

use std::ops::Range;

use bytes::Bytes;

pub use release::{AT_ONCE, first_left, release_more};
pub(super) use release::{release, retain};
pub use visit::{differences, visit};

use crate::keys;
use crate::records::{BlobContent, Held, PageNode, Record, Run};
use crate::rules::pages::{SLOTS, TOP, advanced, cut, insert, unit};
use crate::store::{self, PayloadId, StoreError, StoreResult, Transaction, View};

/// Writes a payload over pages of a page blob's content. Takes over a reference to the payload and
/// the blob's reference to its old content. The range consists of whole pages and is as long as the
/// payload.
pub fn write(
    tx: &mut Transaction<'_>,
    content: BlobContent,
    range: Range<u64>,
    payload: PayloadId,
) -> StoreResult<BlobContent> {
    let held = Held::Data { payload, offset: 0 };
    overwrite(tx, content, range, held)
}

/// Clears pages of a page blob's content, at the tick of the commit. Takes over the blob's
/// reference to its old content. The range consists of whole pages.
pub fn clear(
    tx: &mut Transaction<'_>,
    content: BlobContent,
    range: Range<u64>,
    tick: u64,
) -> StoreResult<BlobContent> {
    overwrite(tx, content, range, Held::Cleared(tick))
}

fn overwrite(
    tx: &mut Transaction<'_>,
    content: BlobContent,
    range: Range<u64>,
    held: Held,
) -> StoreResult<BlobContent> {
    let mut top = match content {
        BlobContent::Pages { root } => take(tx, root)?,
        BlobContent::Payload(payload) => of_payload(tx, payload)?,
        BlobContent::Empty => PageNode::default(),
        BlobContent::Blocks { .. } => return Err(corrupt("a page blob has a list of blocks")),
    };
    let mut pen = Pen::new(held, range.start);
    pen.draw(tx, &mut top, TOP, 0, range)?;
    pen.finish(tx)?;
    let root = save(tx, &top)?;
    Ok(BlobContent::Pages { root })
}

/// Returns the map of pages that were stored as one payload.
fn of_payload(tx: &mut Transaction<'_>, payload: PayloadId) -> StoreResult<PageNode> {
    let mut top = PageNode::default();
    let length = store::location(tx, payload)?.len();
    let mut pen = Pen::new(Held::Data { payload, offset: 0 }, 0);
    pen.draw(tx, &mut top, TOP, 0, 0..length)?;
    pen.finish(tx)?;
    Ok(top)
}

/// A write to a range of pages, with the reference that it brought.
struct Pen {
    /// The content of the range's first byte.
    held: Held,
    /// Offset of the range in the blob.
    start: u64,
    /// Whether the reference is still unused.
    has_reference: bool,
    /// Replaced nodes, each with a reference to release.
    replaced: Vec<u64>,
}

impl Pen {
    fn new(held: Held, start: u64) -> Self {
        Pen {
            held,
            start,
            has_reference: true,
            replaced: Vec::new(),
        }
    }

    /// Writes a range of the blob to the node of this level whose first byte is at `base`.
    fn draw(
        &mut self,
        tx: &mut Transaction<'_>,
        node: &mut PageNode,
        level: u8,
        base: u64,
        range: Range<u64>,
    ) -> StoreResult<()> {
        let unit = unit(level);
        let slot = |at: u64| slot_number((at - base) / unit);
        let (first, end) = (
            (range.start - base).div_ceil(unit),
            (range.end - base) / unit,
        );
        // The slots that the range fills whole, without those at its ends that it fills in part.
        if first < end {
            let slots = slot_number(first)?..slot_number(end)?;
            self.fill(tx, node, base + first * unit, slots, unit)?;
        }
        let head = range.start..range.end.min(base + first * unit);
        if !head.is_empty() {
            let slot = slot(head.start)?;
            self.descend(tx, node, level, base, slot, head.clone())?;
        }
        let tail = range.start.max(base + end * unit).max(head.end)..range.end;
        if !tail.is_empty() {
            let slot = slot(tail.start)?;
            self.descend(tx, node, level, base, slot, tail)?;
        }
        Ok(())
    }

    /// Fills whole slots and releases their old content.
    fn fill(
        &mut self,
        tx: &mut Transaction<'_>,
        node: &mut PageNode,
        at: u64,
        slots: Range<u16>,
        unit: u64,
    ) -> StoreResult<()> {
        for piece in cut(&mut node.runs, slots.clone(), unit) {
            match (piece.rests, piece.held) {
                (0, Held::Node(id)) => self.replaced.push(id),
                (0, Held::Data { payload, .. }) => store::release(tx, payload)?,
                (0, Held::Cleared(_)) | (1, _) => {}
                (_, held) => retain_held(tx, held)?,
            }
        }
        if self.has_reference {
            self.has_reference = false;
        } else {
            retain_held(tx, self.held)?;
        }
        let (first, end) = (slots.start, slots.end);
        let held = advanced(self.held, at - self.start);
        insert(&mut node.runs, Run { first, end, held });
        Ok(())
    }

    /// Writes a part of one slot to the node below it, which is created if needed.
    fn descend(
        &mut self,
        tx: &mut Transaction<'_>,
        node: &mut PageNode,
        level: u8,
        base: u64,
        slot: u16,
        range: Range<u64>,
    ) -> StoreResult<()> {
        let below = level
            .checked_sub(1)
            .ok_or_else(|| corrupt("a write to part of a page"))?;
        let taken = cut(&mut node.runs, slot..slot + 1, unit(level)).pop();
        let mut child = match taken {
            None => PageNode::default(),
            Some(piece) => {
                for _ in 0..piece.rests {
                    retain_held(tx, piece.held)?;
                }
                match piece.held {
                    Held::Node(id) => take(tx, id)?,
                    held => whole(held),
                }
            }
        };
        let base = base + u64::from(slot) * unit(level);
        self.draw(tx, &mut child, below, base, range)?;
        let id = save(tx, &child)?;
        let (first, end) = (slot, slot + 1);
        let held = Held::Node(id);
        insert(&mut node.runs, Run { first, end, held });
        Ok(())
    }

    /// Releases the replaced nodes, and the reference if nothing used it.
    fn finish(self, tx: &mut Transaction<'_>) -> StoreResult<()> {
        if let (true, Held::Data { payload, .. }) = (self.has_reference, self.held) {
            store::release(tx, payload)?;
        }
        release::release_nodes(tx, self.replaced, AT_ONCE).map(drop)
    }
}

/// Returns a node with the same content in all slots.
fn whole(held: Held) -> PageNode {
    let (first, end) = (0, SLOTS);
    PageNode {
        runs: vec![Run { first, end, held }],
    }
}

/// Consumes one reference to a node and returns its content, with a reference for each entry.
fn take(tx: &mut Transaction<'_>, id: u64) -> StoreResult<PageNode> {
    let node = load(tx, id)?;
    match holders(tx, id)? {
        1 => tx.delete(keys::page_node(id)),
        holders => {
            set_holders(tx, id, holders - 1);
            for run in &node.runs {
                retain_held(tx, run.held)?;
            }
        }
    }
    Ok(node)
}

/// Stores a node with one holder under a new id, which is never reused.
fn save(tx: &mut Transaction<'_>, node: &PageNode) -> StoreResult<u64> {
    let key = keys::page_node_last();
    let id = number_at(tx, &key)?.unwrap_or(0) + 1;
    tx.put(key, number(id));
    node.save(tx, keys::page_node(id))?;
    Ok(id)
}

fn load(view: &dyn View, id: u64) -> StoreResult<PageNode> {
    PageNode::load(view, &keys::page_node(id))?
        .ok_or_else(|| StoreError::Corrupt(format!("node {id} of a page blob is missing")))
}

fn retain_held(tx: &mut Transaction<'_>, held: Held) -> StoreResult<()> {
    match held {
        Held::Data { payload, .. } => store::retain(tx, payload),
        Held::Cleared(_) => Ok(()),
        Held::Node(id) => retain(tx, id),
    }
}

/// Returns the number of holders of a node; 1 if there is no record of it.
pub fn holders(view: &dyn View, id: u64) -> StoreResult<u64> {
    Ok(number_at(view, &keys::page_node_refs(id))?.unwrap_or(1))
}

fn set_holders(tx: &mut Transaction<'_>, id: u64, holders: u64) {
    let key = keys::page_node_refs(id);
    if holders > 1 {
        tx.put(key, number(holders));
    } else {
        tx.delete(key);
    }
}

fn number(number: u64) -> Bytes {
    Bytes::copy_from_slice(&number.to_be_bytes())
}

fn number_at(view: &dyn View, key: &[u8]) -> StoreResult<Option<u64>> {
    let Some(value) = view.get(key)? else {
        return Ok(None);
    };
    let bytes = <[u8; 8]>::try_from(value.as_ref());
    let bytes = bytes.map_err(|_| corrupt("a counter of a page blob is not a number"))?;
    Ok(Some(u64::from_be_bytes(bytes)))
}

fn slot_number(slot: u64) -> StoreResult<u16> {
    let number = u16::try_from(slot).ok().filter(|slot| *slot <= SLOTS);
    number.ok_or_else(|| corrupt("a page beyond the largest blob size"))
}

fn corrupt(what: &str) -> StoreError {
    StoreError::Corrupt(what.to_owned())
}

#[cfg(test)]
mod tests;
