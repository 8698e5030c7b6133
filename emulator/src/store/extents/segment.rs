//! A segment: writes frames, reads them with their checksums, and tracks how far it is durable.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock, Weak};

use bytes::Bytes;

use super::super::error::{StoreError, StoreResult};
use super::super::failpoint;
use super::super::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use super::super::sync::{Mutex, RwLock};
use super::memory::Room;
use super::{CHECKSUM_BYTES, FRAME_BYTES, framed_bytes};
use crate::disk::{Disk, DiskFile, check_is_at};

/// Most open segments: a tenth of the usual limit of 1,024 descriptors.
const OPEN_FILES_MAX: usize = 100;
const SUFFIX: &str = ".seg";

pub(super) fn file_name(number: u64) -> String {
    format!("{number:08}{SUFFIX}")
}

/// Returns the segment of a file name; `None` for other names.
pub(super) fn number_of(name: &str) -> Option<u64> {
    name.strip_suffix(SUFFIX)?.parse().ok()
}

/// Returns the checksum of a frame at this place, before its bytes are added.
pub(super) fn checksum(segment: u64, offset: u64) -> crc32fast::Hasher {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&segment.to_le_bytes());
    hasher.update(&offset.to_le_bytes());
    hasher
}

/// A segment, kept alive by its handles.
#[derive(Debug)]
pub struct Segment {
    number: u64,
    body: Body,
    /// End of the last reservation.
    pub(super) end: AtomicU64,
    /// Bytes of reservations that no published commit has taken yet.
    pub(super) reserved: AtomicU64,
}

#[derive(Debug)]
enum Body {
    Memory {
        frames: OnceLock<Vec<Bytes>>,
        _room: Room,
    },
    File(Arc<FileBody>),
}

/// The directory of the segments, and the open files; the oldest are closed.
#[derive(Debug)]
pub(super) struct Files {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) dir: PathBuf,
    /// Whether acknowledged payloads survive a power loss.
    pub(super) durable: bool,
    /// Reserved bytes that are still to be written.
    pub(super) unwritten: AtomicU64,
    /// In the order of opening.
    opened: Mutex<VecDeque<Weak<FileBody>>>,
}

#[derive(Debug)]
struct FileBody {
    files: Arc<Files>,
    path: PathBuf,
    open: RwLock<Option<Arc<dyn DiskFile>>>,
    /// Number of completely written payloads.
    written: AtomicU64,
    /// Number of durable ones among them.
    synced: AtomicU64,
    /// Whether the file's name is durable.
    named: AtomicBool,
    /// A sync failed: what is on disk stays unknown, whatever a later sync returns.
    failed: AtomicBool,
    /// Locked during a sync: the system tells a failure to only one of several at once, and a sync
    /// covers those that wait for it.
    syncing: Mutex<()>,
}

impl Segment {
    pub(super) fn in_memory(number: u64, room: Room) -> Self {
        let frames = OnceLock::new();
        Self::new(
            number,
            0,
            Body::Memory {
                frames,
                _room: room,
            },
        )
    }

    /// Creates a segment for a file of `len` bytes, which an earlier process may have written.
    pub(super) fn in_file(number: u64, files: &Arc<Files>, len: u64) -> Self {
        let body = FileBody {
            files: Arc::clone(files),
            path: files.dir.join(file_name(number)),
            open: RwLock::new(None),
            written: AtomicU64::new(0),
            synced: AtomicU64::new(0),
            named: AtomicBool::new(len > 0),
            failed: AtomicBool::new(false),
            syncing: Mutex::default(),
        };
        Self::new(number, len, Body::File(Arc::new(body)))
    }

    fn new(number: u64, end: u64, body: Body) -> Self {
        Segment {
            number,
            body,
            end: AtomicU64::new(end),
            reserved: AtomicU64::new(0),
        }
    }

    pub(in super::super) fn number(&self) -> u64 {
        self.number
    }

    pub(super) fn path(&self) -> Option<&PathBuf> {
        match &self.body {
            Body::Memory { .. } => None,
            Body::File(file) => Some(&file.path),
        }
    }

    /// Opens the file, and creates a new one.
    pub(super) fn create(&self) -> StoreResult<()> {
        match &self.body {
            Body::Memory { .. } => Ok(()),
            Body::File(file) => file.opened(true).map(drop),
        }
    }

    /// Writes the frame at `offset` and clears `frame`.
    pub(super) fn write_frame(&self, offset: u64, frame: &mut Vec<u8>) -> StoreResult<()> {
        let Body::File(file) = &self.body else {
            return Err(StoreError::Io("a segment in memory has no file".to_owned()));
        };
        let checksum = self.checksum(offset, frame);
        frame.extend_from_slice(&checksum);
        let written = file.opened(true)?.write_at(frame, offset);
        frame.clear();
        failpoint::reach("stage.frame_written");
        written.map_err(|error| StoreError::of_staging(&file.path, &error))
    }

    /// Keeps the frames of the segment's only payload in memory.
    pub(super) fn set_frames(&self, frames: Vec<Bytes>) {
        if let Body::Memory { frames: all, .. } = &self.body {
            // It is set once: each reservation in memory has its own segment.
            let _ = all.set(frames);
        }
    }

    /// Reads frames of the payload of `len` bytes at `offset`.
    pub(in super::super) fn read_frames(
        &self,
        offset: u64,
        len: u64,
        frames: Range<u64>,
    ) -> StoreResult<Vec<Bytes>> {
        match &self.body {
            Body::Memory { frames: all, .. } => all
                .get()
                .and_then(|all| all.get(frames.start as usize..frames.end as usize))
                .map(<[Bytes]>::to_vec)
                .ok_or_else(|| self.damaged(offset)),
            Body::File(file) => self.read_file(file, offset, len, frames),
        }
    }

