//! Walking a container in the order of its listing: base blobs, snapshots and uncommitted blobs,
//! merged by name.
//!
//! Each of the three is one range of keys, read ahead in chunks. A walk without a delimiter reads
//! one chunk of a page's size. With one it jumps past every common prefix, and the chunks start
//! small again: the members of a prefix are not visited.

use std::collections::VecDeque;
use std::ops::ControlFlow;

use bytes::Bytes;
use smalt_protocol::Timestamp;
use smalt_protocol::limits::BLOCKS_UNCOMMITTED_DAYS;

use super::marker::Position;
use crate::keys::{self, Generation};
use crate::records::{BlobRecord, Record, UncommittedRecord};
use crate::rules::pending_copy;
use crate::store::{StoreResult, View};

/// First chunk of a walk that jumps, and of every chunk after a jump; each next one is twice as
/// long.
const JUMPING_CHUNK: usize = 2;
/// Longest chunk.
const CHUNK_MAX: usize = 5_001;
const DAY_S: u64 = 24 * 60 * 60;

/// What a listing walks over.
#[derive(Clone, Debug)]
pub struct Range {
    /// Container.
    pub generation: Generation,
    /// What names start with.
    pub prefix: String,
    /// The first place.
    pub start: Option<Position>,
    /// Least name, besides.
    pub start_from: Option<String>,
    /// With snapshots.
    pub snapshots: bool,
    /// With blobs that have uncommitted blocks only.
    pub uncommitted: bool,
}

/// One item of a listing.
#[derive(Clone, Debug)]
pub enum Item {
    /// A base blob.
    Blob(Box<BlobRecord>),
    /// A snapshot.
    Snapshot(Box<BlobRecord>),
    /// A blob that has uncommitted blocks only.
    Uncommitted,
}

/// A walk.
pub struct Walk<'a> {
    view: &'a dyn View,
    generation: Generation,
    now: Timestamp,
    blobs: Source,
    snapshots: Option<Source>,
    uncommitted: Option<Source>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Blob,
    Snapshot,
    Uncommitted,
}

impl<'a> Walk<'a> {
    /// Starts a walk that will be asked for about this many items; `None` when it will jump.
    pub fn new(view: &'a dyn View, range: &Range, now: Timestamp, items: Option<usize>) -> Self {
        let generation = range.generation;
        let marked = range.start.as_ref().map(|start| start.name.as_str());
        let least = range.start_from.as_deref().max(marked).unwrap_or_default();
        let least = least.max(range.prefix.as_str());
        let chunk = items.unwrap_or(JUMPING_CHUNK);
        let source = |from, prefix| Source::new(from, keys::after(prefix), chunk);
        let snapshots_from = match &range.start {
            Some(start) if start.name == least && start.time == Timestamp::MAX => {
                keys::after(keys::snapshots(generation, least))
            }
            Some(start) if start.name == least => keys::snapshot(generation, least, start.time),
            _ => keys::snapshots_from(generation, least),
        };
        let prefix = range.prefix.as_str();
        let all_snapshots = keys::snapshots_from(generation, prefix);
        let all_uncommitted = keys::uncommitted(generation, prefix);
        Walk {
            view,
            generation,
            now,
            blobs: source(
                keys::blob(generation, least),
                keys::blob(generation, prefix),
            ),
            snapshots: range
                .snapshots
                .then(|| source(snapshots_from, all_snapshots)),
            uncommitted: range
                .uncommitted
                .then(|| source(keys::uncommitted(generation, least), all_uncommitted)),
        }
    }

    /// Where the next item is.
    pub fn peek(&mut self) -> StoreResult<Option<Position>> {
        Ok(self.first()?.map(|(position, _)| position))
    }

    /// Takes the next item.
    pub fn next(&mut self) -> StoreResult<Option<(Position, Item)>> {
        let Some((position, kind)) = self.first()? else {
            return Ok(None);
        };
        let source = match kind {
            Kind::Blob => Some(&mut self.blobs),
            Kind::Snapshot => self.snapshots.as_mut(),
            Kind::Uncommitted => self.uncommitted.as_mut(),
        };
        let Some((_, value)) = source.and_then(|source| source.ahead.pop_front()) else {
            return Ok(None);
        };
        let item = match kind {
            Kind::Blob => {
                let mut blob = BlobRecord::decode(&value)?;
                pending_copy::settle(&mut blob, self.now);
                Item::Blob(Box::new(blob))
            }
            Kind::Snapshot => Item::Snapshot(Box::new(BlobRecord::decode(&value)?)),
            Kind::Uncommitted => Item::Uncommitted,
        };
        Ok(Some((position, item)))
    }

