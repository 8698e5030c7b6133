//! Interval arithmetic of page blobs: runs of slots, cut, laid over each other and compared.
//!
//! Runs are in order and do not overlap. How much a slot holds depends on the level of the node: a
//! page in a leaf, a whole leaf one level up.

use std::ops::{ControlFlow, Range};

use smalt_protocol::limits::{PAGE_BLOB_BYTES_MAX, PAGE_BYTES};

use crate::records::{Held, Run};

/// Slots of a node.
pub const SLOTS: u16 = 512;
/// The level of the node at the top of a map.
pub const TOP: u8 = 3;

const SLOT_BITS: u32 = SLOTS.trailing_zeros();
const _: () = assert!(unit(TOP) * SLOTS as u64 >= PAGE_BLOB_BYTES_MAX);

/// Bytes of one slot of a node of this level.
pub const fn unit(level: u8) -> u64 {
    PAGE_BYTES << (SLOT_BITS * level as u32)
}

/// What a run holds this many bytes behind its start.
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

/// A part of a run that [`cut`] took away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Its slots.
    pub slots: Range<u16>,
    /// What they held.
    pub held: Held,
    /// How many parts of the run stay: 0, 1 or 2.
    pub rests: u8,
}

/// Frees slots. What they held is handed over; runs that reach beyond them are cut off.
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

/// Puts a run into slots that are free.
pub fn insert(runs: &mut Vec<Run>, run: Run) {
    let at = runs.partition_point(|other| other.end <= run.first);
    runs.insert(at, run);
}

/// The parts of runs that lie within slots.
pub fn within(runs: &[Run], slots: Range<u16>, unit: u64) -> impl Iterator<Item = Run> {
    let touched = touched(runs, &slots);
    let parts = runs[touched].iter();
    parts.filter_map(move |run| part(run, slots.clone(), unit))
}

/// Which of the runs have any of these slots.
fn touched(runs: &[Run], slots: &Range<u16>) -> Range<usize> {
    let from = runs.partition_point(|run| run.end <= slots.start);
    let to = runs.partition_point(|run| run.first < slots.end);
    from..to.max(from)
}

/// The part of a run that lies within slots.
fn part(run: &Run, slots: Range<u16>, unit: u64) -> Option<Run> {
    let (first, end) = (run.first.max(slots.start), run.end.min(slots.end));
    (first < end).then(|| Run {
        first,
        end,
        held: advanced(run.held, u64::from(first - run.first) * unit),
    })
}

/// Slots that two nodes hold different things in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The slots.
    pub slots: Range<u16>,
    /// What the old node holds there.
    pub old: Option<Held>,
    /// What the new one holds there.
    pub new: Option<Held>,
}

/// Where two nodes differ within slots, in order. What is the same payload at the same place, the
/// same clearing or the same node is no difference.
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

/// What a listing says of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `PageRange`: written.
    Page,
    /// `ClearRange`: cleared.
    Clear,
}

/// Ranges of a listing, collected in order; what adjoins and is of one kind is one range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ranges {
    /// The ranges.
    pub ranges: Vec<(Range<u64>, Kind)>,
    /// Where the next page of the listing starts.
    pub next: Option<u64>,
    most: usize,
}

impl Ranges {
    /// None yet, and at most this many.
    pub fn new(most: usize) -> Self {
        Ranges {
            ranges: Vec::new(),
            next: None,
            most,
        }
    }

    /// Adds a range behind all others; breaks once there is no room.
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