    fn read_file(
        &self,
        file: &Arc<FileBody>,
        offset: u64,
        len: u64,
        frames: Range<u64>,
    ) -> StoreResult<Vec<Bytes>> {
        let whole = (FRAME_BYTES + CHECKSUM_BYTES) as u64;
        let from = offset + frames.start * whole;
        let to = offset + framed_bytes(len.min(frames.end * FRAME_BYTES as u64));
        let mut buffer = vec![0; to.saturating_sub(from) as usize];
        match file.opened(false)?.read_at(&mut buffer, from) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return Err(self.damaged(from));
            }
            Err(error) => return Err(StoreError::of_file(&file.path, &error)),
        }
        let buffer = Bytes::from(buffer);
        let mut found = Vec::with_capacity((frames.end - frames.start) as usize);
        let mut at = 0;
        while at < buffer.len() {
            let end = buffer.len().min(at + FRAME_BYTES + CHECKSUM_BYTES);
            let bytes = buffer.slice(at..end - CHECKSUM_BYTES);
            let place = from + at as u64;
            let is_whole = self.checksum(place, &bytes) == buffer[end - CHECKSUM_BYTES..end];
            if !is_whole {
                return Err(self.damaged(place));
            }
            found.push(bytes);
            at = end;
        }
        Ok(found)
    }

    /// Marks a payload as completely written. Returns the count that [`Segment::sync`] must reach.
    pub(super) fn complete(&self) -> u64 {
        match &self.body {
            Body::Memory { .. } => 0,
            Body::File(file) => file.written.fetch_add(1, Ordering::AcqRel) + 1,
        }
    }

    /// Makes everything up to a [`Segment::complete`] durable.
    pub(super) fn sync(&self, upto: u64) -> StoreResult<()> {
        let Body::File(file) = &self.body else {
            return Ok(());
        };
        let _alone = file.syncing.lock();
        if file.failed.load(Ordering::Acquire) {
            return Err(StoreError::Io("an earlier sync failed".to_owned()));
        }
        if file.synced.load(Ordering::Acquire) >= upto && file.named.load(Ordering::Acquire) {
            return Ok(());
        }
        let written = file.written.load(Ordering::Acquire);
        if let Err(error) = file.sync() {
            file.failed.store(true, Ordering::Release);
            return Err(StoreError::of_staging(&file.path, &error));
        }
        file.synced.fetch_max(written, Ordering::AcqRel);
        file.named.store(true, Ordering::Release);
        Ok(())
    }

    /// Returns whether a sync has failed. Then no payload can be added to the segment.
    pub(super) fn has_failed(&self) -> bool {
        matches!(&self.body, Body::File(file) if file.failed.load(Ordering::Acquire))
    }

    /// Makes everything durable. In the mode `durable`, nothing acknowledged depends on this in a
    /// segment whose sync has failed.
    pub(super) fn sync_all(&self) -> StoreResult<()> {
        match &self.body {
            Body::File(file) if file.files.durable && self.has_failed() => Ok(()),
            Body::File(file) if file.is_dirty() => self.sync(file.written.load(Ordering::Acquire)),
            _ => Ok(()),
        }
    }

    fn checksum(&self, offset: u64, bytes: &[u8]) -> [u8; CHECKSUM_BYTES] {
        let mut hasher = checksum(self.number, offset);
        hasher.update(bytes);
        hasher.finalize().to_le_bytes()
    }

    fn damaged(&self, offset: u64) -> StoreError {
        StoreError::Corrupt(format!("segment {} at {offset}", self.number))
    }
}

impl Files {
    pub(super) fn new(disk: Arc<dyn Disk>, dir: PathBuf, durable: bool) -> Self {
        Files {
            disk,
            dir,
            durable,
            unwritten: AtomicU64::new(0),
            opened: Mutex::default(),
        }
    }

    fn note_open(&self, body: &Arc<FileBody>) {
        let mut opened = self.opened.lock();
        opened.push_back(Arc::downgrade(body));
        for _ in OPEN_FILES_MAX..opened.len() {
            let Some(oldest) = opened.pop_front() else {
                break;
            };
            let Some(body) = oldest.upgrade() else {
                continue;
            };
            // Unsynced bytes: the error of their sync would be lost with the descriptor.
            if self.durable && body.is_dirty() {
                opened.push_back(oldest);
            } else {
                body.open.write().take();
            }
        }
    }
}

impl FileBody {
    fn opened(self: &Arc<Self>, create: bool) -> StoreResult<Arc<dyn DiskFile>> {
        if let Some(file) = self.open.read().as_ref() {
            return Ok(Arc::clone(file));
        }
        let mut open = self.open.write();
        if let Some(file) = open.as_ref() {
            return Ok(Arc::clone(file));
        }
        let file = self.files.disk.open(&self.path, create);
        let file = file.map_err(|error| StoreError::of_staging(&self.path, &error))?;
        *open = Some(Arc::clone(&file));
        drop(open);
        self.files.note_open(self);
        Ok(file)
    }

    fn is_dirty(&self) -> bool {
        self.written.load(Ordering::Acquire) != self.synced.load(Ordering::Acquire)
    }

    fn sync(self: &Arc<Self>) -> io::Result<()> {
        let file = self.opened(false).map_err(io::Error::other)?;
        file.sync_data()?;
        check_is_at(self.files.disk.as_ref(), &self.path, file.as_ref())?;
        failpoint::reach("commit.payload_synced");
        match self.path.parent() {
            Some(dir) if !self.named.load(Ordering::Acquire) => {
                self.files.disk.sync_dir(dir)?;
                failpoint::reach("commit.segment_named");
                Ok(())
            }
            _ => Ok(()),
        }
    }
}
