//! The store's own keys and their values. The table stands in the documentation of the store.

use std::ops::RangeInclusive;

use super::error::{StoreError, StoreResult};
use super::payload::PayloadId;

/// First bytes of keys that belong to the store; operations use all others.
pub const OWN_PREFIXES: RangeInclusive<u8> = 0x00..=0x0F;

/// The last stamp: `now`, `tick`.
pub(super) const STAMP: [u8; 2] = [0x00, 0x01];
/// The last payload id given.
pub(super) const LAST_PAYLOAD: [u8; 2] = [0x00, 0x02];
/// The format version; absent in an empty or lost store.
pub(super) const FORMAT: [u8; 2] = [0x00, 0x03];
const LOCATION: u8 = 0x01;
const REFERENCES: u8 = 0x02;
const SEGMENT: u8 = 0x03;
const SEGMENT_PAYLOAD: u8 = 0x04;

/// Where a payload is.
pub fn location(id: PayloadId) -> Vec<u8> {
    numbered(LOCATION, id.0)
}

/// The payload of a [`location`] key; `None` for other keys.
pub fn payload_at(key: &[u8]) -> Option<PayloadId> {
    let id = key.strip_prefix(&[LOCATION])?;
    id.try_into().ok().map(u64::from_be_bytes).map(PayloadId)
}

/// Whether a record is about this store alone: its format, where payloads are, what segments hold.
pub(super) fn is_local(key: &[u8]) -> bool {
    key == FORMAT || matches!(key.first(), Some(&(LOCATION | SEGMENT | SEGMENT_PAYLOAD)))
}

/// How many references a payload has beyond the first.
pub(super) fn references(id: PayloadId) -> Vec<u8> {
    numbered(REFERENCES, id.0)
}

/// How many bytes of a segment live payloads take.
pub(super) fn segment(number: u64) -> Vec<u8> {
    numbered(SEGMENT, number)
}

/// The segment of a [`segment`] key; `None` for other keys.
pub(super) fn segment_of(key: &[u8]) -> Option<u64> {
    let (prefix, number) = key.split_first()?;
    if *prefix != SEGMENT {
        return None;
    }
    number.try_into().ok().map(u64::from_be_bytes)
}

/// The payload of a [`segment_payload`] key; `None` for other keys.
pub(super) fn payload_of(key: &[u8]) -> Option<PayloadId> {
    let id = key.strip_prefix(&[SEGMENT_PAYLOAD])?.get(8..)?;
    id.try_into().ok().map(u64::from_be_bytes).map(PayloadId)
}

/// That a segment holds a payload.
pub(super) fn segment_payload(segment: u64, id: PayloadId) -> Vec<u8> {
    let mut key = numbered(SEGMENT_PAYLOAD, segment);
    key.extend_from_slice(&id.0.to_be_bytes());
    key
}

fn numbered(prefix: u8, number: u64) -> Vec<u8> {
    let mut key = Vec::with_capacity(1 + 8 + 8);
    key.push(prefix);
    key.extend_from_slice(&number.to_be_bytes());
    key
}

/// The numbers of a value that is made of exactly `N`.
pub(super) fn numbers<const N: usize>(value: &[u8]) -> StoreResult<[u64; N]> {
    let (words, rest) = value.as_chunks::<8>();
    match <[[u8; 8]; N]>::try_from(words) {
        Ok(words) if rest.is_empty() => Ok(words.map(u64::from_be_bytes)),
        _ => Err(StoreError::Corrupt(format!(
            "a record of {} bytes where {} were expected",
            value.len(),
            N * 8
        ))),
    }
}

/// The value of some numbers.
pub(super) fn value(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|n| n.to_be_bytes()).collect()
}
