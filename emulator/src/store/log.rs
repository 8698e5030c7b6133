//! The commit log: a record for each group of commits, in two files of the engine's directory that
//! are used in turns.
//!
//! ```text
//! file:    | header | header | page | page | ...       pages of 4 KiB
//! page:    CRC-32, bytes used, flags, generation, record, records before, index, sum | body | 0
//! record:  a run of pages; their bodies are: key length, value length, key, value | ...
//!          sum is the CRC-32 of the bodies
//! ```
//!
//! Each use of a file is a *generation*: its pages carry its number, so that pages of earlier uses
//! do not count, and its records are numbered from 1. A file is used again when the engine has
//! everything of its last generation durably; its header is written then, into the one of two
//! places that does not hold the current one. The two files always have adjacent generations, and
//! the records of both, in order, are what the engine may lack. Replaying what it has changes
//! nothing.
//!
//! A page belongs to one record and is not written again, so that no torn write damages an earlier
//! record. Only a record that the disk had no room for is replaced by the next; the sum tells the
//! pages of the two apart. The last record of a log may be cut off: nobody was told of it. A record
//! that is incomplete before one that was written after its sync is damage.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;

use super::error::{StoreError, StoreResult};
use super::view::Writes;
use crate::disk::{Disk, DiskFile, is_full, read_small};

/// Names of the files in the engine's directory. Generation `n` is in file `n % 2`.
pub(super) const FILES: [&str; 2] = ["log.0", "log.1"];

const PAGE_BYTES: usize = 4096;
const HEAD_BYTES: usize = 32;
const BODY_BYTES: usize = PAGE_BYTES - HEAD_BYTES;
/// Where the records of a file begin: after its two headers.
const RECORDS_FROM: u64 = 2 * PAGE_BYTES as u64;
/// Bytes of zeros that are written ahead of the records when a file is used for the first time. A
/// sync of bytes that replace written ones need not store a new length or new extents.
const GROWTH_BYTES: u64 = 256 * 1024;
/// The generation of the first file of a new log.
const FIRST_GENERATION: u64 = 2;

/// The page is the last one of its record.
const LAST: u16 = 1;
/// Every earlier record was durable when the page was written.
const AFTER_SYNC: u16 = 2;
/// The page is a header.
const HEADER: u16 = 4;
/// Length of the value of a deleted key.
const DELETED: u32 = u32::MAX;

/// The two files, of which one receives records.
pub(super) struct Log {
    files: [Arc<dyn DiskFile>; 2],
    /// Bytes at which a file is full; a larger record has a file to itself.
    bytes_max: u64,
    state: Mutex<State>,
}

struct State {
    generation: u64,
    /// Where the next record begins.
    at: u64,
    /// Number of records of this generation, and of the one before.
    records: u32,
    before: u32,
    /// Length of each file.
    ends: [u64; 2],
    /// Whether the records of each file are durable.
    synced: [bool; 2],
}

/// The content of a log when it is opened.
#[derive(Default)]
pub(super) struct Found {
    /// The last write of each key.
    pub(super) writes: Writes,
    /// Descriptions of the damage.
    pub(super) damage: Vec<String>,
    /// Whether there are pages of records, complete or not.
    pub(super) is_used: bool,
    /// The older of its two generations.
    generation: u64,
    /// Whether the records of the newer generation do not count, because some of the older one are
    /// lost.
    pub(super) is_cut: bool,
}

impl Found {
    /// Reads a log, and changes nothing.
    pub(super) fn read(disk: &dyn Disk, dir: &Path) -> StoreResult<Self> {
        let mut found = Found::default();
        let mut files = Vec::new();
        for name in FILES {
            let bytes = read_small(disk, &dir.join(name))?;
            if bytes.is_none() {
                found.damage.push(format!("{name} is missing"));
            }
            let scanned = Scanned::of(&bytes.unwrap_or_default());
            let damage = scanned.damage.iter().map(|what| format!("{name}: {what}"));
            found.damage.extend(damage);
            found.is_used |= scanned.is_used;
            files.push(scanned);
        }
        files.sort_by_key(|file| file.generation);
        let (older, newer) = (&files[0], &files[1]);
        if newer.generation != older.generation + 1 && found.damage.is_empty() {
            found.damage.push("the log has lost a header".to_owned());
        }
        if let Some((before, flags)) = newer.first
            && before != older.last
        {
            found.is_cut = flags & AFTER_SYNC == 0;
            if !found.is_cut && found.damage.is_empty() {
                let lost = format!("the log has lost records after record {}", older.last);
                found.damage.push(lost);
            }
        }
        found.generation = older.generation;
        // Writes without a sync may survive a loss of power without those before them.
        for file in &files[..1 + usize::from(!found.is_cut)] {
            for record in file.records.values() {
                decode(record, &mut found.writes)?;
            }
        }
        Ok(found)
    }
}

