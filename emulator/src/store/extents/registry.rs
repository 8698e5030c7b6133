//! All segments: reserves space, finds and removes segments.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;

use super::super::error::{StoreError, StoreResult};
use super::super::failpoint;
use super::super::sync::atomic::Ordering;
use super::super::sync::{Mutex, RwLock};
use super::memory::Memory;
use super::segment::{Files, Segment, number_of};
use super::{CHECKSUM_BYTES, FRAME_BYTES, Segments, framed_bytes};
use crate::disk::Disk;

/// Smallest payload that its upload makes durable, so that no group of commits waits for it. A disk
/// writes about as much in a few milliseconds.
const SYNC_ALONE_BYTES: u64 = 1024 * 1024;

#[derive(Debug)]
pub(in super::super) struct Extents {
    /// `None` in memory.
    files: Option<Arc<Files>>,
    memory: Memory,
    segment_bytes: u64,
    segments: RwLock<BTreeMap<u64, Arc<Segment>>>,
    tail: Mutex<Tail>,
}

/// The place of the next reservation.
#[derive(Debug, Default)]
struct Tail {
    active: Option<Arc<Segment>>,
    last: u64,
}

/// A segment as maintenance sees it.
#[derive(Debug)]
pub(in super::super) struct Sweep {
    pub(in super::super) segment: Arc<Segment>,
    /// Bytes used by live payloads, reservations or garbage.
    pub(in super::super) size: u64,
    pub(in super::super) reserved: u64,
}

/// A range of a segment that only its holder writes, and that is kept while it is held.
#[derive(Debug)]
pub(in super::super) struct Reservation {
    segment: Arc<Segment>,
    offset: u64,
    bytes: u64,
    /// The frames of a payload in memory.
    frames: Option<Vec<Bytes>>,
    /// Bytes that are still to be written, and where they are counted.
    unwritten: Option<(u64, Arc<Files>)>,
    complete: u64,
    durable: bool,
}

impl Extents {
    /// Creates segments in memory for at most `limit` bytes of payloads.
    pub(in super::super) fn in_memory(limit: u64) -> Self {
        Extents {
            files: None,
            memory: Memory::new(limit),
            segment_bytes: u64::MAX,
            segments: RwLock::default(),
            tail: Mutex::default(),
        }
    }

    /// Finds the segments of `dir`. New payloads are appended to the last one after its end,
    /// because nothing there was ever referred to.
    ///
    /// `needed` is the required length of each segment that records refer to. A missing or too
    /// short segment is not continued and its number is not reused: new bytes there would be read
    /// in place of the lost ones.
    pub(in super::super) fn open(
        disk: Arc<dyn Disk>,
        dir: PathBuf,
        segment_bytes: u64,
        durable: bool,
        needed: &BTreeMap<u64, u64>,
    ) -> io::Result<Self> {
        disk.create_private_dir(&dir)?;
        Self::found(disk, dir, segment_bytes, durable, needed)
    }

    /// Like [`Extents::open`], but creates nothing.
    pub(in super::super) fn found(
        disk: Arc<dyn Disk>,
        dir: PathBuf,
        segment_bytes: u64,
        durable: bool,
        needed: &BTreeMap<u64, u64>,
    ) -> io::Result<Self> {
        let files = Arc::new(Files::new(disk, dir, durable));
        let mut segments = BTreeMap::new();
        for entry in files.disk.list(&files.dir)? {
            if let Some(number) = number_of(&entry.name) {
                let segment = Segment::in_file(number, &files, entry.len);
                segments.insert(number, Arc::new(segment));
            }
        }
        failpoint::reach("open.extents_listed");
        let last_found = segments.last_key_value().map_or(0, |(last, _)| *last);
        let last = needed.last_key_value().map_or(0, |(last, _)| *last);
        let last = last.max(last_found);
        let is_whole = |segment: &&Arc<Segment>| {
            let needed = needed.get(&segment.number()).copied().unwrap_or_default();
            segment.end.load(Ordering::Acquire) >= needed
        };
        let tail = Tail {
            active: segments.get(&last).filter(is_whole).cloned(),
            last,
        };
        Ok(Extents {
            files: Some(files),
            memory: Memory::new(0),
            segment_bytes,
            segments: RwLock::new(segments),
            tail: Mutex::new(tail),
        })
    }

