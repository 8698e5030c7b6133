//! The narrow trait behind which an ordered map of small values stands, and the one in memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::RwLock;

use super::error::StoreResult;
use super::view::{Visit, Writes};

/// An ordered map of small values. Only the committer writes.
pub(super) trait Engine: Send + Sync {
    /// The value of a key.
    fn get(&self, key: &[u8]) -> StoreResult<Option<Bytes>>;

    /// The first entry whose key is not before this one.
    fn first_from(&self, key: &[u8]) -> StoreResult<Option<(Vec<u8>, Bytes)>>;

    /// Visits `from <= key < to` in order until told to stop.
    fn scan(&self, from: &[u8], to: &[u8], visit: &mut Visit<'_>) -> StoreResult<()>;

    /// Applies all writes, after a crash all or none of them.
    fn apply(&self, writes: &Writes) -> StoreResult<()>;

    /// Makes durable what was applied.
    fn sync(&self) -> StoreResult<()>;

    /// Bytes that the engine takes on disk.
    fn disk_bytes(&self) -> u64;

    /// Everything as it is now, where that costs nothing.
    fn frozen(&self) -> Option<Arc<Records>> {
        None
    }
}

/// All entries of an engine.
pub(super) type Records = BTreeMap<Vec<u8>, Bytes>;

/// Keeps everything in an ordered map, which is copied by the first write after somebody froze it.
#[derive(Default)]
pub(super) struct MemoryEngine(RwLock<Arc<Records>>);

impl MemoryEngine {
    /// An engine that goes on from these entries.
    pub(super) fn of(records: Arc<Records>) -> Self {
        MemoryEngine(RwLock::new(records))
    }
}

impl Engine for MemoryEngine {
    fn get(&self, key: &[u8]) -> StoreResult<Option<Bytes>> {
        Ok(self.0.read_recursive().get(key).cloned())
    }

    fn first_from(&self, key: &[u8]) -> StoreResult<Option<(Vec<u8>, Bytes)>> {
        let map = self.0.read_recursive();
        let from = (std::ops::Bound::Included(key), std::ops::Bound::Unbounded);
        let first = map.range::<[u8], _>(from).next();
        Ok(first.map(|(key, value)| (key.clone(), value.clone())))
    }

    fn scan(&self, from: &[u8], to: &[u8], visit: &mut Visit<'_>) -> StoreResult<()> {
        if from >= to {
            return Ok(());
        }
        // A visitor may read through the same view: the lock must let it in again.
        let map = self.0.read_recursive();
        for (key, value) in map.range::<[u8], _>((
            std::ops::Bound::Included(from),
            std::ops::Bound::Excluded(to),
        )) {
            if visit(key, value).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn apply(&self, writes: &Writes) -> StoreResult<()> {
        let mut shared = self.0.write();
        let map = Arc::make_mut(&mut shared);
        for (key, written) in writes {
            match written {
                // A copy: the value may be a slice that keeps a larger buffer alive.
                Some(value) => map.insert(key.clone(), Bytes::copy_from_slice(value)),
                None => map.remove(key),
            };
        }
        Ok(())
    }

    fn sync(&self) -> StoreResult<()> {
        Ok(())
    }

    fn disk_bytes(&self) -> u64 {
        0
    }

    fn frozen(&self) -> Option<Arc<Records>> {
        Some(Arc::clone(&self.0.read()))
    }
}
