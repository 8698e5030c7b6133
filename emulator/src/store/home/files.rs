//! A store's directory: takes it, opens its engine, switches to the next one.

use std::any::Any;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;

use super::Bare;
use super::format::{FIRST_INDEX, FORMAT, Format};
use super::found::{COPY_PREFIX, ENGINE_PREFIX, Found};
use super::watch::Watch;
use crate::disk::{
    Disk, LOCK_TRIES_MAX, copy_dir, files_below, read_small, replace_small, wait_for_lock,
};
use crate::store::config::StoreConfig;
use crate::store::engine::Engine;
use crate::store::error::{OpenError, StoreError, StoreResult};
use crate::store::failpoint;
use crate::store::keys;
use crate::store::log;
use crate::store::sled_engine::{Damage, SledEngine};
use crate::store::stamp;
use crate::store::view::{View, Writes};

/// Size of a file of the commit log: the engine takes its writes in the background while the other
/// file fills up, and a start replays at most two.
const LOG_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// A directory that this process has locked.
pub(in crate::store) struct Files {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) dir: PathBuf,
    cache_bytes: u64,
    log_bytes: u64,
    pub(super) lock: Mutex<Option<Box<dyn Any + Send + Sync>>>,
    /// The number of the current engine directory.
    index: AtomicU64,
    pub(super) watch: Watch,
    /// Name of a copy of an engine directory that was found damaged.
    pub(super) copy: Option<String>,
}

/// The reason why an engine directory cannot be used.
enum Unusable {
    Damaged(String),
    Refused(OpenError),
}

impl Files {
    /// Locks the directory and opens its engine.
    pub(super) fn open(
        config: &StoreConfig,
        disk: &Arc<dyn Disk>,
    ) -> Result<(Self, Box<dyn Engine>), OpenError> {
        let dir = config.dir.clone().ok_or(OpenError::NoDirectory)?;
        let io = |error: io::Error| cannot_open(&dir, &error);
        disk.create_private_dir(&dir).map_err(io)?;
        let lock = lock(disk.as_ref(), &dir).map_err(io)?;
        let mut files = Files {
            disk: Arc::clone(disk),
            cache_bytes: config.cache_bytes,
            log_bytes: config.segment_bytes.min(LOG_BYTES_MAX),
            lock: Mutex::new(Some(lock.ok_or(OpenError::Locked { dir: dir.clone() })?)),
            index: AtomicU64::new(FIRST_INDEX),
            watch: Watch::new(disk, &dir, config.mode),
            copy: None,
            dir,
        };
        failpoint::reach("open.locked");
        let engine = files.open_current()?;
        let found = Found::look(disk.as_ref(), &files.dir);
        let found = found.map_err(|error| files.cannot_open(&error))?;
        files.copy = found.copies.into_iter().next();
        // The first check creates the reserve.
        files.watch.look(0);
        Ok((files, engine))
    }

    fn open_current(&self) -> Result<Box<dyn Engine>, OpenError> {
        let format = self.format_or_begin()?;
        let index = format.index;
        self.index.store(index, Ordering::Relaxed);
        let engine = match self.open_index(index, format) {
            Ok(engine) => engine,
            Err(Unusable::Refused(error)) => return Err(error),
            Err(Unusable::Damaged(cause)) => self.recover(index, format, cause)?,
        };
        let settle = || {
            let tick = stamp::read(&Bare(engine.as_ref()))?.tick;
            self.disk.sync_dir(&self.dir)?;
            failpoint::reach("open.names_synced");
            self.note(tick.ticks())?;
            failpoint::reach("open.noted");
            self.remove_others()?;
            Ok(self.watch_files()?)
        };
        settle().map_err(|error: StoreError| self.cannot_open(&error))?;
        Ok(engine)
    }

    /// Reads `format`, or begins a store in a directory without one. Leaves other files alone.
    fn format_or_begin(&self) -> Result<Format, OpenError> {
        let io = |error: io::Error| self.cannot_open(&error);
        let found = Found::look(self.disk.as_ref(), &self.dir).map_err(io)?;
        let format = match self.read_format()? {
            Some(format) if !format.is_beginning => format,
            // `format` is the first file of a store, so parts without it mean that it was lost.
            None if !found.is_empty() => {
                let cause = format!("its file `format` is missing; the directory has {found}");
                return Err(self.damaged(&cause, None, &""));
            }
            Some(_) if found.segments > 0 => {
                let cause = format!("`format` is that of a new store; the directory has {found}");
                return Err(self.damaged(&cause, None, &""));
            }
            _ => {
                // An interrupted creation left a part of an engine.
                let begun = self.engine_dir(FIRST_INDEX);
                self.disk.remove_dir(&begun).map_err(io)?;
                let format = Format::beginning();
                self.write_format(format).map_err(io)?;
                failpoint::reach("open.begun");
                return Ok(format);
            }
        };
        let engine = self.engine_dir(format.index);
        let files = self.disk.list(&engine).map_err(io)?;
        if !files.iter().any(|file| file.name == "db") {
            let name = engine.file_name().unwrap_or_default().to_string_lossy();
            let cause = format!("`{name}/db` is missing; the directory has {found}");
            return Err(self.damaged(&cause, None, &""));
        }
        Ok(format)
    }

