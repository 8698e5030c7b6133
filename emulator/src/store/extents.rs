//! Extents: where payloads live that are too large for the metadata engine.
//!
//! A payload is a row of frames of 64 KiB in one segment. In memory a segment holds one payload.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use parking_lot::RwLock;

use super::error::{StoreError, StoreResult};

/// Bytes of a payload in one frame, the unit that is checked.
pub(super) const FRAME_BYTES: usize = 64 * 1024;
/// The checksum behind each frame.
const CHECKSUM_BYTES: u64 = 4;

/// What a payload of `len` bytes takes in its segment.
pub(super) fn framed_bytes(len: u64) -> u64 {
    len + len.div_ceil(FRAME_BYTES as u64) * CHECKSUM_BYTES
}

/// A segment that is held alive.
#[derive(Debug)]
pub struct Segment {
    number: u64,
    frames: OnceLock<Vec<Bytes>>,
}

impl Segment {
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Frames of the payload of `len` bytes at `offset`.
    pub(super) fn read_frames(
        &self,
        _offset: u64,
        _len: u64,
        frames: Range<u64>,
    ) -> StoreResult<Vec<Bytes>> {
        self.frames
            .get()
            .and_then(|all| all.get(frames.start as usize..frames.end as usize))
            .map(<[Bytes]>::to_vec)
            .ok_or_else(|| StoreError::Corrupt("a payload ends early".to_owned()))
    }
}

/// A range of a segment that only its holder writes, and that stays while it is held.
#[derive(Debug)]
pub(super) struct Reservation {
    segment: Arc<Segment>,
    frames: Vec<Bytes>,
}

impl Reservation {
    pub(super) fn segment(&self) -> &Arc<Segment> {
        &self.segment
    }

    pub(super) fn offset(&self) -> u64 {
        0
    }

    pub(super) fn buffer_bytes(len: u64) -> usize {
        len.min(FRAME_BYTES as u64) as usize
    }

    pub(super) fn write_frame(&mut self, _index: u64, frame: &mut Vec<u8>) -> StoreResult<()> {
        let next = Vec::with_capacity(frame.capacity());
        self.frames.push(std::mem::replace(frame, next).into());
        Ok(())
    }

    pub(super) fn complete(&mut self) {
        // Each reservation of the memory has a segment of its own: it is set once.
        let _ = self.segment.frames.set(std::mem::take(&mut self.frames));
    }

    pub(super) fn sync_alone(
        &self,
        _len: u64,
    ) -> Option<impl FnOnce() -> StoreResult<()> + Send + 'static> {
        None::<fn() -> StoreResult<()>>
    }
}

/// All segments.
#[derive(Debug, Default)]
pub(super) struct Extents {
    segments: RwLock<BTreeMap<u64, Arc<Segment>>>,
    last: AtomicU64,
}

impl Extents {
    pub(super) fn reserve(&self, _len: u64) -> StoreResult<Reservation> {
        let segment = Segment {
            number: self.last.fetch_add(1, Ordering::Relaxed) + 1,
            frames: OnceLock::new(),
        };
        Ok(Reservation {
            segment: Arc::new(segment),
            frames: Vec::new(),
        })
    }

    /// Lets views find a segment that a commit refers to from now on.
    pub(super) fn enter(&self, segment: &Arc<Segment>) {
        self.segments
            .write()
            .insert(segment.number, Arc::clone(segment));
    }

    /// Forgets a segment without live payloads.
    pub(super) fn forget(&self, number: u64) {
        self.segments.write().remove(&number);
    }

    pub(super) fn pin(&self, number: u64) -> Option<Arc<Segment>> {
        self.segments.read().get(&number).cloned()
    }

    pub(super) fn clear(&self) {
        self.segments.write().clear();
        self.last.store(0, Ordering::Relaxed);
    }
}