    /// Returns the segments that are missing or shorter than the records require.
    pub(in super::super) fn lost(&self, needed: &BTreeMap<u64, u64>) -> Vec<u64> {
        let segments = self.segments.read();
        let is_lost = |(number, needed): &(&u64, &u64)| {
            let found = segments.get(number);
            found.is_none_or(|found| found.end.load(Ordering::Acquire) < **needed)
        };
        let lost = needed.iter().filter(is_lost);
        lost.map(|(number, _)| *number).collect()
    }

    /// Reserves space for a payload of `len` bytes.
    pub(in super::super) fn reserve(&self, len: u64) -> StoreResult<Reservation> {
        let bytes = framed_bytes(len);
        let mut tail = self.tail.lock();
        let segment = match &self.files {
            None => {
                let room = self.memory.take(bytes)?;
                tail.last += 1;
                Arc::new(Segment::in_memory(tail.last, room))
            }
            Some(files) => self.segment_with_room(files, &mut tail, bytes)?,
        };
        let offset = segment.end.fetch_add(bytes, Ordering::AcqRel);
        segment.reserved.fetch_add(bytes, Ordering::AcqRel);
        let unwritten = self.files.as_ref().map(|files| {
            files.unwritten.fetch_add(bytes, Ordering::AcqRel);
            (bytes, Arc::clone(files))
        });
        Ok(Reservation {
            segment,
            offset,
            bytes,
            frames: self.files.is_none().then(Vec::new),
            unwritten,
            complete: 0,
            durable: self.files.as_ref().is_some_and(|files| files.durable),
        })
    }

    fn segment_with_room(
        &self,
        files: &Arc<Files>,
        tail: &mut Tail,
        bytes: u64,
    ) -> StoreResult<Arc<Segment>> {
        if let Some(active) = &tail.active
            && active.end.load(Ordering::Acquire) + bytes <= self.segment_bytes
            && !active.has_failed()
        {
            return Ok(Arc::clone(active));
        }
        let number = tail.last + 1;
        let segment = Arc::new(Segment::in_file(number, files, 0));
        segment.create()?;
        failpoint::reach("stage.segment_created");
        tail.last = number;
        // A payload larger than a segment is alone in its own; others still fit after the active
        // end.
        if bytes <= self.segment_bytes {
            tail.active = Some(Arc::clone(&segment));
        }
        self.segments.write().insert(number, Arc::clone(&segment));
        Ok(segment)
    }

    /// Returns the bytes that running uploads still have to write.
    pub(in super::super) fn unwritten(&self) -> u64 {
        let files = self.files.as_ref();
        files.map_or(0, |files| files.unwritten.load(Ordering::Acquire))
    }

    /// Makes a segment in memory visible to views, because a commit refers to it now.
    pub(in super::super) fn enter(&self, segment: &Arc<Segment>) {
        if self.files.is_none() {
            let mut segments = self.segments.write();
            segments.insert(segment.number(), Arc::clone(segment));
        }
    }

    /// Frees a segment in memory as soon as nothing refers to it; files wait for maintenance.
    pub(in super::super) fn forget(&self, number: u64) {
        if self.files.is_none() {
            self.segments.write().remove(&number);
        }
    }

    /// Returns a handle that keeps a segment alive.
    pub(in super::super) fn pin(&self, number: u64) -> Option<Arc<Segment>> {
        self.segments.read().get(&number).cloned()
    }

    /// Makes completely written reservations durable.
    pub(in super::super) fn sync(&self, held: &[Reservation]) -> StoreResult<()> {
        held.iter()
            .try_for_each(|reservation| reservation.segment.sync(reservation.complete))
    }

    pub(in super::super) fn sync_all(&self) -> StoreResult<()> {
        let segments: Vec<_> = self.segments.read().values().cloned().collect();
        segments.iter().try_for_each(|segment| segment.sync_all())
    }

    /// Returns all segments in files, and whether each still accepts reservations.
    pub(in super::super) fn sweep(&self) -> Vec<Sweep> {
        if self.files.is_none() {
            return Vec::new();
        }
        let segments = self.segments.read();
        let sweep = segments.values().map(|segment| Sweep {
            segment: Arc::clone(segment),
            size: segment.end.load(Ordering::Acquire),
            reserved: segment.reserved.load(Ordering::Acquire),
        });
        sweep.collect()
    }

