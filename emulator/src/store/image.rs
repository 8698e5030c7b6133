//! The state of one moment: all records, and handles that keep their segments alive.
//!
//! In memory it shares the records with the engine. On disk it is a file:
//!
//! ```text
//! smalt-image-001\n | length, CRC-32, head | key length, value length, key, value | ... |
//!   ffffffff, number of records, CRC-32 of the records
//! ```
//!
//! Lengths are big-endian and have four bytes, the number of records eight. The head is
//! MessagePack: the caller's description of the image, and the segments.

use std::collections::BTreeMap;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::engine::Records;
use super::error::{StoreError, StoreResult};
use super::extents::{Segment, Segments};
use super::keys;
use super::payload::{Location, Payload, PayloadId, Source};
use super::view::View;
use crate::disk::{Disk, DiskFile};

const MAGIC: &[u8; 16] = b"smalt-image-001\n";
/// Marks the end of the records, in place of a key's length.
const END: u32 = u32::MAX;
/// Bytes per read and write.
const BUFFER_BYTES: usize = 1024 * 1024;
/// Largest head: enough for the segment numbers of a store of a hundred terabytes.
const HEAD_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// The state of one moment.
#[derive(Debug)]
pub struct Image {
    about: String,
    records: Kept,
    segments: Segments,
}

#[derive(Debug)]
enum Kept {
    Memory(Arc<Records>),
    File(ImageFile),
}

#[derive(Debug)]
struct ImageFile {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    records_from: u64,
    /// Whether the file is removed when the image is dropped.
    temporary: bool,
}

#[derive(Serialize, Deserialize)]
struct Head {
    about: String,
    segments: Vec<u64>,
}

/// A part of an image.
pub enum Entry<'a> {
    /// A payload with its bytes.
    Payload(PayloadId, Payload),
    /// A record that has the same meaning in any store.
    Record(&'a [u8], &'a Bytes),
}

impl Image {
    pub(super) fn in_memory(about: String, records: Arc<Records>, segments: Segments) -> Self {
        Image {
            about,
            records: Kept::Memory(records),
            segments,
        }
    }

    /// Opens a file; `pin` returns the segments.
    pub(super) fn open(
        disk: &Arc<dyn Disk>,
        path: &Path,
        pin: impl Fn(u64) -> Option<Arc<Segment>>,
    ) -> StoreResult<Self> {
        let file = disk
            .open(path, false)
            .map_err(|e| StoreError::of_file(path, &e))?;
        let mut fixed = [0; MAGIC.len() + 8];
        read(file.as_ref(), path, &mut fixed, 0)?;
        let (magic, sizes) = fixed.split_at(MAGIC.len());
        let [len, sum] = words(sizes);
        if magic != MAGIC || u64::from(len) > HEAD_BYTES_MAX {
            return Err(damaged(path, "it does not begin like a snapshot"));
        }
        let mut head = vec![0; len as usize];
        read(file.as_ref(), path, &mut head, fixed.len() as u64)?;
        if crc32fast::hash(&head) != sum {
            return Err(damaged(path, "its head"));
        }
        let head: Head =
            rmp_serde::from_slice(&head).map_err(|error| damaged(path, &error.to_string()))?;
        let mut segments = BTreeMap::new();
        for number in head.segments {
            let missing = || damaged(path, &format!("segment {number} is missing"));
            segments.insert(number, pin(number).ok_or_else(missing)?);
        }
        Ok(Image {
            about: head.about,
            records: Kept::File(ImageFile {
                disk: Arc::clone(disk),
                path: path.to_owned(),
                records_from: fixed.len() as u64 + u64::from(len),
                temporary: false,
            }),
            segments,
        })
    }

    /// Removes the file when the image is dropped.
    pub(super) fn temporary(mut self) -> Self {
        if let Kept::File(file) = &mut self.records {
            file.temporary = true;
        }
        self
    }

    /// Changes the path after the file was renamed.
    pub(super) fn renamed(mut self, path: PathBuf) -> Self {
        if let Kept::File(file) = &mut self.records {
            file.path = path;
        }
        self
    }

    /// Returns the description from the image's creation.
    pub fn about(&self) -> &str {
        &self.about
    }

    pub(super) fn shared(&self) -> Option<(Arc<Records>, Segments)> {
        match &self.records {
            Kept::Memory(records) => Some((Arc::clone(records), self.segments.clone())),
            Kept::File(_) => None,
        }
    }