    /// Jumps past everything whose name starts with this.
    pub fn jump(&mut self, prefix: &str) {
        let generation = self.generation;
        self.blobs.seek(keys::after(keys::blob(generation, prefix)));
        if let Some(source) = &mut self.snapshots {
            source.seek(keys::after(keys::snapshots_from(generation, prefix)));
        }
        if let Some(source) = &mut self.uncommitted {
            source.seek(keys::after(keys::uncommitted(generation, prefix)));
        }
    }

    fn first(&mut self) -> StoreResult<Option<(Position, Kind)>> {
        let view = self.view;
        let mut first = position(self.blobs.peek(view)?, Kind::Blob);
        if let Some(source) = &mut self.snapshots {
            first = earlier(first, position(source.peek(view)?, Kind::Snapshot));
        }
        if let Some(source) = &mut self.uncommitted {
            let found = uncommitted(source, view, first.as_ref(), self.now)?;
            first = earlier(first, found);
        }
        Ok(first)
    }
}

/// The next uncommitted blob that is listed as such: not one that stands beside a committed blob,
/// and none whose blocks are too old to be there.
fn uncommitted(
    source: &mut Source,
    view: &dyn View,
    first: Option<&(Position, Kind)>,
    now: Timestamp,
) -> StoreResult<Option<(Position, Kind)>> {
    while let Some(head) = source.peek(view)? {
        let record = UncommittedRecord::decode(&head.1)?;
        let is_old = now >= record.touched.plus_s(BLOCKS_UNCOMMITTED_DAYS * DAY_S);
        let found = position(Some(head), Kind::Uncommitted);
        let name = found.as_ref().map(|(position, _)| &position.name);
        let is_committed =
            first.is_some_and(|(place, kind)| *kind == Kind::Blob && Some(&place.name) == name);
        if !is_old && !is_committed {
            return Ok(found);
        }
        source.ahead.pop_front();
    }
    Ok(None)
}

fn position(head: Option<&(Vec<u8>, Bytes)>, kind: Kind) -> Option<(Position, Kind)> {
    let (key, _) = head?;
    let (name, time) = match kind {
        Kind::Snapshot => keys::snapshot_name(key),
        Kind::Blob | Kind::Uncommitted => (keys::blob_name(key), Timestamp::MAX),
    };
    Some((Position { name, time }, kind))
}

fn earlier(
    one: Option<(Position, Kind)>,
    other: Option<(Position, Kind)>,
) -> Option<(Position, Kind)> {
    match (one, other) {
        (Some(one), Some(other)) if other.0 < one.0 => Some(other),
        (None, other) => other,
        (one, _) => one,
    }
}

/// A range of keys, read ahead.
struct Source {
    from: Vec<u8>,
    to: Vec<u8>,
    ahead: VecDeque<(Vec<u8>, Bytes)>,
    chunk: usize,
}

impl Source {
    fn new(from: Vec<u8>, to: Vec<u8>, chunk: usize) -> Self {
        Source {
            from,
            to,
            ahead: VecDeque::new(),
            chunk,
        }
    }

    fn peek(&mut self, view: &dyn View) -> StoreResult<Option<&(Vec<u8>, Bytes)>> {
        if self.ahead.is_empty() && self.from < self.to {
            self.read(view)?;
        }
        Ok(self.ahead.front())
    }

    fn read(&mut self, view: &dyn View) -> StoreResult<()> {
        let (ahead, chunk) = (&mut self.ahead, self.chunk);
        view.scan(&self.from, &self.to, &mut |key, value| {
            ahead.push_back((key.to_vec(), value.clone()));
            if ahead.len() < chunk {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        })?;
        // The key behind the last one, or nothing more where the range has ended.
        self.from = match self.ahead.back() {
            Some((key, _)) if self.ahead.len() == chunk => [key.as_slice(), &[0]].concat(),
            _ => self.to.clone(),
        };
        self.chunk = (chunk * 2).min(CHUNK_MAX);
        Ok(())
    }

    fn seek(&mut self, key: Vec<u8>) {
        while self.ahead.front().is_some_and(|(head, _)| *head < key) {
            self.ahead.pop_front();
        }
        if self.ahead.is_empty() {
            self.from = std::mem::take(&mut self.from).max(key);
            self.chunk = JUMPING_CHUNK;
        }
    }
}