    /// Watches the files without which the store is lost.
    fn watch_files(&self) -> io::Result<()> {
        self.watch.note(self.dir.join("lock"))?;
        let engine = self.engine_dir(self.index.load(Ordering::Relaxed));
        for name in ["db"].iter().chain(&log::FILES) {
            self.watch.note(engine.join(name))?;
        }
        Ok(())
    }

    fn open_index(&self, index: u64, format: Format) -> Result<Box<dyn Engine>, Unusable> {
        let refused = |error: StoreError| match error {
            StoreError::Corrupt(cause) => Unusable::Damaged(cause),
            other => Unusable::Refused(self.cannot_open(&other)),
        };
        let engine = self.engine(index, format.is_beginning).map_err(refused)?;
        let view = Bare(engine.as_ref());
        let found = view.get(&keys::FORMAT).map_err(refused)?;
        let Some(found) = found else {
            if !format.is_beginning || !is_empty(&view).map_err(refused)? {
                return Err(Unusable::Damaged("its records are lost".to_owned()));
            }
            begin(engine.as_ref()).map_err(refused)?;
            failpoint::reach("open.engine_begun");
            return Ok(engine);
        };
        let [version] = keys::numbers(&found).map_err(refused)?;
        if version > u64::from(FORMAT) {
            let found = u32::try_from(version).unwrap_or(u32::MAX);
            return Err(Unusable::Refused(self.newer(found)));
        }
        if version < u64::from(FORMAT) {
            begin(engine.as_ref()).map_err(refused)?;
        }
        let reached = stamp::read(&view).map_err(refused)?.tick.ticks();
        if reached < format.tick {
            let cause = "its last commits are lost".to_owned();
            return Err(Unusable::Damaged(cause));
        }
        Ok(engine)
    }

    /// Tries to open a copy of the engine without its snapshot and settings: sled fails when they
    /// are empty, damaged or cut short, although its log is intact. A copy of the damaged directory
    /// is kept in any case. (By then sled may have zeroed what follows the last complete record of
    /// a segment; copying before each start would cost time in proportion to the store.)
    fn recover(
        &self,
        index: u64,
        format: Format,
        cause: String,
    ) -> Result<Box<dyn Engine>, OpenError> {
        let backup = self.back_up(index);
        let backup = backup.map_err(|error| self.damaged(&cause, None, &error))?;
        failpoint::reach("recover.backed_up");
        tracing::warn!(%cause, backup = %backup.display(), "the store is damaged: recovering it");
        let retry = index + 1;
        let copied = self
            .disk
            .remove_dir(&self.engine_dir(retry))
            .and_then(|()| self.copy_without_expendable(&backup, &self.engine_dir(retry)));
        copied.map_err(|error| self.damaged(&cause, Some(&backup), &error))?;
        failpoint::reach("recover.copied");
        match self.open_index(retry, format) {
            Ok(engine) => {
                self.index.store(retry, Ordering::Relaxed);
                Ok(engine)
            }
            Err(Unusable::Refused(error)) => Err(error),
            Err(Unusable::Damaged(again)) => {
                // The copy is useless; a failure to remove it changes nothing.
                let _ = self.disk.remove_dir(&self.engine_dir(retry));
                Err(self.damaged(&cause, Some(&backup), &again))
            }
        }
    }

    fn back_up(&self, index: u64) -> io::Result<PathBuf> {
        let backup = self.dir.join(format!("{COPY_PREFIX}{index}"));
        if files_below(&backup).is_ok_and(|files| !files.is_empty()) {
            // An earlier start found the same damage and kept a copy.
            return Ok(backup);
        }
        let part = self.dir.join(format!("{COPY_PREFIX}{index}.part"));
        self.disk.remove_dir(&part)?;
        copy_dir(self.disk.as_ref(), &self.engine_dir(index), &part, &|_| {
            false
        })?;
        self.disk.rename(&part, &backup)?;
        self.disk.sync_dir(&self.dir)?;
        Ok(backup)
    }

    fn copy_without_expendable(&self, from: &Path, to: &Path) -> io::Result<()> {
        let disk = self.disk.as_ref();
        copy_dir(disk, from, to, &|file| {
            SledEngine::is_expendable(disk, file)
        })
    }