    /// Visits every payload and record in key order; payloads come before records.
    ///
    /// # Errors
    /// The visitor's own; also when the image is damaged or cannot be read.
    pub fn scan<E: From<StoreError>>(
        &self,
        mut visit: impl FnMut(Entry<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut entry = |key: &[u8], value: &Bytes| match keys::payload_at(key) {
            Some(id) => visit(Entry::Payload(id, self.payload(value)?)),
            None if keys::is_local(key) => Ok(()),
            None => visit(Entry::Record(key, value)),
        };
        match &self.records {
            Kept::Memory(records) => records.iter().try_for_each(|(k, v)| entry(k, v)),
            Kept::File(file) => file.scan(entry),
        }
    }

    fn payload(&self, record: &Bytes) -> StoreResult<Payload> {
        match Location::decode(record)? {
            Location::Inline(bytes) => Ok(Payload::new(bytes.len() as u64, Source::Inline(bytes))),
            Location::Extent(at) => {
                let segment = self.segments.get(&at.segment).cloned();
                let segment = segment.ok_or_else(|| {
                    StoreError::Corrupt(format!("segment {} is missing", at.segment))
                })?;
                let offset = at.offset;
                Ok(Payload::new(at.len, Source::Extent { segment, offset }))
            }
        }
    }
}

impl ImageFile {
    fn scan<E: From<StoreError>>(
        &self,
        mut visit: impl FnMut(&[u8], &Bytes) -> Result<(), E>,
    ) -> Result<(), E> {
        let path = &self.path;
        let file = self.disk.open(path, false);
        let mut reader = Reader {
            file: file.map_err(|e| StoreError::of_file(path, &e))?,
            path,
            at: self.records_from,
            buffer: Bytes::new(),
        };
        let mut sum = crc32fast::Hasher::new();
        let mut count = 0_u64;
        loop {
            let sizes = reader.next(4)?;
            let [key_len] = words(&sizes);
            if key_len == END {
                break;
            }
            let value_len = reader.next(4)?;
            let key = reader.next(key_len)?;
            let value = reader.next(words::<1>(&value_len)[0])?;
            for part in [&sizes, &value_len, &key, &value] {
                sum.update(part);
            }
            count += 1;
            visit(&key, &value)?;
        }
        let told = reader.next(12)?;
        let [high, low, told_sum] = words(&told);
        if (u64::from(high) << 32 | u64::from(low), told_sum) != (count, sum.finalize()) {
            return Err(damaged(path, "its records").into());
        }
        Ok(())
    }
}

impl Drop for ImageFile {
    fn drop(&mut self) {
        if self.temporary {
            // The next start removes a file that remains.
            let _ = self.disk.remove(&self.path);
        }
    }
}

/// Reads a file from front to back.
struct Reader<'a> {
    file: Arc<dyn DiskFile>,
    path: &'a Path,
    at: u64,
    buffer: Bytes,
}

impl Reader<'_> {
    fn next(&mut self, len: u32) -> StoreResult<Bytes> {
        let len = len as usize;
        if self.buffer.len() < len {
            self.fill(len)?;
        }
        Ok(self.buffer.split_to(len))
    }

    fn fill(&mut self, least: usize) -> StoreResult<()> {
        let end = self
            .file
            .len()
            .map_err(|e| StoreError::of_file(self.path, &e))?;
        let left = usize::try_from(end.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let have = self.buffer.len();
        if have + left < least {
            return Err(damaged(self.path, "it ends early"));
        }
        let mut next = vec![0; have + left.min(BUFFER_BYTES.max(least - have))];
        next[..have].copy_from_slice(&self.buffer);
        read(self.file.as_ref(), self.path, &mut next[have..], self.at)?;
        self.at += (next.len() - have) as u64;
        self.buffer = next.into();
        Ok(())
    }
}

/// Writes an image of a view to a new file, durably. Returns the segments that it refers to.
pub(super) fn write(
    disk: &dyn Disk,
    path: &Path,
    about: &str,
    view: &dyn View,
) -> StoreResult<Segments> {
    let file = disk
        .open(path, true)
        .map_err(|e| StoreError::of_file(path, &e))?;
    let segments = super::shared::segments(view)?;
    let head = Head {
        about: about.to_owned(),
        segments: segments.keys().copied().collect(),
    };
    let head = rmp_serde::to_vec(&head).map_err(|e| StoreError::Corrupt(e.to_string()))?;
    let mut writer = Writer {
        file,
        at: 0,
        buffer: MAGIC.to_vec(),
    };
    writer.buffer.extend(length(head.len()));
    writer.buffer.extend(crc32fast::hash(&head).to_be_bytes());
    writer.buffer.extend(head);
    let (mut sum, mut count, mut failed) = (crc32fast::Hasher::new(), 0_u64, None);
    view.scan(&[], &super::shared::LAST_KEY, &mut |key, value| {
        let from = writer.buffer.len();
        writer.buffer.extend(length(key.len()));
        writer.buffer.extend(length(value.len()));
        writer.buffer.extend_from_slice(key);
        writer.buffer.extend_from_slice(value);
        sum.update(&writer.buffer[from..]);
        count += 1;
        match writer.flush_at(BUFFER_BYTES) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                failed = Some(error);
                ControlFlow::Break(())
            }
        }
    })?;
    writer.buffer.extend(END.to_be_bytes());
    writer.buffer.extend(count.to_be_bytes());
    writer.buffer.extend(sum.finalize().to_be_bytes());
    let ended = failed.map_or(Ok(()), Err).and_then(|()| writer.end());
    ended.map_err(|error| StoreError::of_file(path, &error))?;
    Ok(segments)
}

struct Writer {
    file: Arc<dyn DiskFile>,
    at: u64,
    buffer: Vec<u8>,
}

impl Writer {
    fn flush_at(&mut self, bytes: usize) -> io::Result<()> {
        if self.buffer.len() >= bytes {
            self.file.write_at(&self.buffer, self.at)?;
            self.at += self.buffer.len() as u64;
            self.buffer.clear();
        }
        Ok(())
    }

    fn end(mut self) -> io::Result<()> {
        self.flush_at(0)?;
        self.file.sync_data()
    }
}

fn length(len: usize) -> [u8; 4] {
    // Keys and values are far smaller than that.
    u32::try_from(len).unwrap_or(END - 1).to_be_bytes()
}

fn words<const N: usize>(bytes: &[u8]) -> [u32; N] {
    let mut words = [0; N];
    for (word, bytes) in words.iter_mut().zip(bytes.as_chunks::<4>().0) {
        *word = u32::from_be_bytes(*bytes);
    }
    words
}

fn read(file: &dyn DiskFile, path: &Path, buffer: &mut [u8], offset: u64) -> StoreResult<()> {
    match file.read_at(buffer, offset) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            Err(damaged(path, "it ends early"))
        }
        read => read.map_err(|error| StoreError::of_file(path, &error)),
    }
}

fn damaged(path: &Path, what: &str) -> StoreError {
    StoreError::Corrupt(format!("{} is damaged: {what}", path.display()))
}
