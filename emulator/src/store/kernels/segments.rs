//! The segments while payloads are put, read and released and maintenance moves and removes them,
//! with a loss of power at any moment: what was acknowledged is there, whole.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Mutex;

use super::*;
use crate::disk::Disk;
use crate::store::engine::Records;
use crate::store::home::Bare;
use crate::store::payload::{Location, segments_needed};
use crate::store::saved::Saved;
use crate::store::testing::fault_disk::Faults;
use crate::store::testing::{get_payload, luck, pattern, put_payload};
use crate::store::{PayloadId, release};

/// Above the limit of an inline payload, of one frame.
const PAYLOAD_BYTES: usize = 17_000;
/// Room for two payloads.
const SEGMENT_BYTES: u64 = 40_000;
/// Number of payloads that are put.
const PUTS: u64 = 5;
/// Steps of others that a slow reader lets pass.
const SLOW: usize = 100;
/// Images of the disk that a property looks at, one after each of as many steps.
const LOOKS: usize = 4;

/// What a loss of power leaves of the engine: the writes of the log as it was synced last.
#[derive(Clone, Default)]
struct Synced(Arc<Mutex<Records>>);

impl Synced {
    fn get(&self) -> Records {
        self.0.lock().unwrap().clone()
    }
}

/// An engine in memory with a log.
#[derive(Default)]
struct Logged {
    map: MemoryEngine,
    recorded: Mutex<Records>,
    synced: Synced,
}

impl Engine for Logged {
    fn get(&self, key: &[u8]) -> StoreResult<Option<Bytes>> {
        self.map.get(key)
    }

    fn scan(&self, from: &[u8], to: &[u8], visit: &mut Visit<'_>) -> StoreResult<()> {
        self.map.scan(from, to, visit)
    }

    fn apply(&self, writes: &Writes) -> StoreResult<()> {
        self.map.apply(writes)
    }

    fn sync(&self) -> StoreResult<()> {
        Ok(())
    }

    fn disk_bytes(&self) -> u64 {
        0
    }

    fn record(&self, writes: &Writes) -> StoreResult<()> {
        let mut recorded = self.recorded.lock().unwrap();
        for (key, value) in writes {
            match value {
                Some(value) => recorded.insert(key.clone(), value.clone()),
                None => recorded.remove(key),
            };
        }
        Ok(())
    }

    fn sync_log(&self) -> StoreResult<()> {
        thread::yield_now();
        let recorded = self.recorded.lock().unwrap().clone();
        *self.synced.0.lock().unwrap() = recorded;
        Ok(())
    }
}

/// Returns what is left of the engine and of the disk; the seed chooses among unsynced writes.
type Loss = fn(&Scene, u64) -> (Records, Faults);

/// A store on a disk in memory, and what was acknowledged.
#[derive(Clone)]
struct Scene {
    store: Store,
    disk: Faults,
    synced: Synced,
    /// Payloads that are not released.
    told: Arc<Mutex<BTreeSet<PayloadId>>>,
}

fn bytes(id: PayloadId) -> Vec<u8> {
    pattern(id.0, PAYLOAD_BYTES)
}

fn dir() -> PathBuf {
    PathBuf::from("/extents")
}

fn extents(disk: &Faults, records: &MemoryEngine) -> Extents {
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    let needed = segments_needed(&Bare(records)).unwrap();
    Extents::open(disk, dir(), SEGMENT_BYTES, true, &needed).unwrap()
}

impl Scene {
    /// One segment with a payload that stays and one that goes, and one that accepts payloads, with
    /// one that goes.
    fn new() -> (Self, [PayloadId; 2]) {
        let (disk, engine) = (Faults::default(), Logged::default());
        let synced = engine.synced.clone();
        let extents = extents(&disk, &engine.map);
        let config = StoreConfig::durable(dir(), clock());
        let engine = Box::new(engine);
        let store = Store::start(&config, Home::Memory, engine, extents, Saved::default());
        let scene = Scene {
            store: store.unwrap(),
            disk,
            synced,
            told: Arc::default(),
        };
        scene.put(1);
        let goes = [scene.put(2), scene.put(3)];
        (scene, goes)
    }

    /// Puts the next payload; the seed of its bytes is its id.
    fn put(&self, id: u64) -> PayloadId {
        let put = block_on(put_payload(&self.store, &bytes(PayloadId(id)))).unwrap();
        assert_eq!(put, PayloadId(id));
        self.told.lock().unwrap().insert(put);
        put
    }

    fn release(&self, id: PayloadId) {
        // From its request on it may be gone.
        self.told.lock().unwrap().remove(&id);
        let job = move |tx: &mut Transaction<'_>| release(tx, id);
        self.store.commit_blocking(job).unwrap();
    }

