//! Parts of tests and kernels: payloads, and a disk with faults.

#![cfg_attr(
    feature = "shuttle",
    expect(dead_code, reason = "the kernels need a part of it")
)]

pub(super) mod fault_disk;

use smalt_protocol::{StorageError, Timestamp};

use super::{PayloadId, Staged, Store, StoreResult, adopt, location};
use crate::clock::Clock;

pub(super) fn clock() -> Clock {
    Clock::manual(Timestamp::from_unix_s(1_000_000))
}

/// Returns choices that depend on a seed.
pub(super) fn luck(mut seed: u64) -> impl FnMut() -> bool {
    move || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed.is_multiple_of(2)
    }
}

/// Returns bytes that differ between payloads and between places.
pub(super) fn pattern(seed: u64, len: usize) -> Vec<u8> {
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

pub(super) async fn stage(store: &Store, bytes: &[u8]) -> StoreResult<Staged> {
    let mut writer = store.stage(bytes.len() as u64)?;
    for piece in bytes.chunks(10_000) {
        writer.write(piece)?;
    }
    writer.finish().await
}

pub(super) async fn put_payload(store: &Store, bytes: &[u8]) -> Result<PayloadId, StorageError> {
    let staged = stage(store, bytes).await?;
    store.commit(move |tx, _| Ok(adopt(tx, staged)?)).await
}

pub(super) fn get_payload(store: &Store, id: PayloadId) -> StoreResult<Vec<u8>> {
    let payload = store.read(|view| location(view, id))?;
    let reader = store.payload(&payload, 0..payload.len());
    Ok(reader.read_all()?.to_vec())
}