    pub(super) fn prepare(&self) -> StoreResult<Box<dyn Engine>> {
        let next = self.index.load(Ordering::Relaxed) + 1;
        self.disk.remove_dir(&self.engine_dir(next))?;
        let engine = self.engine(next, true)?;
        begin(engine.as_ref())?;
        failpoint::reach("reset.engine_begun");
        Ok(engine)
    }

    pub(super) fn switch(&self, tick: u64) -> StoreResult<()> {
        self.disk.sync_dir(&self.dir)?;
        self.index.fetch_add(1, Ordering::Relaxed);
        self.watch_files()?;
        // From here on a restart opens the new engine.
        self.note(tick)?;
        failpoint::reach("reset.noted");
        Ok(())
    }

    fn engine(&self, index: u64, is_new: bool) -> StoreResult<Box<dyn Engine>> {
        let dir = self.engine_dir(index);
        self.disk.create_private_dir(&dir)?;
        let engine = SledEngine::open(
            self.disk.as_ref(),
            &dir,
            self.cache_bytes,
            self.log_bytes,
            is_new,
            Damage::Refuse,
        )?;
        Ok(Box::new(engine))
    }

    fn engine_dir(&self, index: u64) -> PathBuf {
        self.dir.join(format!("{ENGINE_PREFIX}{index}"))
    }

    pub(super) fn remove_others(&self) -> io::Result<()> {
        let current = self.index.load(Ordering::Relaxed);
        for index in Found::look(self.disk.as_ref(), &self.dir)?.engines {
            if index != current {
                self.disk.remove_dir(&self.engine_dir(index))?;
            }
        }
        Ok(())
    }

    fn read_format(&self) -> Result<Option<Format>, OpenError> {
        let text = read_small(self.disk.as_ref(), &self.dir.join("format"));
        let Some(text) = text.map_err(|error| self.cannot_open(&error))? else {
            return Ok(None);
        };
        let format = Format::parse(&String::from_utf8_lossy(&text));
        match format {
            None => Err(self.damaged("its file `format` is unreadable", None, &"")),
            Some(format) if format.version > FORMAT => Err(self.newer(format.version)),
            Some(format) => Ok(Some(format)),
        }
    }

    pub(super) fn note(&self, tick: u64) -> io::Result<()> {
        self.write_format(Format {
            version: FORMAT,
            index: self.index.load(Ordering::Relaxed),
            tick,
            is_beginning: false,
        })
    }

    fn write_format(&self, format: Format) -> io::Result<()> {
        let path = self.dir.join("format");
        replace_small(self.disk.as_ref(), &path, format.text().as_bytes())
    }

    fn newer(&self, found: u32) -> OpenError {
        OpenError::Newer {
            dir: self.dir.clone(),
            found,
            known: FORMAT,
        }
    }

    fn damaged(
        &self,
        cause: &str,
        backup: Option<&Path>,
        further: &dyn std::fmt::Display,
    ) -> OpenError {
        let further = further.to_string();
        let cause = match further.as_str() {
            "" => cause.to_owned(),
            same if same == cause => further,
            _ => format!("{cause}; {further}"),
        };
        OpenError::Damaged {
            dir: self.dir.clone(),
            backup: backup.map(Path::to_owned),
            cause,
        }
    }

    fn cannot_open(&self, error: &dyn std::fmt::Display) -> OpenError {
        cannot_open(&self.dir, error)
    }
}

/// Locks the directory. A child that this process is starting holds a lock that was just released,
/// between its fork and its exec; a few retries distinguish it from an owner.
fn lock(disk: &dyn Disk, dir: &Path) -> io::Result<Option<Box<dyn Any + Send + Sync>>> {
    for _ in 1..LOCK_TRIES_MAX {
        if let Some(lock) = disk.lock(&dir.join("lock"))? {
            return Ok(Some(lock));
        }
        wait_for_lock();
    }
    disk.lock(&dir.join("lock"))
}

fn begin(engine: &dyn Engine) -> StoreResult<()> {
    let version = keys::value(&[u64::from(FORMAT)]);
    engine.apply(&Writes::from([(
        keys::FORMAT.to_vec(),
        Some(Bytes::from(version)),
    )]))?;
    engine.sync()
}

fn is_empty(view: &dyn View) -> StoreResult<bool> {
    let mut empty = true;
    view.scan(&[], &[0xFF; 2], &mut |_, _| {
        empty = false;
        std::ops::ControlFlow::Break(())
    })?;
    Ok(empty)
}

fn cannot_open(path: &Path, error: &dyn std::fmt::Display) -> OpenError {
    OpenError::Io {
        path: path.to_owned(),
        cause: error.to_string(),
    }
}