    /// Returns whether a segment still accepts reservations.
    pub(in super::super) fn is_active(&self, number: u64) -> bool {
        let tail = self.tail.lock();
        let active = tail.active.as_ref();
        active.is_some_and(|active| active.number() == number)
    }

    /// Stops a segment from accepting reservations.
    pub(in super::super) fn seal(&self, number: u64) {
        self.tail
            .lock()
            .active
            .take_if(|active| active.number() == number);
    }

    /// Removes a sealed segment from the registry if only the registry and the caller hold it, and
    /// it has no live payload in the state that readers see now. The caller keeps that state
    /// locked.
    pub(in super::super) fn retire(
        &self,
        segment: &Arc<Segment>,
        is_dead: impl FnOnce() -> StoreResult<bool>,
    ) -> StoreResult<bool> {
        let mut segments = self.segments.write();
        // One count is the registry's, one the caller's; more are readers, stagings or commits.
        let is_held = Arc::strong_count(segment) > 2;
        if is_held || !is_dead()? {
            return Ok(false);
        }
        Ok(segments.remove(&segment.number()).is_some())
    }

    /// Deletes the file of a retired segment.
    pub(in super::super) fn delete(&self, segment: &Segment) -> StoreResult<()> {
        let (Some(files), Some(path)) = (&self.files, segment.path()) else {
            return Ok(());
        };
        let removed = files.disk.remove(path);
        removed.map_err(|error| StoreError::of_file(path, &error))
    }

    /// Returns the number of segments and their bytes.
    pub(in super::super) fn size(&self) -> (usize, u64) {
        let segments = self.segments.read();
        let bytes = segments.values().map(|s| s.end.load(Ordering::Acquire));
        (segments.len(), bytes.sum())
    }

    /// Replaces the segments in memory, and keeps counting so that no two share a number; files
    /// wait for maintenance.
    pub(in super::super) fn replace(&self, by: Segments) {
        if self.files.is_none() {
            let mut tail = self.tail.lock();
            tail.last = tail
                .last
                .max(by.last_key_value().map_or(0, |(last, _)| *last));
            *self.segments.write() = by;
        }
    }
}

impl Reservation {
    pub(in super::super) fn segment(&self) -> &Arc<Segment> {
        &self.segment
    }

    pub(in super::super) fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the largest buffer that a frame of a payload of `len` bytes needs.
    pub(in super::super) fn buffer_bytes(len: u64) -> usize {
        len.min(FRAME_BYTES as u64) as usize + CHECKSUM_BYTES
    }

    /// Writes a frame and clears `frame`.
    pub(in super::super) fn write_frame(
        &mut self,
        index: u64,
        frame: &mut Vec<u8>,
    ) -> StoreResult<()> {
        match &mut self.frames {
            Some(frames) => {
                let next = Vec::with_capacity(frame.capacity());
                frames.push(std::mem::replace(frame, next).into());
                Ok(())
            }
            None => {
                let whole = (FRAME_BYTES + CHECKSUM_BYTES) as u64;
                let framed = (frame.len() + CHECKSUM_BYTES) as u64;
                let written = self.segment.write_frame(self.offset + index * whole, frame);
                self.count_written(framed);
                written
            }
        }
    }

    fn count_written(&mut self, bytes: u64) {
        if let Some((left, files)) = &mut self.unwritten {
            let bytes = bytes.min(*left);
            *left -= bytes;
            files.unwritten.fetch_sub(bytes, Ordering::AcqRel);
        }
    }

    /// Marks the payload as completely written.
    pub(in super::super) fn complete(&mut self) {
        if let Some(frames) = self.frames.take() {
            self.segment.set_frames(frames);
        }
        self.complete = self.segment.complete();
        failpoint::reach("stage.completed");
    }

    /// Returns how to make a large payload durable; `None` when its commit does so.
    pub(in super::super) fn sync_alone(
        &self,
        len: u64,
    ) -> Option<impl FnOnce() -> StoreResult<()> + Send + 'static> {
        if !self.durable || len < SYNC_ALONE_BYTES {
            return None;
        }
        let (segment, complete) = (Arc::clone(&self.segment), self.complete);
        Some(move || segment.sync(complete))
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.count_written(u64::MAX);
        self.segment
            .reserved
            .fetch_sub(self.bytes, Ordering::AcqRel);
    }
}
