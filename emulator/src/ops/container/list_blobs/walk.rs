//! Walks a container in listing order: base blobs, snapshots, versions, deleted and uncommitted
//! blobs, merged by name and time.
//!
//! Each of them is one range of keys, read ahead in chunks. A walk without a delimiter reads one
//! chunk of a page's size. With one it skips the members of every common prefix, and the chunks
//! start small again. A walk stops when it has passed too many hidden items.

mod source;

use std::ops::ControlFlow;

use bytes::Bytes;
use smalt_protocol::Timestamp;

use self::source::{JUMPING_CHUNK, Source};
use super::marker::Position;
use crate::keys::{self, Generation};
use crate::records::{BlobRecord, Record, UncommittedRecord};
use crate::rules::pending_copy;
use crate::store::{StoreResult, View};

/// Maximum number of hidden items that one walk passes: smalt's own limit. A page may have fewer
/// results than `maxresults`, or none, and a marker: "List Blobs".
pub const HIDDEN_MAX: usize = 20_000;

/// The part of a container to list.
#[derive(Clone, Debug)]
pub struct Range {
    /// Generation of the container.
    pub generation: Generation,
    /// Prefix of the names.
    pub prefix: String,
    /// The first position; `None` for the start of the container.
    pub start: Option<Position>,
    /// Smallest name to list, in addition to `start`.
    pub start_from: Option<String>,
    /// The items to list besides base blobs.
    pub includes: Includes,
}

/// The items that a listing shows besides base blobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Includes {
    /// Whether snapshots are listed.
    pub snapshots: bool,
    /// Whether previous versions are listed.
    pub versions: bool,
    /// Whether soft-deleted items of the other kinds are listed.
    pub deleted: bool,
    /// Whether blobs with only previous versions are listed, as one entry each.
    pub versions_only: bool,
    /// Whether blobs with only uncommitted blocks are listed.
    pub uncommitted: bool,
}

/// One item of a listing.
#[derive(Clone, Debug)]
pub enum Item {
    /// A base blob.
    Blob(Box<BlobRecord>),
    /// A soft-deleted base blob.
    Deleted(Box<BlobRecord>),
    /// A blob with only previous versions.
    VersionsOnly(Box<BlobRecord>),
    /// A snapshot, deleted or not.
    Snapshot(Box<BlobRecord>),
    /// A previous version, deleted or not.
    Version(Box<BlobRecord>),
    /// A blob with only uncommitted blocks.
    Uncommitted,
    /// The position of a base blob that no longer exists. It is not shown, but a page can start
    /// there.
    Gone,
}

/// An iterator over the items of a range.
pub struct Walk<'a> {
    view: &'a dyn View,
    generation: Generation,
    includes: Includes,
    now: Timestamp,
    /// Whether something has expired without being removed, so that blobs must be checked.
    looks_closely: bool,
    sources: Vec<(Kind, Source)>,
    /// Number of hidden items that may still be passed.
    patience: usize,
}

/// The kinds of records, in their order at one position.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Blob,
    Deleted,
    Snapshot,
    Version,
    Uncommitted,
}

impl Kind {
    /// Returns the key where the items with this name or a later one start.
    fn from(self, generation: Generation, name: &str) -> Vec<u8> {
        match self {
            Kind::Blob => keys::blob(generation, name),
            Kind::Deleted => keys::deleted_blob(generation, name),
            Kind::Snapshot => keys::snapshots_from(generation, name),
            Kind::Version => keys::versions_from(generation, name),
            Kind::Uncommitted => keys::uncommitted(generation, name),
        }
    }

    /// Returns the key where the items at this position or a later one start.
    fn start(self, generation: Generation, at: &Position) -> Vec<u8> {
        let is_base = at.time == Timestamp::MAX;
        match self {
            Kind::Snapshot if is_base => keys::after(keys::snapshots(generation, &at.name)),
            Kind::Snapshot => keys::snapshot(generation, &at.name, at.time),
            Kind::Version if is_base => keys::after(keys::versions(generation, &at.name)),
            Kind::Version => keys::version(generation, &at.name, at.time),
            _ => self.from(generation, &at.name),
        }
    }

    fn position(self, key: &[u8]) -> Position {
        let (name, time) = match self {
            Kind::Snapshot | Kind::Version => keys::snapshot_name(key),
            _ => (keys::blob_name(key), Timestamp::MAX),
        };
        Position { name, time }
    }
}

impl<'a> Walk<'a> {
    /// Starts a walk over about `items` items; `None` for a walk that skips prefixes.
    ///
    /// # Errors
    /// When the store fails.
    pub fn new(
        view: &'a dyn View,
        range: &Range,
        now: Timestamp,
        items: Option<usize>,
    ) -> StoreResult<Self> {
        let (generation, includes) = (range.generation, range.includes);
        let marked = range.start.as_ref().map(|start| start.name.as_str());
        let least = range.start_from.as_deref().max(marked).unwrap_or_default();
        let least = least.max(range.prefix.as_str());
        let start = range.start.as_ref().filter(|start| start.name == least);
        let source = |kind: Kind| {
            let from = match start {
                Some(start) => kind.start(generation, start),
                None => kind.from(generation, least),
            };
            let to = keys::after(kind.from(generation, &range.prefix));
            (kind, Source::new(from, to, items.unwrap_or(JUMPING_CHUNK)))
        };
        let shows_deleted = includes.deleted || includes.versions || includes.versions_only;
        let wanted = [
            (Kind::Blob, true),
            (Kind::Deleted, shows_deleted),
            (Kind::Snapshot, includes.snapshots),
            (Kind::Version, includes.versions),
            (Kind::Uncommitted, includes.uncommitted),
        ];
        let wanted = wanted.into_iter().filter(|(_, is_wanted)| *is_wanted);
        Ok(Walk {
            view,
            generation,
            includes,
            now,
            looks_closely: has_expired(view, now)?,
            patience: HIDDEN_MAX,
            sources: wanted.map(|(kind, _)| source(kind)).collect(),
        })
    }