    /// Checks that a loss of power at this moment leaves everything that was acknowledged.
    fn lose_power(&self, seed: u64, loss: Loss) {
        let told = self.told.lock().unwrap().clone();
        let (records, disk) = loss(self, seed);
        let records = MemoryEngine::of(Arc::new(records));
        let extents = extents(&disk, &records);
        for id in (1..=PUTS).map(PayloadId) {
            let Some(Location::Extent(at)) = Location::read(&Bare(&records), id).unwrap() else {
                assert!(!told.contains(&id), "{id:?} is lost");
                continue;
            };
            let segment = extents.pin(at.segment).unwrap();
            let frames = segment.read_frames(at.offset, at.len, 0..1).unwrap();
            assert_eq!(frames.concat(), bytes(id), "{id:?}");
        }
    }
}

/// How a store is used.
struct Variant {
    maintain: fn(&Store),
    read: fn(&Store, PayloadId) -> StoreResult<Vec<u8>>,
    loss: Loss,
}

const REAL: Variant = Variant {
    maintain: |store| {
        store.maintain(10).unwrap();
    },
    read: get_payload,
    loss: |scene, seed| (scene.synced.get(), scene.disk.after_crash(luck(seed))),
};

/// Whatever comes first, no acknowledged payload is lost, and every reader gets its payload whole.
fn nothing_is_lost(variant: &'static Variant) {
    let (scene, goes) = Scene::new();
    let (tidy, upload, reader) = (scene.clone(), scene.clone(), scene.clone());
    let threads = [
        thread::spawn(move || {
            goes.into_iter().for_each(|id| tidy.release(id));
            (variant.maintain)(&tidy.store);
        }),
        thread::spawn(move || {
            upload.put(4);
            upload.put(PUTS);
        }),
        thread::spawn(move || {
            for _ in 0..2 {
                let found = (variant.read)(&reader.store, PayloadId(1)).unwrap();
                assert_eq!(found, bytes(PayloadId(1)));
            }
        }),
    ];
    for seed in 1..=LOOKS as u64 {
        thread::yield_now();
        scene.lose_power(seed, variant.loss);
    }
    for thread in threads {
        thread.join().unwrap();
    }
    let told = scene.told.lock().unwrap().clone();
    assert_eq!(told, BTreeSet::from([1, 4, PUTS].map(PayloadId)));
    for id in told {
        assert_eq!(get_payload(&scene.store, id).unwrap(), bytes(id), "{id:?}");
    }
    scene.lose_power(LOOKS as u64 + 1, variant.loss);
    scene.store.close().unwrap();
}

#[test]
fn acknowledged_payloads_survive_maintenance_and_power_losses() {
    holds(|| nothing_is_lost(&REAL));
}

/// Wrong: maintenance deletes a segment that was empty when it looked, whoever has got room in it
/// since.
#[test]
fn wrong_removal_without_a_second_look_is_found() {
    const WRONG: Variant = Variant {
        maintain: |store| {
            let shared = store.0.shared();
            for sweep in shared.extents.sweep() {
                let key = keys::segment(sweep.segment.number());
                let is_empty = shared.read(|view| view.get(&key)).unwrap().is_none();
                if is_empty && sweep.reserved == 0 {
                    shared.extents.seal(sweep.segment.number());
                    shared.extents.delete(&sweep.segment).unwrap();
                }
            }
        },
        ..REAL
    };
    is_found(|| nothing_is_lost(&WRONG));
}

/// Wrong: a reader takes the place of a payload from one state and its segment from another.
#[test]
fn wrong_reader_of_two_moments_is_found() {
    const WRONG: Variant = Variant {
        read: |store, id| {
            let shared = store.0.shared();
            let place = shared.read(|view| Location::read(view, id))?;
            let Some(Location::Extent(at)) = place else {
                return Err(StoreError::Closed);
            };
            (0..SLOW).for_each(|_| thread::yield_now());
            let segment = shared.extents.pin(at.segment).ok_or(StoreError::Closed)?;
            Ok(segment.read_frames(at.offset, at.len, 0..1)?.concat())
        },
        ..REAL
    };
    is_found(|| nothing_is_lost(&WRONG));
}

/// Wrong: the log reaches the disk before the payloads that it names.
#[test]
fn wrong_log_before_its_payloads_is_found() {
    const WRONG: Variant = Variant {
        loss: |scene, seed| {
            let disk = scene.disk.after_crash(luck(seed));
            thread::yield_now();
            (scene.synced.get(), disk)
        },
        ..REAL
    };
    is_found(|| nothing_is_lost(&WRONG));
}