impl Log {
    /// Creates an empty log.
    pub(super) fn create(disk: &dyn Disk, dir: &Path, bytes_max: u64) -> StoreResult<Self> {
        for name in FILES {
            match disk.remove(&dir.join(name)) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(error.into());
                }
                _ => {}
            }
        }
        let log = Self::open_files(disk, dir, bytes_max)?;
        log.begin(FIRST_GENERATION)?;
        Ok(log)
    }

    /// Opens a log. It receives no record before [`Log::restart`] if it is used or damaged.
    pub(super) fn open(
        disk: &dyn Disk,
        dir: &Path,
        bytes_max: u64,
        found: &Found,
    ) -> StoreResult<Self> {
        let log = Self::open_files(disk, dir, bytes_max)?;
        log.state.lock().generation = found.generation;
        Ok(log)
    }

    fn open_files(disk: &dyn Disk, dir: &Path, bytes_max: u64) -> StoreResult<Self> {
        let open = |name: &str| disk.open(&dir.join(name), true);
        let files = [open(FILES[0])?, open(FILES[1])?];
        let ends = [files[0].len()?, files[1].len()?];
        Ok(Log {
            files,
            bytes_max,
            state: Mutex::new(State {
                generation: FIRST_GENERATION,
                at: RECORDS_FROM,
                records: 0,
                before: 0,
                ends,
                synced: [true; 2],
            }),
        })
    }

    /// Begins with two empty generations after the engine has everything durably.
    pub(super) fn restart(&self, found: &Found) -> StoreResult<()> {
        if found.is_cut {
            // Once the older records are gone, nothing else says that the newer ones do not count.
            let newer = &self.files[side(found.generation + 1)];
            newer.write_at(&[0; PAGE_BYTES], RECORDS_FROM)?;
            newer.sync_data()?;
        }
        self.begin(found.generation + 2)
    }

    fn begin(&self, generation: u64) -> StoreResult<()> {
        self.write_header(generation)?;
        self.write_header(generation + 1)?;
        let mut state = self.state.lock();
        state.generation = generation;
        state.ends = state.ends.map(|end| end.max(RECORDS_FROM));
        Ok(())
    }

    fn write_header(&self, generation: u64) -> StoreResult<()> {
        let page = Head {
            flags: HEADER,
            generation,
            ..Head::default()
        };
        let mut bytes = vec![0; PAGE_BYTES];
        page.write(&mut bytes, 0);
        let file = &self.files[side(generation)];
        let place = generation / 2 % 2 * PAGE_BYTES as u64;
        file.write_at(&bytes, place)?;
        Ok(file.sync_data()?)
    }

    /// Returns whether the current file has no room for the record of these writes.
    pub(super) fn is_full(&self, writes: &Writes) -> bool {
        let bytes: usize = writes.iter().map(|(k, v)| entry_bytes(k, v)).sum();
        let pages = bytes.div_ceil(BODY_BYTES) * PAGE_BYTES;
        let state = self.state.lock();
        state.at > RECORDS_FROM && state.at + pages as u64 > self.bytes_max
    }

    /// Writes the record of a group, without waiting for the disk.
    pub(super) fn record(&self, writes: &Writes) -> StoreResult<()> {
        let state = &mut *self.state.lock();
        let this = side(state.generation);
        let flags = if state.synced == [true; 2] {
            AFTER_SYNC
        } else {
            0
        };
        let head = Head {
            flags,
            generation: state.generation,
            record: state.records + 1,
            before: state.before,
            ..Head::default()
        };
        let pages = encode(writes, head);
        let to = state.at + pages.len() as u64;
        let end = state.ends[this];
        if to > end {
            let ahead = (end + GROWTH_BYTES).min(self.bytes_max).max(to);
            match self.files[this].write_at(&vec![0; (ahead - end) as usize], end) {
                Ok(()) => state.ends[this] = ahead,
                // The record alone may fit.
                Err(error) if is_full(&error) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let written = self.files[this].write_at(&pages, state.at);
        written.map_err(|error| match is_full(&error) {
            // Nothing refers to an incomplete record, and the next one replaces it.
            true => StoreError::Refused("the disk is full".to_owned()),
            false => error.into(),
        })?;
        state.ends[this] = state.ends[this].max(to);
        (state.at, state.records) = (to, state.records + 1);
        state.synced[this] = false;
        Ok(())
    }

    /// Makes all records durable.
    pub(super) fn sync(&self) -> StoreResult<()> {
        let mut state = self.state.lock();
        for (file, synced) in self.files.iter().zip(&mut state.synced) {
            if !*synced {
                file.sync_data()?;
                *synced = true;
            }
        }
        Ok(())
    }

    /// Continues in the other file, which [`Log::recycle`] has prepared.
    pub(super) fn turn(&self) {
        let state = &mut *self.state.lock();
        state.generation += 1;
        state.before = std::mem::take(&mut state.records);
        state.at = RECORDS_FROM;
    }

    /// Prepares the other file for the next generation; the engine has its records durably.
    pub(super) fn recycle(&self) -> StoreResult<()> {
        let next = self.state.lock().generation + 1;
        self.write_header(next)?;
        self.state.lock().synced[side(next)] = true;
        Ok(())
    }

    pub(super) fn disk_bytes(&self) -> u64 {
        self.state.lock().ends.iter().sum()
    }
}

/// The head of a page.
#[derive(Clone, Copy, Default)]
struct Head {
    used: u16,
    flags: u16,
    generation: u64,
    record: u32,
    before: u32,
    index: u32,
    sum: u32,
}

impl Head {
    fn write(mut self, page: &mut [u8], used: usize) {
        // A body is shorter than a page.
        self.used = u16::try_from(used).unwrap_or(u16::MAX);
        page[4..6].copy_from_slice(&self.used.to_le_bytes());
        page[6..8].copy_from_slice(&self.flags.to_le_bytes());
        page[8..16].copy_from_slice(&self.generation.to_le_bytes());
        page[16..20].copy_from_slice(&self.record.to_le_bytes());
        page[20..24].copy_from_slice(&self.before.to_le_bytes());
        page[24..28].copy_from_slice(&self.index.to_le_bytes());
        page[28..32].copy_from_slice(&self.sum.to_le_bytes());
        let sum = crc32fast::hash(&page[4..HEAD_BYTES + used]);
        page[..4].copy_from_slice(&sum.to_le_bytes());
    }

    /// Returns the head and the body of a page, or `None` when it was never completely written.
    fn read(page: &[u8]) -> Option<(Self, &[u8])> {
        let short = |at: usize| Some(u16::from_le_bytes(*page.get(at..)?.first_chunk()?));
        let word = |at: usize| Some(u32::from_le_bytes(*page.get(at..)?.first_chunk()?));
        let head = Head {
            used: short(4)?,
            flags: short(6)?,
            generation: u64::from_le_bytes(*page.get(8..)?.first_chunk()?),
            record: word(16)?,
            before: word(20)?,
            index: word(24)?,
            sum: word(28)?,
        };
        let checked = page.get(4..HEAD_BYTES + usize::from(head.used))?;
        let is_whole = crc32fast::hash(checked) == word(0)?;
        is_whole.then(|| (head, &checked[HEAD_BYTES - 4..]))
    }
}

/// The content of a file.
#[derive(Default)]
struct Scanned {
    generation: u64,
    records: BTreeMap<u32, Vec<u8>>,
    /// The number of the last complete record.
    last: u32,
    /// Records in the generation before, and flags, according to the first record.
    first: Option<(u32, u16)>,
    is_used: bool,
    damage: Vec<String>,
}

impl Scanned {
    fn of(bytes: &[u8]) -> Self {
        let mut found = Scanned::default();
        let pages = || bytes.chunks(PAGE_BYTES).map(Head::read);
        let headers = pages().take(2).flatten().map(|(head, _)| head);
        let headers = headers.filter(|head| head.flags & HEADER != 0);
        let records = || pages().skip(2);
        let newest = records().flatten().map(|(head, _)| head.generation).max();
        found.generation = headers
            .map(|head| head.generation)
            .max()
            .unwrap_or_default();
        if found.generation == 0 || newest > Some(found.generation) {
            found.damage.push("its header is damaged".to_owned());
            found.generation = found.generation.max(newest.unwrap_or_default());
        }
        let mut open: Option<(u32, Vec<u8>)> = Some((0, Vec::new()));
        for page in records() {
            let page = page.filter(|(head, _)| head.generation == found.generation);
            let Some((head, body)) = page else {
                open = None;
                continue;
            };
            found.is_used = true;
            if head.record > found.last + 1 {
                // In a log that is not synced, the last records may survive in part.
                if head.flags & AFTER_SYNC == 0 {
                    break;
                }
                let lost = found.last + 1;
                found.damage.push(format!("record {lost} is damaged"));
                found.last = head.record - 1;
                open = (head.index == 0).then(|| (0, Vec::new()));
            }
            open = open.filter(|(next, _)| (head.record, head.index) == (found.last + 1, *next));
            let Some((next, record)) = &mut open else {
                continue;
            };
            *next += 1;
            record.extend_from_slice(body);
            found.first.get_or_insert((head.before, head.flags));
            if head.flags & LAST != 0 && crc32fast::hash(record) == head.sum {
                found.last = head.record;
                found.records.insert(head.record, std::mem::take(record));
                *next = 0;
            }
        }
        // The first record counts when it is complete.
        found.first = found.first.filter(|_| found.last > 0);
        found
    }
}

fn side(generation: u64) -> usize {
    usize::from(generation % 2 == 1)
}

fn entry_bytes(key: &[u8], value: &Option<Bytes>) -> usize {
    8 + key.len() + value.as_ref().map_or(0, Bytes::len)
}

/// Returns the pages of a record.
fn encode(writes: &Writes, head: Head) -> Vec<u8> {
    let bytes: usize = writes.iter().map(|(k, v)| entry_bytes(k, v)).sum();
    let mut pages = Vec::with_capacity(bytes.div_ceil(BODY_BYTES) * PAGE_BYTES);
    let mut put = |mut part: &[u8]| {
        while !part.is_empty() {
            if pages.len() % PAGE_BYTES == 0 {
                pages.extend_from_slice(&[0; HEAD_BYTES]);
            }
            let room = PAGE_BYTES - pages.len() % PAGE_BYTES;
            let (now, later) = part.split_at(part.len().min(room));
            pages.extend_from_slice(now);
            part = later;
        }
    };
    for (key, value) in writes {
        // Keys and values are far shorter than that.
        let length = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap_or(DELETED);
        put(&length(key).to_le_bytes());
        put(&value.as_ref().map_or(DELETED, |v| length(v)).to_le_bytes());
        put(key);
        put(value.as_deref().unwrap_or_default());
    }
    let used = pages.len();
    pages.resize(used.next_multiple_of(PAGE_BYTES), 0);
    let last = pages.len() / PAGE_BYTES - 1;
    let end_of = |index| {
        if index == last {
            used - index * PAGE_BYTES
        } else {
            PAGE_BYTES
        }
    };
    let mut sum = crc32fast::Hasher::new();
    for (index, page) in pages.chunks(PAGE_BYTES).enumerate() {
        sum.update(&page[HEAD_BYTES..end_of(index)]);
    }
    let sum = sum.finalize();
    for (index, page) in pages.chunks_mut(PAGE_BYTES).enumerate() {
        let is_last = index == last;
        let head = Head {
            sum,
            flags: head.flags | if is_last { LAST } else { 0 },
            index: u32::try_from(index).unwrap_or(u32::MAX),
            ..head
        };
        head.write(page, end_of(index) - HEAD_BYTES);
    }
    pages
}

/// Adds the writes of a record.
fn decode(record: &[u8], writes: &mut Writes) -> StoreResult<()> {
    let mut left = record;
    let mut take = |bytes: usize| {
        let (taken, rest) = left.split_at_checked(bytes)?;
        left = rest;
        Some(taken)
    };
    let mut next = || {
        let key = u32::from_le_bytes(*take(4)?.first_chunk()?);
        let value = u32::from_le_bytes(*take(4)?.first_chunk()?);
        let key = take(key as usize)?.to_vec();
        let value = match value {
            DELETED => None,
            bytes => Some(Bytes::copy_from_slice(take(bytes as usize)?)),
        };
        Some((key, value))
    };
    let mut read = 0;
    while read < record.len() {
        let entry = next();
        let (key, value) =
            entry.ok_or_else(|| StoreError::Corrupt("a record of the log".to_owned()))?;
        read += entry_bytes(&key, &value);
        writes.insert(key, value);
    }
    Ok(())
}
