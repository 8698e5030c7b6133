//! The metadata engine on disk: sled, with one tree. No other module uses sled.
//!
//! sled writes out on `flush`, without a sync that survives a power loss. So the commit log beside
//! it holds all writes until they are applied, flushed and synced; this module syncs the file
//! through its own descriptor.

use std::ops::Bound;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use sled::IVec;

use super::engine::Engine;
use super::error::{StoreError, StoreResult};
use super::failpoint;
use super::keys;
use super::log::{Found, Log};
use super::sled_waker::Waker;
use super::view::{Visit, Writes};
use crate::disk::{Disk, DiskFile, LOCK_TRIES_MAX, read_small, wait_for_lock};

/// Smallest value that is returned without a copy; copying smaller ones is cheaper.
const SHARED_VALUE_BYTES_MIN: usize = 512;

/// Bytes of writes between two syncs of sled's file. sled moves older records out of a segment of
/// 512 KiB and uses that again as soon as it has written, not synced, the one after; and the log
/// has no copy of them.
const UNSYNCED_BYTES_MAX: usize = 256 * 1024;

/// The first format with a log.
const FORMAT_WITH_LOG: u64 = 2;

/// The file of sled's settings.
const SETTINGS: &str = "conf";

/// sled in its own directory.
pub(super) struct SledEngine {
    db: Open,
    file: Arc<dyn DiskFile>,
    log: Log,
}

/// What to do about a damaged log.
pub(super) enum Damage<'a> {
    /// Refuse to open, and change nothing.
    Refuse,
    /// Continue with the readable records, and add descriptions of the damage.
    Tell(&'a mut Vec<String>),
}

/// An open sled. Dropping it syncs once more and panics if that fails; the panic is caught, because
/// the close has reported the error by then.
struct Open {
    db: Option<sled::Db>,
    waker: Option<Waker>,
}

impl Open {
    fn new(db: sled::Db) -> StoreResult<Self> {
        let waker = Waker::start(db.clone())?;
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

    /// Opens the directory, or a new one, and applies its log. Returns an error where sled panics
    /// on damaged files.
    pub(super) fn open(
        disk: &dyn Disk,
        dir: &Path,
        cache_bytes: u64,
        log_bytes: u64,
        is_new: bool,
        damage: Damage<'_>,
    ) -> StoreResult<Self> {
        // Both of sled's modes were measured: same speed and disk space, also after overwriting.
        let config = sled::Config::new()
            .path(dir)
            .cache_capacity(cache_bytes)
            .mode(sled::Mode::HighThroughput)
            .flush_every_ms(None);
        let db = Open::new(open_unlocked(&config)?)?;
        // sled never syncs its settings, and does not open when they are damaged.
        let settings = disk.open(&dir.join(SETTINGS), true)?;
        settings.sync_data()?;
        let file = disk.open(&dir.join("db"), true)?;
        // A process that was killed before a sync leaves writes that are read from now on. They
        // must be durable before the store records that it has reached them.
        file.sync_data()?;
        let format = db.get()?.get(keys::FORMAT).map_err(to_store_error)?;
        let format = format.map(|found| keys::numbers::<1>(&found)).transpose()?;
        let (log, found) = match format {
            Some([(FORMAT_WITH_LOG..)]) if !is_new => {
                let found = Found::read(disk, dir)?;
                match damage {
                    Damage::Refuse if !found.damage.is_empty() => {
                        return Err(StoreError::Corrupt(found.damage.join("; ")));
                    }
                    Damage::Tell(damage) => damage.extend_from_slice(&found.damage),
                    Damage::Refuse => {}
                }
                (Log::open(disk, dir, log_bytes, &found)?, found)
            }
            None if !is_new => return Err(StoreError::Corrupt("its records are lost".to_owned())),
            _ => (Log::create(disk, dir, log_bytes)?, Found::default()),
        };
        disk.sync_dir(dir)?;
        let engine = SledEngine { db, file, log };
        if found.is_used {
            engine.apply(&found.writes)?;
            failpoint::reach("open.log_applied");
            engine.sync()?;
            failpoint::reach("open.log_synced");
            engine.log.restart(&found)?;
            failpoint::reach("open.log_restarted");
        }
        Ok(engine)
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

    /// Writes one key after the other: a batch excludes readers, and rolls sled's buffer. The stamp
    /// comes last, so that a file without its end has an earlier stamp.
    fn apply(&self, writes: &Writes) -> StoreResult<()> {
        let db = self.db.get()?;
        self.db.unwritten();
        let mut unsynced = 0;
        let stamp = writes.get_key_value(&keys::STAMP[..]);
        let others = writes.iter().filter(|(key, _)| key[..] != keys::STAMP);
        for (key, written) in others.chain(stamp) {
            let old = match written {
                Some(value) => db.insert(key, value.as_ref()),
                None => db.remove(key),
            };
            // sled splits nodes that have become too large, and joins those that are too small, at
            // their next access, even a read; but that is a write, and after one has failed sled
            // refuses all writes. So reads after a failed write must have nothing to split or join.
            let settled = db.contains_key(key);
            old.map_err(|error| match settled {
                Ok(_) => to_store_error(error),
                Err(_) => to_store_error(error).cut_off(),
            })?;
            settled.map_err(|error| to_store_error(error).cut_off())?;
            unsynced += key.len() + written.as_ref().map_or(0, Bytes::len);
            if unsynced >= UNSYNCED_BYTES_MAX {
                self.file.sync_data()?;
                unsynced = 0;
            }
            failpoint::reach("drain.step");
        }
        Ok(())
    }

    fn sync(&self) -> StoreResult<()> {
        self.db.flush()?;
        failpoint::reach("drain.flushed");
        Ok(self.file.sync_data()?)
    }

    fn is_log_full(&self, writes: &Writes) -> bool {
        self.log.is_full(writes)
    }

    fn record(&self, writes: &Writes) -> StoreResult<()> {
        self.log.record(writes)
    }

    fn sync_log(&self) -> StoreResult<()> {
        self.log.sync()
    }

    fn turn_log(&self) {
        self.log.turn();
    }

    fn recycle_log(&self) -> StoreResult<()> {
        self.log.recycle()
    }

    fn disk_bytes(&self) -> u64 {
        let sled = self.db.get().map_or(0, |db| db.size_on_disk().unwrap_or(0));
        sled + self.log.disk_bytes()
    }
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
