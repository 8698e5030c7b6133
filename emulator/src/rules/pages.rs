//! Interval arithmetic for page blobs: cuts, overlays and compares runs of slots.
//!
//! Runs are sorted and do not overlap. The size of a slot depends on the node's level: a page in a
//! leaf, a whole leaf one level up.

use std::ops::{ControlFlow, Range};

use smalt_protocol::limits::{PAGE_BLOB_BYTES_MAX, PAGE_BYTES};

use crate::records::{Held, Run};

/// Number of slots in a node.
pub const SLOTS: u16 = 512;
/// Level of the root node.
pub const TOP: u8 = 3;

const SLOT_BITS: u32 = SLOTS.trailing_zeros();
const _: () = assert!(unit(TOP) * SLOTS as u64 >= PAGE_BLOB_BYTES_MAX);

/// Returns the size of a slot in a node of this level, in bytes.
pub const fn unit(level: u8) -> u64 {
    PAGE_BYTES << (SLOT_BITS * level as u32)
}

/// Returns what a run with `held` at its start holds `bytes` further on.
#[must_use]
pub fn advanced(held: Held, bytes: u64) -> Held {
    match held {
        Held::Data { payload, offset } => Held::Data {
            payload,
            offset: offset + bytes,
        },
        held => held,
    }
}

/// A part of a run that [`cut`] removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The removed slots.
    pub slots: Range<u16>,
    /// What the removed slots held.
    pub held: Held,
    /// Number of parts of the run that remain: 0, 1 or 2.
    pub rests: u8,
}

/// Frees slots and returns what they held. Truncates or splits the runs that extend beyond them.
pub fn cut(runs: &mut Vec<Run>, slots: Range<u16>, unit: u64) -> Vec<Piece> {
    let touched = touched(runs, &slots);
    let mut rests = Vec::new();
    let mut pieces = Vec::with_capacity(touched.len());
    for run in &runs[touched.clone()] {
        let left = part(run, run.first..slots.start, unit);
        let right = part(run, slots.end..run.end, unit);
        let count = u8::from(left.is_some()) + u8::from(right.is_some());
        rests.extend(left.into_iter().chain(right));
        if let Some(middle) = part(run, slots.clone(), unit) {
            pieces.push(Piece {
                slots: middle.first..middle.end,
                held: middle.held,
                rests: count,
            });
        }
    }
    runs.splice(touched, rests);
    pieces
}

/// Inserts a run. Its slots must be free.
pub fn insert(runs: &mut Vec<Run>, run: Run) {
    let at = runs.partition_point(|other| other.end <= run.first);
    runs.insert(at, run);
}

/// Returns the parts of runs that lie within `slots`.
pub fn within(runs: &[Run], slots: Range<u16>, unit: u64) -> impl Iterator<Item = Run> {
    let touched = touched(runs, &slots);
    let parts = runs[touched].iter();
    parts.filter_map(move |run| part(run, slots.clone(), unit))
}

/// Returns the indexes of the runs that overlap `slots`.
fn touched(runs: &[Run], slots: &Range<u16>) -> Range<usize> {
    let from = runs.partition_point(|run| run.end <= slots.start);
    let to = runs.partition_point(|run| run.first < slots.end);
    from..to.max(from)
}

fn part(run: &Run, slots: Range<u16>, unit: u64) -> Option<Run> {
    let (first, end) = (run.first.max(slots.start), run.end.min(slots.end));
    (first < end).then(|| Run {
        first,
        end,
        held: advanced(run.held, u64::from(first - run.first) * unit),
    })
}

/// Slots in which two nodes differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The slots that differ.
    pub slots: Range<u16>,
    /// What the old node holds there; `None` if the slots are free.
    pub old: Option<Held>,
    /// What the new node holds there; `None` if the slots are free.
    pub new: Option<Held>,
}

/// Returns where two nodes differ within `slots`, in order. Slots are equal if they hold the same
/// payload at the same offset, the same clearing or the same node.
pub fn compare(old: &[Run], new: &[Run], slots: Range<u16>, unit: u64) -> Vec<Difference> {
    let edges = |runs: &[Run]| -> Vec<u16> {
        let parts = within(runs, slots.clone(), unit);
        parts.flat_map(|run| [run.first, run.end]).collect()
    };
    let mut edges = [edges(old), edges(new)].concat();
    edges.sort_unstable();
    edges.dedup();
    let pairs = edges.windows(2).map(|pair| pair[0]..pair[1]);
    let at = |runs: &[Run], slots: Range<u16>| within(runs, slots, unit).next().map(|run| run.held);
    let differences = pairs.map(|slots| Difference {
        old: at(old, slots.clone()),
        new: at(new, slots.clone()),
        slots,
    });
    differences.filter(|d| d.old != d.new).collect()
}

/// The kind of a listed range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `PageRange`: written pages.
    Page,
    /// `ClearRange`: cleared pages.
    Clear,
}

/// Ranges of a listing, collected in order. Adjacent ranges of the same kind are merged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ranges {
    /// Byte ranges of the blob, in order.
    pub ranges: Vec<(Range<u64>, Kind)>,
    /// Byte offset at which the next page of the listing starts; `None` if this is the last one.
    pub next: Option<u64>,
    most: usize,
}

impl Ranges {
    /// Creates an empty collection that accepts at most `most` ranges.
    pub fn new(most: usize) -> Self {
        Ranges {
            ranges: Vec::new(),
            next: None,
            most,
        }
    }

    /// Appends a range; breaks and sets `next` when the collection is full.
    pub fn push(&mut self, range: Range<u64>, kind: Kind) -> ControlFlow<()> {
        if let Some((last, last_kind)) = self.ranges.last_mut()
            && last.end == range.start
            && *last_kind == kind
        {
            last.end = range.end;
            return ControlFlow::Continue(());
        }
        if self.ranges.len() == self.most {
            self.next = Some(range.start);
            return ControlFlow::Break(());
        }
        self.ranges.push((range, kind));
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests;