    /// Returns the position of the next item.
    pub fn peek(&mut self) -> StoreResult<Option<Position>> {
        Ok(self.first()?.map(|(position, _)| position))
    }

    /// Returns where to continue a walk that stopped before its end.
    pub fn stopped(&mut self) -> StoreResult<Option<Position>> {
        match self.patience {
            0 => Ok(self.head()?.map(|(position, _)| position)),
            _ => Ok(None),
        }
    }

    /// Returns the next item.
    pub fn next(&mut self) -> StoreResult<Option<(Position, Item)>> {
        let Some((position, index)) = self.first()? else {
            return Ok(None);
        };
        let taken = self.sources.get_mut(index);
        let Some((kind, (_, value))) = taken.and_then(|(kind, s)| Some((*kind, s.pop()?))) else {
            return Ok(None);
        };
        let blob = || BlobRecord::decode(&value).map(Box::new);
        let item = match kind {
            Kind::Blob => {
                let mut blob = blob()?;
                pending_copy::settle(&mut blob, self.now);
                Item::Blob(blob)
            }
            Kind::Snapshot => Item::Snapshot(blob()?),
            Kind::Version => Item::Version(blob()?),
            Kind::Uncommitted => Item::Uncommitted,
            Kind::Deleted => match blob()? {
                deleted if deleted.deleted.is_some() => Item::Deleted(deleted),
                placeholder if self.includes.versions_only => Item::VersionsOnly(placeholder),
                _ => {
                    self.patience = self.patience.saturating_sub(1);
                    Item::Gone
                }
            },
        };
        Ok(Some((position, item)))
    }

    /// Skips all names with this prefix.
    pub fn jump(&mut self, prefix: &str) {
        for (kind, source) in &mut self.sources {
            source.seek(keys::after(kind.from(self.generation, prefix)));
        }
    }

    /// Returns the first position that is shown and the index of its source; `None` at the end, or
    /// after too many hidden items.
    fn first(&mut self) -> StoreResult<Option<(Position, usize)>> {
        while let Some((position, index)) = self.head()?
            && self.patience > 0
        {
            if self.is_shown(index)? {
                self.drop_others(&position, index)?;
                return Ok(Some((position, index)));
            }
            self.pop(index);
            self.patience -= 1;
        }
        Ok(None)
    }

    /// Returns the first position, shown or not, and the index of its source: the lower one if two
    /// have the same position.
    fn head(&mut self) -> StoreResult<Option<(Position, usize)>> {
        let mut first: Option<(Position, usize)> = None;
        for (index, (kind, source)) in self.sources.iter_mut().enumerate() {
            if let Some((key, _)) = source.peek(self.view)? {
                let position = kind.position(key);
                if first.as_ref().is_none_or(|(other, _)| position < *other) {
                    first = Some((position, index));
                }
            }
        }
        Ok(first)
    }

    /// Whether the next item of a source exists and is included.
    fn is_shown(&mut self, index: usize) -> StoreResult<bool> {
        let Some((kind, source)) = self.sources.get_mut(index) else {
            return Ok(false);
        };
        let Some((_, value)) = source.peek(self.view)? else {
            return Ok(false);
        };
        if self.looks_closely && *kind == Kind::Blob {
            return Ok(BlobRecord::decode(value)?.is_there(self.now));
        }
        is_shown(*kind, value, self.includes, self.now)
    }

    /// Skips the items of other sources at a position that is taken.
    fn drop_others(&mut self, place: &Position, taken: usize) -> StoreResult<()> {
        for (kind, source) in self.sources.iter_mut().skip(taken + 1) {
            if let Some((key, _)) = source.peek(self.view)?
                && kind.position(key) == *place
            {
                source.pop();
            }
        }
        Ok(())
    }

    fn pop(&mut self, index: usize) {
        if let Some((_, source)) = self.sources.get_mut(index) {
            source.pop();
        }
    }
}

/// Whether anything has expired without being removed.
fn has_expired(view: &dyn View, now: Timestamp) -> StoreResult<bool> {
    let from = keys::expiring_from(Timestamp::MIN);
    let to = keys::expiring_from(now.plus_ticks(1));
    let mut found = false;
    view.scan(&from, &to, &mut |_, _| {
        found = true;
        ControlFlow::Break(())
    })?;
    Ok(found)
}

/// Whether an item exists and the listing includes it.
fn is_shown(kind: Kind, value: &Bytes, includes: Includes, now: Timestamp) -> StoreResult<bool> {
    match kind {
        Kind::Blob => Ok(true),
        Kind::Uncommitted => Ok(UncommittedRecord::decode(value)?.is_kept(now)),
        Kind::Deleted | Kind::Snapshot | Kind::Version => {
            Ok(match BlobRecord::decode(value)?.deleted {
                Some(deleted) => includes.deleted && !deleted.is_over(now),
                None => kind != Kind::Deleted || includes.versions || includes.versions_only,
            })
        }
    }
}
