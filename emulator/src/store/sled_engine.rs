//! The metadata engine on disk: sled, with one tree. No other module uses sled.
//!
//! sled applies a batch at once for readers and writes it out on `flush`, without a sync that
//! survives a power loss. So the committer masks what is not durable, and this module syncs the
//! file through its own descriptor.

use std::ops::Bound;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use sled::IVec;

use super::engine::Engine;
use super::error::{StoreError, StoreResult};
use super::failpoint;
use super::sled_waker::Waker;
use super::view::{Visit, Writes};
use crate::disk::{Disk, DiskFile, LOCK_TRIES_MAX, read_small, wait_for_lock};

/// Smallest value that is returned without a copy; copying smaller ones is cheaper.
const SHARED_VALUE_BYTES_MIN: usize = 512;

/// The file of sled's settings.
const SETTINGS: &str = "conf";

/// sled in its own directory.
pub(super) struct SledEngine {
    db: Open,
    file: Arc<dyn DiskFile>,
}

/// An open sled. Dropping it syncs once more and panics if that fails; the panic is caught, because
/// the close has reported the error by then.
struct Open {
    db: Option<sled::Db>,
    waker: Option<Waker>,
}

impl Open {
    fn new(db: sled::Db) -> StoreResult<Self> {
        let waker = Waker::start(db.clone()).map_err(io_error)?;
        Ok(Open {
            db: Some(db),
            waker: Some(waker),
        })
    }

    fn get(&self) -> StoreResult<&sled::Db> {
        self.db.as_ref().ok_or(StoreError::Closed)
    }

    fn unwritten(&self) {
        if let Some(waker) = &self.waker {
            waker.unwritten();
        }
    }

    fn flush(&self) -> StoreResult<()> {
        self.get()?.flush().map_err(to_store_error)?;
        if let Some(waker) = &self.waker {
            waker.written();
        }
        Ok(())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.unwritten();
        // Flushes before the drop, during which no waker runs.
        let flushed = catch_unwind(AssertUnwindSafe(|| self.flush()));
        let (waker, db) = (self.waker.take(), self.db.take());
        let closed = catch_unwind(AssertUnwindSafe(|| drop((waker, db))));
        if closed.is_err() || !matches!(flushed, Ok(Ok(()))) {
            tracing::error!("cannot close the metadata engine cleanly");
        }
    }
}

impl SledEngine {
    /// Returns whether a copy may leave out a file when sled cannot open the directory: snapshots,
    /// whose content the log has as well, and settings that were cut short, because they are always
    /// the same. Complete settings of another sled release stay.
    pub(super) fn is_expendable(disk: &dyn Disk, file: &Path) -> bool {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        if name == SETTINGS {
            return !read_small(disk, file).is_ok_and(|found| found.is_some_and(|f| is_whole(&f)));
        }
        name.starts_with("snap.")
    }

    /// Opens or creates the directory. Returns an error where sled panics on damaged files.
    pub(super) fn open(
        disk: &dyn Disk,
        dir: &Path,
        cache_bytes: u64,
        flush_every_ms: Option<u64>,
    ) -> StoreResult<Self> {
        // Both of sled's modes were measured: same speed and disk space, also after overwriting.
        let config = sled::Config::new()
            .path(dir)
            .cache_capacity(cache_bytes)
            .mode(sled::Mode::HighThroughput)
            .flush_every_ms(flush_every_ms);
        let db = Open::new(open_unlocked(&config)?)?;
        // sled never syncs its settings, and does not open when they are damaged.
        let settings = disk.open(&dir.join(SETTINGS), true).map_err(io_error)?;
        settings.sync_data().map_err(io_error)?;
        let file = disk.open(&dir.join("db"), true).map_err(io_error)?;
        // A process that was killed before a sync leaves commits that are read from now on. They
        // must be durable before the store records that it has reached them.
        file.sync_data().map_err(io_error)?;
        disk.sync_dir(dir).map_err(io_error)?;
        Ok(SledEngine { db, file })
    }
}

