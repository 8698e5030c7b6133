//! Payloads inside commits and views: reference-counted, named by an id that never changes.

use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use bytes::Bytes;

use super::error::{StoreError, StoreResult};
use super::extents::{Segment, framed_bytes};
use super::keys;
use super::reader::PayloadReader;
use super::staging::{Place, Staged};
use super::view::{Transaction, View};

const INLINE: u8 = 0;
const EXTENT: u8 = 1;

/// Id of a payload in records; each payload of a store gets a higher one, and none is reused.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(transparent)]
pub struct PayloadId(pub u64);

/// A payload's bytes, kept alive for a reader: neither release nor compaction frees them meanwhile.
#[derive(Clone, Debug)]
pub struct Payload {
    len: u64,
    source: Source,
}

#[derive(Clone, Debug)]
pub(super) enum Source {
    Inline(Bytes),
    Extent { segment: Arc<Segment>, offset: u64 },
}

impl Payload {
    pub(super) fn new(len: u64, source: Source) -> Self {
        Payload { len, source }
    }

    pub(super) fn source(&self) -> &Source {
        &self.source
    }

    /// Returns the length in bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Returns whether the payload has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns all bytes if they are in memory already.
    pub fn inline(&self) -> Option<&Bytes> {
        match &self.source {
            Source::Inline(bytes) => Some(bytes),
            Source::Extent { .. } => None,
        }
    }

    /// Returns a reader of `range`, cut at the end of the payload.
    pub fn reader(&self, range: Range<u64>) -> PayloadReader {
        let end = range.end.min(self.len);
        PayloadReader::new(self.source.clone(), self.len, range.start.min(end)..end)
    }
}

/// The place of a payload as its record names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Location {
    Inline(Bytes),
    Extent(Extent),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) segment: u64,
    pub(super) offset: u64,
    /// Length of the payload; the range is longer because of the checksums.
    pub(super) len: u64,
}

impl Location {
    pub(super) fn encode(&self) -> Vec<u8> {
        match self {
            Location::Inline(bytes) => [&[INLINE], bytes.as_ref()].concat(),
            Location::Extent(at) => {
                let numbers = keys::value(&[at.segment, at.offset, at.len]);
                [&[EXTENT], numbers.as_slice()].concat()
            }
        }
    }

    pub(super) fn decode(record: &Bytes) -> StoreResult<Self> {
        match record.first() {
            Some(&INLINE) => Ok(Location::Inline(record.slice(1..))),
            Some(&EXTENT) => {
                let [segment, offset, len] = keys::numbers(&record[1..])?;
                Ok(Location::Extent(Extent {
                    segment,
                    offset,
                    len,
                }))
            }
            _ => Err(StoreError::Corrupt("a payload of unknown kind".to_owned())),
        }
    }

    pub(super) fn read(view: &dyn View, id: PayloadId) -> StoreResult<Option<Self>> {
        let record = view.get(&keys::location(id))?;
        record.as_ref().map(Self::decode).transpose()
    }
}

/// Takes staged bytes into the store, with one reference. They are freed if the commit refuses.
///
/// # Errors
/// When the store's own records cannot be read.
pub fn adopt(tx: &mut Transaction<'_>, staged: Staged) -> StoreResult<PayloadId> {
    let last = number_at(tx, &keys::LAST_PAYLOAD)?;
    let id = PayloadId(last + 1);
    tx.put(keys::LAST_PAYLOAD.to_vec(), keys::value(&[id.0]));
    let location = match staged.place {
        Place::Inline(bytes) => Location::Inline(bytes),
        Place::Extent(reservation) => {
            let at = Extent {
                segment: reservation.segment().number(),
                offset: reservation.offset(),
                len: staged.len,
            };
            tx.hold(reservation);
            enter_segment(tx, id, at)?;
            Location::Extent(at)
        }
    };
    tx.put(keys::location(id), location.encode());
    Ok(id)
}

/// Adds a reference, for a snapshot, a version or a copy that shares the bytes.
///
/// # Errors
/// [`StoreError::Corrupt`] when the payload does not exist.
pub fn retain(tx: &mut Transaction<'_>, id: PayloadId) -> StoreResult<()> {
    if tx.get(&keys::location(id))?.is_none() {
        return Err(missing(id));
    }
    let key = keys::references(id);
    let further = number_at(tx, &key)?;
    tx.put(key, keys::value(&[further + 1]));
    Ok(())
}

