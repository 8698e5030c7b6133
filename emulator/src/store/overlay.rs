//! What readers and jobs see: the engine, under the durable writes that it does not hold yet.

use std::sync::Arc;

use bytes::Bytes;

use super::engine::Engine;
use super::error::StoreResult;
use super::extents::{Extents, Segment};
use super::sync::RwLock;
use super::view::{Over, View, Visit, Writes};

/// The readers' state.
pub(super) struct Published {
    pub(super) engine: Arc<dyn Engine>,
    /// Writes of the log's full file, which go to the engine now.
    pub(super) sealed: Arc<Writes>,
    /// Writes of the log's current file.
    pub(super) active: Writes,
}

/// The view of published state during one read.
pub(super) struct Seen<'a> {
    published: &'a Published,
    extents: &'a Extents,
}

/// A view of the engine alone.
pub(super) struct Applied<'a> {
    pub(super) engine: &'a dyn Engine,
    pub(super) extents: &'a Extents,
}

/// The committer's view: the published state, under a group that may not be published yet.
pub(super) struct Ahead<'a> {
    pub(super) published: &'a RwLock<Published>,
    pub(super) extents: &'a Extents,
    pub(super) group: &'a Writes,
}

impl Published {
    pub(super) fn of(engine: Arc<dyn Engine>) -> Self {
        Published {
            engine,
            sealed: Arc::default(),
            active: Writes::new(),
        }
    }

    pub(super) fn seen<'a>(&'a self, extents: &'a Extents) -> Seen<'a> {
        Seen {
            published: self,
            extents,
        }
    }
}

impl View for Seen<'_> {
    fn get(&self, key: &[u8]) -> StoreResult<Option<Bytes>> {
        let Published {
            engine,
            sealed,
            active,
        } = self.published;
        match active.get(key).or_else(|| sealed.get(key)) {
            Some(written) => Ok(written.clone()),
            None => engine.get(key),
        }
    }

    fn scan(&self, from: &[u8], to: &[u8], visit: &mut Visit<'_>) -> StoreResult<()> {
        let applied = Applied {
            engine: self.published.engine.as_ref(),
            extents: self.extents,
        };
        let sealed = Over::new(&applied, &self.published.sealed);
        Over::new(&sealed, &self.published.active).scan(from, to, visit)
    }

    fn pin(&self, segment: u64) -> Option<Arc<Segment>> {
        self.extents.pin(segment)
    }
}

impl View for Ahead<'_> {
    fn get(&self, key: &[u8]) -> StoreResult<Option<Bytes>> {
        match self.group.get(key) {
            Some(written) => Ok(written.clone()),
            None => self.published.read_recursive().seen(self.extents).get(key),
        }
    }

    /// The visitor may read through the same view, so the lock is recursive.
    fn scan(&self, from: &[u8], to: &[u8], visit: &mut Visit<'_>) -> StoreResult<()> {
        let published = self.published.read_recursive();
        Over::new(&published.seen(self.extents), self.group).scan(from, to, visit)
    }

    fn pin(&self, segment: u64) -> Option<Arc<Segment>> {
        self.extents.pin(segment)
    }
}

impl View for Applied<'_> {
    fn get(&self, key: &[u8]) -> StoreResult<Option<Bytes>> {
        self.engine.get(key)
    }

    fn scan(&self, from: &[u8], to: &[u8], visit: &mut Visit<'_>) -> StoreResult<()> {
        self.engine.scan(from, to, visit)
    }

    fn pin(&self, segment: u64) -> Option<Arc<Segment>> {
        self.extents.pin(segment)
    }
}