/// Returns whether sled's settings end in their own checksum.
fn is_whole(settings: &[u8]) -> bool {
    let checked = settings.split_last_chunk::<4>();
    checked.is_some_and(|(body, sum)| {
        !body.is_empty() && crc32fast::hash(body) == u32::from_le_bytes(*sum)
    })
}

/// Opens sled, retrying while its lock is taken: our own lock excludes other processes, but a sled
/// that was just closed may keep its file until its threads have ended.
fn open_unlocked(config: &sled::Config) -> StoreResult<sled::Db> {
    let mut tries = 0;
    loop {
        match catch_unwind(AssertUnwindSafe(|| config.open())) {
            Ok(Ok(db)) => return Ok(db),
            Ok(Err(error)) if is_locked(&error) && tries < LOCK_TRIES_MAX => {
                tries += 1;
                wait_for_lock();
            }
            Ok(Err(error)) => return Err(to_store_error(error)),
            Err(_) => return Err(StoreError::Corrupt("sled panicked".to_owned())),
        }
    }
}

fn is_locked(error: &sled::Error) -> bool {
    matches!(error, sled::Error::Io(io) if io.to_string().contains("could not acquire lock"))
}

impl Engine for SledEngine {
    fn get(&self, key: &[u8]) -> StoreResult<Option<Bytes>> {
        let value = self.db.get()?.get(key).map_err(to_store_error)?;
        Ok(value.map(to_bytes))
    }

    fn first_from(&self, key: &[u8]) -> StoreResult<Option<(Vec<u8>, Bytes)>> {
        let first = self.db.get()?.range(key..).next().transpose();
        let first = first.map_err(to_store_error)?;
        Ok(first.map(|(key, value)| (key.to_vec(), to_bytes(value))))
    }

    fn scan(&self, from: &[u8], to: &[u8], visit: &mut Visit<'_>) -> StoreResult<()> {
        if from >= to {
            return Ok(());
        }
        let range = (Bound::Included(from), Bound::Excluded(to));
        for entry in self.db.get()?.range::<&[u8], _>(range) {
            let (key, value) = entry.map_err(to_store_error)?;
            if visit(&key, &to_bytes(value)).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn apply(&self, writes: &Writes) -> StoreResult<()> {
        let mut batch = sled::Batch::default();
        for (key, written) in writes {
            match written {
                Some(value) => batch.insert(key.as_slice(), value.as_ref()),
                None => batch.remove(key.as_slice()),
            }
        }
        let db = self.db.get()?;
        self.db.unwritten();
        db.apply_batch(batch).map_err(to_store_error)?;
        settle(db, writes).map_err(to_store_error)
    }

    fn sync(&self) -> StoreResult<()> {
        self.db.flush()?;
        failpoint::reach("commit.flushed");
        self.file.sync_data().map_err(io_error)
    }

    fn disk_bytes(&self) -> u64 {
        self.db.get().map_or(0, |db| db.size_on_disk().unwrap_or(0))
    }
}

/// Makes sled split nodes that have become too large, and join those that are too small.
///
/// sled leaves that to the next access of the node, even a read; but it is a write, and after one
/// has failed sled refuses all writes. So reads after a failed write must have nothing to split or
/// join.
fn settle(db: &sled::Db, writes: &Writes) -> sled::Result<()> {
    for key in writes.keys() {
        db.contains_key(key)?;
    }
    Ok(())
}

fn to_bytes(value: IVec) -> Bytes {
    if value.len() < SHARED_VALUE_BYTES_MIN {
        Bytes::copy_from_slice(&value)
    } else {
        Bytes::from_owner(value)
    }
}

fn to_store_error(error: sled::Error) -> StoreError {
    match error {
        sled::Error::Corruption { .. } | sled::Error::Unsupported(_) => {
            StoreError::Corrupt(error.to_string())
        }
        // The log ends before its own records say.
        sled::Error::Io(ref io) if io.kind() == std::io::ErrorKind::UnexpectedEof => {
            StoreError::Corrupt(error.to_string())
        }
        other => StoreError::Io(other.to_string()),
    }
}

fn io_error(error: std::io::Error) -> StoreError {
    StoreError::Io(error.to_string())
}
