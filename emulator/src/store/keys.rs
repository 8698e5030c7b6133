//! The store's own keys and their values; the store's documentation has a table of them.

use std::ops::RangeInclusive;

use super::error::{StoreError, StoreResult};
use super::payload::PayloadId;

/// First bytes of the store's own keys; operations use all others.
pub const OWN_PREFIXES: RangeInclusive<u8> = 0x00..=0x0F;

/// The last stamp: `now`, `tick`.
pub(super) const STAMP: [u8; 2] = [0x00, 0x01];
/// The last assigned payload id.
pub(super) const LAST_PAYLOAD: [u8; 2] = [0x00, 0x02];
/// The format version; absent in an empty or lost store.
pub(super) const FORMAT: [u8; 2] = [0x00, 0x03];
const LOCATION: u8 = 0x01;
const REFERENCES: u8 = 0x02;
const SEGMENT: u8 = 0x03;
const SEGMENT_PAYLOAD: u8 = 0x04;

/// Returns the key of a payload's place.
pub fn location(id: PayloadId) -> Vec<u8> {
    numbered(LOCATION, id.0)
}

/// Returns the payload of a [`location`] key; `None` for other keys.
pub fn payload_at(key: &[u8]) -> Option<PayloadId> {
    let id = key.strip_prefix(&[LOCATION])?;
    id.try_into().ok().map(u64::from_be_bytes).map(PayloadId)
}

/// Returns whether a record concerns a single store: its format, places of payloads, and segments.
pub(super) fn is_local(key: &[u8]) -> bool {
    key == FORMAT || matches!(key.first(), Some(&(LOCATION | SEGMENT | SEGMENT_PAYLOAD)))
}

/// Returns the key of the number of references beyond the first.
pub(super) fn references(id: PayloadId) -> Vec<u8> {
    numbered(REFERENCES, id.0)
}

/// Returns the key of the number of bytes that live payloads take in a segment.
pub(super) fn segment(number: u64) -> Vec<u8> {
    numbered(SEGMENT, number)
}

/// Returns the segment of a [`segment`] key; `None` for other keys.
pub(super) fn segment_of(key: &[u8]) -> Option<u64> {
    let (prefix, number) = key.split_first()?;
    if *prefix != SEGMENT {
        return None;
    }
    number.try_into().ok().map(u64::from_be_bytes)
}

/// Returns the payload of a [`segment_payload`] key; `None` for other keys.
pub(super) fn payload_of(key: &[u8]) -> Option<PayloadId> {
    let id = key.strip_prefix(&[SEGMENT_PAYLOAD])?.get(8..)?;
    id.try_into().ok().map(u64::from_be_bytes).map(PayloadId)
}

/// Returns the key that records a payload in a segment.
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

/// Decodes a value of exactly `N` numbers.
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

/// Encodes numbers as a value.
pub(super) fn value(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|n| n.to_be_bytes()).collect()
}
