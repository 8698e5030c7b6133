//! All modes behave the same: random transactions in memory, in sled and in a plain map.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use proptest::collection::vec;
use proptest::prelude::*;
use smalt_protocol::StorageError;

use super::fault_disk::Faults;
use super::{clock, durable, durable_on, memory};
use crate::store::engine::{Engine, MemoryEngine};
use crate::store::extents::Extents;
use crate::store::overlay::Published;
use crate::store::view::{Visit, Writes};
use crate::store::{Store, StoreConfig, StoreError, StoreResult, Transaction, View};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

#[derive(Clone, Debug)]
enum Step {
    /// The writes of one commit, and whether it refuses.
    Commit(Vec<(u8, Option<u16>)>, bool),
    Scan(u8, u8, usize),
    Reopen,
}

fn step() -> impl Strategy<Value = Step> {
    let write = (any::<u8>(), proptest::option::of(0_u16..17_000));
    prop_oneof![
        6 => (vec(write, 0..6), proptest::bool::weighted(0.2))
            .prop_map(|(writes, refuses)| Step::Commit(writes, refuses)),
        3 => (any::<u8>(), any::<u8>(), 0..20_usize)
            .prop_map(|(from, to, limit)| Step::Scan(from, to, limit)),
        1 => Just(Step::Reopen),
    ]
}

fn key(n: u8) -> Vec<u8> {
    // Keys of all lengths, some of them prefixes of others.
    [&[0x20], vec![n % 16; usize::from(n / 16)].as_slice()].concat()
}

fn scan(view: &dyn View, from: &[u8], to: &[u8], limit: usize) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut found = Vec::new();
    view.scan(from, to, &mut |key, value| {
        if found.len() == limit {
            return ControlFlow::Break(());
        }
        found.push((key.to_vec(), value.to_vec()));
        ControlFlow::Continue(())
    })
    .unwrap();
    found
}

fn scan_map(map: &Map, from: &[u8], to: &[u8], limit: usize) -> Vec<(Vec<u8>, Vec<u8>)> {
    if from >= to {
        return Vec::new();
    }
    let range = map.range(from.to_vec()..to.to_vec()).take(limit);
    range.map(|(k, v)| (k.clone(), v.clone())).collect()
}

async fn commit(
    store: &Store,
    writes: Vec<(u8, Option<u16>)>,
    refuses: bool,
) -> Result<Vec<(Vec<u8>, Vec<u8>)>, StorageError> {
    store
        .commit(move |tx: &mut Transaction<'_>, _| {
            for (n, len) in &writes {
                match len {
                    Some(len) => tx.put(key(*n), vec![*n; usize::from(*len)]),
                    None => tx.delete(key(*n)),
                }
            }
            let seen = scan(tx, &[0x20], &[0x21], 8);
            if refuses {
                return Err(StorageError::internal("refused"));
            }
            Ok(seen)
        })
        .await
}

async fn compare(steps: Vec<Step>) {
    let dir = tempfile::tempdir().unwrap();
    // Tests the engine, without the time that the machine's disk needs for syncs.
    let disk = Arc::new(Faults::default());
    let mut stores = [memory(), durable_on(dir.path(), &disk)];
    let mut map = Map::new();
    for step in steps {
        match step {
            Step::Commit(writes, refuses) => {
                let mut next = map.clone();
                for (n, len) in &writes {
                    match len {
                        Some(len) => next.insert(key(*n), vec![*n; usize::from(*len)]),
                        None => next.remove(&key(*n)),
                    };
                }
                let expected = scan_map(&next, &[0x20], &[0x21], 8);
                for store in &stores {
                    let seen = commit(store, writes.clone(), refuses).await;
                    assert_eq!(seen.is_err(), refuses);
                    assert!(seen.is_ok_and(|seen| seen == expected) || refuses);
                }
                if !refuses {
                    map = next;
                }
            }
            Step::Scan(from, to, limit) => {
                let (from, to) = (key(from), key(to));
                let expected = scan_map(&map, &from, &to, limit);
                for store in &stores {
                    let seen = store.read(|view| scan(view, &from, &to, limit));
                    assert_eq!(seen, expected);
                }
            }
            Step::Reopen => {
                stores[1].close().unwrap();
                stores[1] = durable_on(dir.path(), &disk);
            }
        }
    }
    for store in &stores {
        let all = store.read(|view| scan(view, &[0x10], &[0xFF], usize::MAX));
        assert_eq!(all, map.into_iter().collect::<Vec<_>>());
        map = all.into_iter().collect();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn all_engines_agree_with_a_map(steps in vec(step(), 1..30)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(compare(steps));
    }
}

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