/// Removes a reference; removing the last one frees the bytes.
///
/// # Errors
/// [`StoreError::Corrupt`] when the payload does not exist.
pub fn release(tx: &mut Transaction<'_>, id: PayloadId) -> StoreResult<()> {
    let location = Location::read(tx, id)?.ok_or_else(|| missing(id))?;
    let key = keys::references(id);
    match number_at(tx, &key)? {
        0 => {
            tx.delete(keys::location(id));
            if let Location::Extent(at) = location {
                leave_segment(tx, id, at)?;
            }
        }
        1 => tx.delete(key),
        further => tx.put(key, keys::value(&[further - 1])),
    }
    Ok(())
}

/// Returns a payload's bytes, which can be read after the view is dropped.
///
/// # Errors
/// [`StoreError::Corrupt`] when the payload or its segment does not exist.
pub fn location(view: &dyn View, id: PayloadId) -> StoreResult<Payload> {
    match Location::read(view, id)?.ok_or_else(|| missing(id))? {
        Location::Inline(bytes) => Ok(Payload::new(bytes.len() as u64, Source::Inline(bytes))),
        Location::Extent(at) => {
            let segment = view
                .pin(at.segment)
                .ok_or_else(|| StoreError::Corrupt(format!("segment {} is missing", at.segment)))?;
            let offset = at.offset;
            Ok(Payload::new(at.len, Source::Extent { segment, offset }))
        }
    }
}

/// Adds a payload to its segment's count.
pub(super) fn enter_segment(
    tx: &mut Transaction<'_>,
    id: PayloadId,
    at: Extent,
) -> StoreResult<()> {
    let key = keys::segment(at.segment);
    let live = number_at(tx, &key)?;
    tx.put(key, keys::value(&[live + framed_bytes(at.len)]));
    tx.put(keys::segment_payload(at.segment, id), Bytes::new());
    Ok(())
}

/// Removes a payload from its segment's count.
pub(super) fn leave_segment(
    tx: &mut Transaction<'_>,
    id: PayloadId,
    at: Extent,
) -> StoreResult<()> {
    let key = keys::segment(at.segment);
    let live = number_at(tx, &key)?.saturating_sub(framed_bytes(at.len));
    if live == 0 {
        tx.delete(key);
    } else {
        tx.put(key, keys::value(&[live]));
    }
    tx.delete(keys::segment_payload(at.segment, id));
    Ok(())
}

/// Returns the required length of each segment with payloads. It is exact for the last segment; for
/// earlier ones, which are never written again, it is the bytes of their live payloads.
pub(super) fn segments_needed(view: &dyn View) -> StoreResult<BTreeMap<u64, u64>> {
    let mut needed = BTreeMap::new();
    let mut failed = Ok(());
    let (from, to) = (keys::segment(0), keys::segment(u64::MAX));
    view.scan(&from, &to, &mut |key, live| {
        let live = keys::numbers::<1>(live).map(|[live]| live);
        match keys::segment_of(key).zip(live.as_ref().ok().copied()) {
            Some((number, live)) => drop(needed.insert(number, live)),
            None => failed = live.map(drop),
        }
        ControlFlow::Continue(())
    })?;
    failed?;
    if let Some(mut last) = needed.last_entry() {
        *last.get_mut() = end_of_last(view, *last.key())?;
    }
    Ok(needed)
}

/// Returns the end of a segment's last live payload.
fn end_of_last(view: &dyn View, segment: u64) -> StoreResult<u64> {
    let first = PayloadId(0);
    let mut ids = Vec::new();
    let from = keys::segment_payload(segment, first);
    let to = keys::segment_payload(segment.saturating_add(1), first);
    view.scan(&from, &to, &mut |key, _| {
        ids.extend(keys::payload_of(key));
        ControlFlow::Continue(())
    })?;
    let mut end = 0;
    for id in ids {
        if let Some(Location::Extent(at)) = Location::read(view, id)? {
            end = end.max(at.offset + framed_bytes(at.len));
        }
    }
    Ok(end)
}

/// Returns the number at a key, 0 when there is none.
pub(super) fn number_at(view: &dyn View, key: &[u8]) -> StoreResult<u64> {
    match view.get(key)? {
        Some(value) => keys::numbers::<1>(&value).map(|[number]| number),
        None => Ok(0),
    }
}

fn missing(id: PayloadId) -> StoreError {
    StoreError::Corrupt(format!("payload {} is missing", id.0))
}
