//! Counters of the store, for `/metrics` and the benchmark.

use std::sync::atomic::{AtomicU64, Ordering};

use super::view::Writes;

/// The store's figures at one moment. Counters start at zero with the process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Commits that ran, including refused ones.
    pub commits: u64,
    /// Groups in which commits were made durable.
    pub groups: u64,
    /// Keys written or deleted.
    pub keys_written: u64,
    /// Bytes of keys and values written.
    pub bytes_written: u64,
    /// Payload bytes for which staging was started.
    pub bytes_staged: u64,
    /// Number of extent segments.
    pub segments: u64,
    /// Bytes of all segments.
    pub segment_bytes: u64,
    /// Bytes that the metadata engine takes on disk.
    pub engine_bytes: u64,
    /// Free bytes of the file system for the store; `None` when the system does not report them.
    pub available_bytes: Option<u64>,
}

#[derive(Debug, Default)]
pub(super) struct Counters {
    commits: AtomicU64,
    groups: AtomicU64,
    keys_written: AtomicU64,
    bytes_written: AtomicU64,
    bytes_staged: AtomicU64,
}

impl Counters {
    pub(super) fn count_group(&self, commits: usize) {
        self.groups.fetch_add(1, Ordering::Relaxed);
        self.commits.fetch_add(commits as u64, Ordering::Relaxed);
    }

    pub(super) fn count_writes(&self, writes: &Writes) {
        let bytes = |(key, value): (&Vec<u8>, &Option<bytes::Bytes>)| {
            key.len() + value.as_ref().map_or(0, bytes::Bytes::len)
        };
        let bytes: usize = writes.iter().map(bytes).sum();
        self.keys_written
            .fetch_add(writes.len() as u64, Ordering::Relaxed);
        self.bytes_written
            .fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn count_staging(&self, bytes: u64) {
        self.bytes_staged.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn read(&self) -> Stats {
        Stats {
            commits: self.commits.load(Ordering::Relaxed),
            groups: self.groups.load(Ordering::Relaxed),
            keys_written: self.keys_written.load(Ordering::Relaxed),
            bytes_written: self.bytes_written.load(Ordering::Relaxed),
            bytes_staged: self.bytes_staged.load(Ordering::Relaxed),
            ..Stats::default()
        }
    }
}
