//! The interface between operations and store: [`View`], [`Transaction`], [`Stamp`].

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;
use smalt_protocol::{ETag, Timestamp};

use super::error::StoreResult;
use super::extents::{Reservation, Segment};

/// The two times of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The emulator's time, never before an earlier commit's; for conditions, leases and
    /// visibility.
    pub now: Timestamp,
    /// The persisted counter for ETags, snapshot and version ids: at least `now`, and at least
    /// [`Stamp::TICKS`] higher with each commit.
    pub tick: Timestamp,
}

impl Stamp {
    /// Number of ticks that belong to one commit: [`Stamp::tick`] and [`Stamp::second_tick`].
    pub const TICKS: u64 = 2;

    /// Returns a second unique time, for a commit that creates two resources named by their time: a
    /// snapshot and a version.
    pub const fn second_tick(&self) -> Timestamp {
        self.tick.plus_ticks(1)
    }

    /// Returns the ETag of the commit's writes.
    pub const fn etag(&self) -> ETag {
        ETag::from_tick(self.tick)
    }
}

/// The callback of a scan for each entry: key, value.
pub type Visit<'a> = dyn FnMut(&[u8], &Bytes) -> ControlFlow<()> + 'a;

/// The state of one moment.
pub trait View {
    /// Returns the value of a key.
    fn get(&self, key: &[u8]) -> StoreResult<Option<Bytes>>;

    /// Visits the keys `from <= key < to` in order until `visit` breaks.
    fn scan(&self, from: &[u8], to: &[u8], visit: &mut Visit<'_>) -> StoreResult<()>;

    /// Keeps a segment alive beyond this view. Returns `None` in a view without extents.
    fn pin(&self, segment: u64) -> Option<Arc<Segment>> {
        let _ = segment;
        None
    }
}

/// Writes of an operation by key; `None` deletes.
pub type Writes = BTreeMap<Vec<u8>, Option<Bytes>>;

/// A view that collects writes, which its own reads see.
pub struct Transaction<'a> {
    below: &'a dyn View,
    writes: Writes,
    /// Reservations of staged payloads that this transaction took, kept until its writes are
    /// published.
    held: Vec<Reservation>,
}

impl<'a> Transaction<'a> {
    /// Creates a transaction without writes.
    pub fn new(below: &'a dyn View) -> Self {
        Transaction {
            below,
            writes: Writes::new(),
            held: Vec::new(),
        }
    }

    /// Sets a value of at most [`VALUE_BYTES_MAX`]; larger payloads belong in extents.
    pub fn put(&mut self, key: Vec<u8>, value: impl Into<Bytes>) {
        self.writes.insert(key, Some(value.into()));
    }

    /// Removes a key.
    pub fn delete(&mut self, key: Vec<u8>) {
        self.writes.insert(key, None);
    }

    pub(super) fn hold(&mut self, reservation: Reservation) {
        self.held.push(reservation);
    }

    pub(super) fn into_parts(self) -> (Writes, Vec<Reservation>) {
        (self.writes, self.held)
    }
}

/// Largest value in the metadata engine. sled leaks disk space from 16 KiB on (measured, ADR 2);
/// the difference is for the record around an inline payload of [`INLINE_BYTES_MAX`].
pub const VALUE_BYTES_MAX: usize = 17 * 1024;
/// Largest payload that is kept in the metadata engine.
pub const INLINE_BYTES_MAX: usize = 16 * 1024;

impl View for Transaction<'_> {
    fn get(&self, key: &[u8]) -> StoreResult<Option<Bytes>> {
        Over::new(self.below, &self.writes).get(key)
    }

    fn scan(&self, from: &[u8], to: &[u8], visit: &mut Visit<'_>) -> StoreResult<()> {
        Over::new(self.below, &self.writes).scan(from, to, visit)
    }

    fn pin(&self, segment: u64) -> Option<Arc<Segment>> {
        let own = self.held.iter().map(Reservation::segment);
        own.into_iter()
            .find(|held| held.number() == segment)
            .cloned()
            .or_else(|| self.below.pin(segment))
    }
}

/// Writes over a view.
pub(super) struct Over<'a> {
    below: &'a dyn View,
    writes: &'a Writes,
}

impl<'a> Over<'a> {
    pub(super) fn new(below: &'a dyn View, writes: &'a Writes) -> Self {
        Over { below, writes }
    }
}

impl View for Over<'_> {
    fn get(&self, key: &[u8]) -> StoreResult<Option<Bytes>> {
        match self.writes.get(key) {
            Some(written) => Ok(written.clone()),
            None => self.below.get(key),
        }
    }

    fn scan(&self, from: &[u8], to: &[u8], visit: &mut Visit<'_>) -> StoreResult<()> {
        match self.writes.is_empty() {
            true => self.below.scan(from, to, visit),
            false => merged_scan(self.below, self.writes, from, to, visit),
        }
    }

    fn pin(&self, segment: u64) -> Option<Arc<Segment>> {
        self.below.pin(segment)
    }
}

/// Scans `below` with `writes` on top of it.
fn merged_scan(
    below: &dyn View,
    writes: &Writes,
    from: &[u8],
    to: &[u8],
    visit: &mut Visit<'_>,
) -> StoreResult<()> {
    if from >= to {
        return Ok(());
    }
    let mut over = writes.range(from.to_vec()..to.to_vec()).peekable();
    let mut stopped = false;
    below.scan(from, to, &mut |key, value| {
        while let Some((written_key, written)) = over.next_if(|(k, _)| k.as_slice() < key) {
            if let Some(value) = written
                && visit(written_key, value).is_break()
            {
                stopped = true;
                return ControlFlow::Break(());
            }
        }
        let flow = match over.next_if(|(k, _)| k.as_slice() == key) {
            Some((_, Some(written))) => visit(key, written),
            Some((_, None)) => ControlFlow::Continue(()),
            None => visit(key, value),
        };
        stopped = flow.is_break();
        flow
    })?;
    if stopped {
        return Ok(());
    }
    for (key, written) in over {
        if let Some(value) = written
            && visit(key, value).is_break()
        {
            break;
        }
    }
    Ok(())
}
