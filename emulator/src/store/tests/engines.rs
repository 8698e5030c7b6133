//! Resets in every mode, the parts of the store that readers see, and the order of a drain.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use proptest::prelude::*;

use super::fault_disk::Faults;
use super::{Map, clock, durable, key, memory, scan, scan_map};
use crate::store::engine::{Engine, MemoryEngine};
use crate::store::extents::Extents;
use crate::store::overlay::Published;
use crate::store::view::{Visit, Writes};
use crate::store::{Store, StoreConfig, StoreError, StoreResult, View};

/// A reset deletes state, payloads and time, in every mode, also after a restart.
#[tokio::test]
async fn reset_deletes_everything() {
    let dir = tempfile::tempdir().unwrap();
    let fast = Store::open(StoreConfig::fast(dir.path().join("fast"), clock())).unwrap();
    for store in [memory(), fast, durable(dir.path())] {
        super::put(&store, b"\x20a", b"1").await.unwrap();
        let bytes = super::pattern(1, 100_000);
        let id = super::put_payload(&store, &bytes).await.unwrap();
        let payload = store.read(|view| crate::store::location(view, id)).unwrap();
        let before = super::dump(&store).len();
        store.reset().unwrap();
        assert!(super::dump(&store).len() <= 1 && before > 3);
        assert_eq!(
            store.payload(&payload, 0..100_000).read_all().unwrap(),
            bytes
        );
        drop(payload);
        store.maintain(10).unwrap();
        assert_eq!(store.stats().segments, 0);
        super::put(&store, b"\x20b", b"2").await.unwrap();
        store.close().unwrap();
    }
    let store = durable(dir.path());
    assert_eq!(super::get(&store, b"\x20a"), None);
    assert_eq!(super::get(&store, b"\x20b"), Some(b"2".to_vec()));
}

fn writes() -> impl Strategy<Value = Writes> {
    let value = proptest::option::of(any::<u8>().prop_map(|n| Bytes::from(vec![n])));
    proptest::collection::btree_map(any::<u8>().prop_map(key), value, 0..20)
}

proptest! {
    /// Of a key that the engine and both files of the log have, readers see the newest value.
    #[test]
    fn newest_part_of_the_store_is_read(parts in proptest::array::uniform3(writes())) {
        let [old, sealed, active] = parts.clone();
        let published = Published {
            engine: Arc::new(MemoryEngine::default()),
            sealed: Arc::new(sealed),
            active,
        };
        published.engine.apply(&old).unwrap();
        let dir = "/extents".into();
        let disk = Arc::new(Faults::default());
        let extents = Extents::open(disk, dir, u64::MAX, true, &BTreeMap::new()).unwrap();
        let seen = published.seen(&extents);
        let newest: Writes = parts.into_iter().flatten().collect();
        let there: Map = (newest.iter())
            .filter_map(|(key, value)| Some((key.clone(), value.as_ref()?.to_vec())))
            .collect();
        for n in 0..=u8::MAX {
            let value = seen.get(&key(n)).unwrap();
            prop_assert_eq!(value.as_deref(), there.get(&key(n)).map(Vec::as_slice));
        }
        prop_assert_eq!(
            scan(&seen, &[0x20], &[0x21], usize::MAX),
            scan_map(&there, &[0x20], &[0x21], usize::MAX)
        );
    }
}

/// The calls of an engine, of which one may fail.
#[derive(Default)]
struct Calls {
    made: Mutex<Vec<&'static str>>,
    fails: Option<&'static str>,
}

impl Calls {
    fn call(&self, name: &'static str) -> StoreResult<()> {
        self.made.lock().push(name);
        match self.fails == Some(name) {
            true => Err(StoreError::Io(name.to_owned())),
            false => Ok(()),
        }
    }
}

impl Engine for Calls {
    fn get(&self, _: &[u8]) -> StoreResult<Option<Bytes>> {
        Ok(None)
    }

    fn scan(&self, _: &[u8], _: &[u8], _: &mut Visit<'_>) -> StoreResult<()> {
        Ok(())
    }

    fn apply(&self, _: &Writes) -> StoreResult<()> {
        self.call("apply")
    }

    fn sync(&self) -> StoreResult<()> {
        self.call("sync")
    }

    fn recycle_log(&self) -> StoreResult<()> {
        self.call("recycle_log")
    }

    fn disk_bytes(&self) -> u64 {
        0
    }
}

/// The log keeps its older file until the engine has its writes durably.
#[test]
fn log_is_freed_last() {
    let order = ["apply", "sync", "recycle_log"];
    for fails in [None, Some(order[0]), Some(order[1])] {
        let store = memory();
        let engine = Arc::new(Calls {
            fails,
            ..Calls::default()
        });
        let sealed = Writes::from([(key(1), Some(Bytes::new()))]);
        *store.0.shared().published.write() = Published {
            engine: Arc::clone(&engine) as Arc<dyn Engine>,
            sealed: Arc::new(sealed),
            active: Writes::new(),
        };
        let drained = store.0.shared().drain();
        assert_eq!(drained.is_ok(), fails.is_none());
        let made = order.iter().position(|call| Some(*call) == fails);
        let made = made.map_or(order.len(), |failed| failed + 1);
        assert_eq!(*engine.made.lock(), order[..made]);
    }
}
