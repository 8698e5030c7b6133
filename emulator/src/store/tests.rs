//! Tests of the store's guarantees, on disks that lose, tear and refuse writes.

mod crash;
mod durability;
mod engines;
mod failing;
mod fast;
mod logs;
mod losses;
mod model;
mod opening;
mod payloads;
mod replacing;
mod room;
mod schedules;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use smalt_protocol::StorageError;

use super::testing::{clock, fault_disk, get_payload, luck, pattern, put_payload, stage};
use super::{Store, StoreConfig, Transaction, View};
use crate::disk::Disk;

type Map = BTreeMap<Vec<u8>, Vec<u8>>;
type Entries = Vec<(Vec<u8>, Vec<u8>)>;

/// Small, so that tests close, compact and delete segments.
const SEGMENT_BYTES: u64 = 256 * 1024;

fn memory() -> Store {
    Store::open(StoreConfig::memory(clock())).unwrap()
}

fn config(dir: &Path) -> StoreConfig {
    StoreConfig {
        segment_bytes: SEGMENT_BYTES,
        ..StoreConfig::durable(dir, clock())
    }
}

fn durable(dir: &Path) -> Store {
    Store::open(config(dir)).unwrap()
}

fn durable_on(dir: &Path, disk: &Arc<impl Disk + 'static>) -> Store {
    Store::open_on(config(dir), Arc::clone(disk) as Arc<dyn Disk>).unwrap()
}

async fn put(store: &Store, key: &[u8], value: &[u8]) -> Result<(), StorageError> {
    let (key, value) = (key.to_vec(), value.to_vec());
    let job = move |tx: &mut Transaction<'_>, _: &_| {
        tx.put(key, value);
        Ok(())
    };
    store.commit(job).await
}

fn get(store: &Store, key: &[u8]) -> Option<Vec<u8>> {
    let value = store.read(|view| view.get(key)).unwrap();
    value.map(|value| value.to_vec())
}

/// Returns all entries of the store, as readers see them.
fn dump(store: &Store) -> Entries {
    let mut all = Vec::new();
    let scanned = store.read(|view| {
        view.scan(&[], &[0xFF; 4], &mut |key, value| {
            all.push((key.to_vec(), value.to_vec()));
            std::ops::ControlFlow::Continue(())
        })
    });
    scanned.unwrap();
    all
}

fn key(n: u8) -> Vec<u8> {
    // Keys of all lengths, some of them prefixes of others.
    [&[0x20], vec![n % 16; usize::from(n / 16)].as_slice()].concat()
}

fn scan(view: &dyn View, from: &[u8], to: &[u8], limit: usize) -> Entries {
    let (mut found, mut is_ended) = (Vec::new(), false);
    view.scan(from, to, &mut |key, value| {
        assert!(!is_ended, "the scan continues after a break");
        if found.len() == limit {
            is_ended = true;
            return ControlFlow::Break(());
        }
        found.push((key.to_vec(), value.to_vec()));
        ControlFlow::Continue(())
    })
    .unwrap();
    found
}

fn scan_map(map: &Map, from: &[u8], to: &[u8], limit: usize) -> Entries {
    if from >= to {
        return Vec::new();
    }
    let range = map.range(from.to_vec()..to.to_vec()).take(limit);
    range.map(|(k, v)| (k.clone(), v.clone())).collect()
}
