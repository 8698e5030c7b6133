//! The trait of the ordered map of small values, and its implementation in memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::RwLock;

use super::error::StoreResult;
use super::view::{Visit, Writes};

/// An ordered map of small values, and the log of the writes that it does not hold yet.
pub(super) trait Engine: Send + Sync {
    fn get(&self, key: &[u8]) -> StoreResult<Option<Bytes>>;

    /// Visits the keys `from <= key < to` in order until `visit` breaks.
    fn scan(&self, from: &[u8], to: &[u8], visit: &mut Visit<'_>) -> StoreResult<()>;

    /// Applies all writes; after a crash some of them may be there.
    fn apply(&self, writes: &Writes) -> StoreResult<()>;

    /// Makes the applied writes durable.
    fn sync(&self) -> StoreResult<()>;

    /// Returns the bytes that the engine uses on disk.
    fn disk_bytes(&self) -> u64;

    /// Returns whether [`Engine::turn_log`] must come before the record of these writes.
    fn is_log_full(&self, writes: &Writes) -> bool {
        let _ = writes;
        false
    }

    /// Records writes in the log; after a crash all or none of them are there.
    fn record(&self, writes: &Writes) -> StoreResult<()> {
        let _ = writes;
        Ok(())
    }

    /// Makes the recorded writes durable.
    fn sync_log(&self) -> StoreResult<()> {
        Ok(())
    }

    /// Continues the log in its other file.
    fn turn_log(&self) {}

    /// Frees the other file of the log: all writes from before [`Engine::turn_log`] are applied and
    /// durable.
    fn recycle_log(&self) -> StoreResult<()> {
        Ok(())
    }

    /// Returns all current entries if that needs no copy.
    fn frozen(&self) -> Option<Arc<Records>> {
        None
    }
}

/// All entries of an engine.
pub(super) type Records = BTreeMap<Vec<u8>, Bytes>;

/// Keeps the entries in an ordered map, which the first write after [`Engine::frozen`] copies.
#[derive(Default)]
pub(super) struct MemoryEngine(RwLock<Arc<Records>>);

impl MemoryEngine {
    pub(super) fn of(records: Arc<Records>) -> Self {
        MemoryEngine(RwLock::new(records))
    }
}

impl Engine for MemoryEngine {
    fn get(&self, key: &[u8]) -> StoreResult<Option<Bytes>> {
        Ok(self.0.read_recursive().get(key).cloned())
    }

    fn scan(&self, from: &[u8], to: &[u8], visit: &mut Visit<'_>) -> StoreResult<()> {
        if from >= to {
            return Ok(());
        }
        // A visitor may read through the same view, so the lock must be recursive.
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
                // Copies, because the value may be a slice that keeps a larger buffer alive.
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
