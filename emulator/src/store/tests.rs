//! Tests of the store's guarantees, on disks that lose, tear and refuse writes.

mod crash;
mod durability;
mod engines;
mod failing;
mod fast;
mod fault_disk;
mod logs;
mod losses;
mod opening;
mod payloads;
mod replacing;
mod room;
mod schedules;

use std::path::Path;
use std::sync::Arc;

use smalt_protocol::{StorageError, Timestamp};

use super::{PayloadId, Store, StoreConfig, Transaction, adopt, location};
use crate::clock::Clock;
use crate::disk::Disk;

/// Small, so that tests close, compact and delete segments.
const SEGMENT_BYTES: u64 = 256 * 1024;

fn clock() -> Clock {
    Clock::manual(Timestamp::from_unix_s(1_000_000))
}

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

/// Returns choices that depend on a seed.
fn luck(mut seed: u64) -> impl FnMut() -> bool {
    move || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed.is_multiple_of(2)
    }
}

/// Returns bytes that differ between payloads and between places.
fn pattern(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(len);
    bytes
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

async fn put_payload(store: &Store, bytes: &[u8]) -> Result<PayloadId, StorageError> {
    let mut writer = store.stage(bytes.len() as u64)?;
    for piece in bytes.chunks(10_000) {
        writer.write(piece)?;
    }
    let staged = writer.finish().await?;
    store.commit(move |tx, _| Ok(adopt(tx, staged)?)).await
}

fn get_payload(store: &Store, id: PayloadId) -> super::StoreResult<Vec<u8>> {
    let payload = store.read(|view| location(view, id))?;
    let reader = store.payload(&payload, 0..payload.len());
    Ok(reader.read_all()?.to_vec())
}

/// Returns all entries of the store, as readers see them.
fn dump(store: &Store) -> Vec<(Vec<u8>, Vec<u8>)> {
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
