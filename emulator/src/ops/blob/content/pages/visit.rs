//! Reads the map of a page blob: what was written where, and what changed between two maps.

use std::ops::{ControlFlow, Range};

use super::load;
use crate::records::{BlobContent, Held, Run};
use crate::rules::pages::{Kind, SLOTS, TOP, compare, unit, within};
use crate::store::{self, PayloadId, StoreError, StoreResult, View};

/// Bytes of a page blob that are in one payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// Their range in the blob.
    pub range: Range<u64>,
    /// The payload.
    pub payload: PayloadId,
    /// Their offset in the payload.
    pub offset: u64,
}

/// Called for each span.
type Visit<'a> = dyn FnMut(Span) -> StoreResult<ControlFlow<()>> + 'a;

/// Visits the written spans of a page blob within a range, in order, until told to stop.
pub fn visit(
    view: &dyn View,
    content: BlobContent,
    range: Range<u64>,
    visit: &mut Visit<'_>,
) -> StoreResult<()> {
    match content {
        BlobContent::Pages { root } => {
            let mut walk = Walk { view, range, visit };
            walk.node(root, TOP, 0).map(drop)
        }
        BlobContent::Payload(payload) => {
            let end = range.end.min(store::location(view, payload)?.len());
            let (range, offset) = (range.start..end, range.start);
            if range.is_empty() {
                return Ok(());
            }
            let span = Span {
                range,
                payload,
                offset,
            };
            visit(span).map(drop)
        }
        BlobContent::Empty | BlobContent::Blocks { .. } => Ok(()),
    }
}

struct Walk<'a, 'v> {
    view: &'a dyn View,
    range: Range<u64>,
    visit: &'a mut Visit<'v>,
}

impl Walk<'_, '_> {
    fn node(&mut self, id: u64, level: u8, base: u64) -> StoreResult<ControlFlow<()>> {
        let node = load(self.view, id)?;
        let unit = unit(level);
        let slots = slots_of(&self.range, base, unit);
        for run in within(&node.runs, slots, unit) {
            let place = place(run.first..run.end, base, unit);
            let flow = match run.held {
                Held::Cleared(_) => ControlFlow::Continue(()),
                Held::Node(below) => self.node(below, level.saturating_sub(1), place.start)?,
                Held::Data { payload, offset } => {
                    let range = place.start.max(self.range.start)..place.end.min(self.range.end);
                    let offset = offset + (range.start - place.start);
                    (self.visit)(Span {
                        range,
                        payload,
                        offset,
                    })?
                }
            };
            if flow.is_break() {
                return Ok(flow);
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// Called for each changed range.
type VisitDifference<'a> = dyn FnMut(Range<u64>, Kind) -> ControlFlow<()> + 'a;

/// Visits the ranges that were written or cleared in a page blob since it had another content,
/// within a range and in order, until told to stop. Pages that were rewritten with the same bytes
/// count.
pub fn differences(
    view: &dyn View,
    [old, new]: [BlobContent; 2],
    range: Range<u64>,
    visit: &mut VisitDifference<'_>,
) -> StoreResult<()> {
    let (old, new) = (at_top(old)?, at_top(new)?);
    if old == new {
        return Ok(());
    }
    let mut walk = Compared { view, range, visit };
    walk.nodes([old, new], TOP, 0).map(drop)
}

/// Returns a content as an entry of a node above the top level.
fn at_top(content: BlobContent) -> StoreResult<Option<Held>> {
    Ok(match content {
        BlobContent::Empty => None,
        BlobContent::Pages { root } => Some(Held::Node(root)),
        BlobContent::Payload(payload) => Some(Held::Data { payload, offset: 0 }),
        BlobContent::Blocks { .. } => {
            return Err(StoreError::Corrupt(
                "a page blob has a list of blocks".to_owned(),
            ));
        }
    })
}

struct Compared<'a, 'v> {
    view: &'a dyn View,
    range: Range<u64>,
    visit: &'a mut VisitDifference<'v>,
}

impl Compared<'_, '_> {
    fn nodes(
        &mut self,
        [old, new]: [Option<Held>; 2],
        level: u8,
        base: u64,
    ) -> StoreResult<ControlFlow<()>> {
        let (old, new) = (self.runs(old)?, self.runs(new)?);
        let unit = unit(level);
        let slots = slots_of(&self.range, base, unit);
        for difference in compare(&old, &new, slots, unit) {
            let sides = [difference.old, difference.new];
            let place = place(difference.slots, base, unit);
            let has_node = sides.iter().any(|side| matches!(side, Some(Held::Node(_))));
            let flow = if has_node {
                self.nodes(sides, level.saturating_sub(1), place.start)?
            } else {
                let kind = match difference.new {
                    Some(Held::Data { .. }) => Kind::Page,
                    _ => Kind::Clear,
                };
                let (start, end) = (self.range.start, self.range.end);
                (self.visit)(place.start.max(start)..place.end.min(end), kind)
            };
            if flow.is_break() {
                return Ok(flow);
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Returns the runs of a node, or of a virtual node with one entry.
    fn runs(&self, held: Option<Held>) -> StoreResult<Vec<Run>> {
        Ok(match held {
            None => Vec::new(),
            Some(Held::Node(id)) => load(self.view, id)?.runs,
            Some(held) => super::whole(held).runs,
        })
    }
}

/// Returns the slots of a node that a range touches.
fn slots_of(range: &Range<u64>, base: u64, unit: u64) -> Range<u16> {
    let slot = |at: u64| at.min(u64::from(SLOTS)) as u16;
    let first = range.start.saturating_sub(base) / unit;
    let end = range.end.saturating_sub(base).div_ceil(unit);
    slot(first)..slot(end)
}

/// Returns the byte range of the blob that slots cover.
fn place(slots: Range<u16>, base: u64, unit: u64) -> Range<u64> {
    let at = |slot: u16| base + u64::from(slot) * unit;
    at(slots.start)..at(slots.end)
}
