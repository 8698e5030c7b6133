//! The store's directory: its lock, its format, and the current engine files.
//!
//! ```text
//! lock           held while the store is open
//! format         format version, current engine directory, a tick that it must have reached
//! reserve        room that is given up when the disk is full; only while the store is open
//! sled-<n>/      the metadata engine; a reset begins the next number
//! extents/       segments of payloads
//! snapshots/     named snapshots of the state
//! damaged-<n>/   a copy of an engine directory that could not be opened
//! ```

mod files;
mod format;
mod found;
mod watch;

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;

use super::config::{Mode, StoreConfig};
use super::engine::{Engine, MemoryEngine};
use super::error::{OpenError, StoreResult};
use super::view::{Stamp, View, Visit};
use crate::disk::Disk;

pub(super) use format::{FORMAT, Format};
pub(super) use found::{ENGINE_PREFIX, Found};
pub use watch::Purpose;

use files::Files;

/// The place of a store: memory or a directory.
pub(super) enum Home {
    Memory,
    Files(Box<Files>),
}

impl Home {
    /// Opens the directory and its engine.
    pub(super) fn open(
        config: &StoreConfig,
        disk: &Arc<dyn Disk>,
    ) -> Result<(Self, Box<dyn Engine>), OpenError> {
        if config.mode == Mode::Memory {
            return Ok((Home::Memory, Box::new(MemoryEngine::default())));
        }
        let (files, engine) = Files::open(config, disk)?;
        Ok((Home::Files(Box::new(files)), engine))
    }

    /// Replaces the current engine with an empty one, and returns it.
    pub(super) fn next_engine(&self) -> StoreResult<Box<dyn Engine>> {
        match self {
            Home::Memory => Ok(Box::new(MemoryEngine::default())),
            Home::Files(files) => {
                let engine = files.prepare()?;
                files.switch(0)?;
                Ok(engine)
            }
        }
    }

    /// Creates an empty engine beside the current one; a start ignores it before [`Home::switch`].
    pub(super) fn prepare(&self) -> StoreResult<Box<dyn Engine>> {
        match self {
            Home::Memory => Ok(Box::new(MemoryEngine::default())),
            Home::Files(files) => files.prepare(),
        }
    }

    /// Makes the prepared engine current; it is synced and has reached this stamp.
    pub(super) fn switch(&self, reached: Stamp) -> StoreResult<()> {
        match self {
            Home::Memory => Ok(()),
            Home::Files(files) => files.switch(reached.tick.ticks()),
        }
    }

    /// Returns disk and directory; `None` in memory.
    pub(super) fn files(&self) -> Option<(&Arc<dyn Disk>, &Path)> {
        match self {
            Home::Memory => None,
            Home::Files(files) => Some((&files.disk, &files.dir)),
        }
    }

    /// Removes engine directories that are not current.
    pub(super) fn remove_others(&self) -> StoreResult<()> {
        match self {
            Home::Memory => Ok(()),
            Home::Files(files) => Ok(files.remove_others()?),
        }
    }

    /// Records a stamp that the engine has durably reached.
    pub(super) fn note(&self, reached: Stamp) -> StoreResult<()> {
        match self {
            Home::Memory => Ok(()),
            Home::Files(files) => Ok(files.note(reached.tick.ticks())?),
        }
    }

    /// Fails when the files were removed, moved or replaced since they were opened.
    pub(super) fn check_is_there(&self) -> StoreResult<()> {
        match self {
            Home::Memory => Ok(()),
            Home::Files(files) => files.watch.check_is_there(),
        }
    }

    /// Refuses a write without room; see [`Watch::admit`].
    pub(super) fn admit(&self, need: u64, promised: u64, purpose: Purpose) -> StoreResult<()> {
        match self {
            Home::Memory => Ok(()),
            Home::Files(files) => files.watch.admit(need, promised, purpose),
        }
    }

    /// Returns whether writes that add data are refused.
    pub(super) fn is_full(&self, promised: u64) -> bool {
        matches!(self, Home::Files(files) if files.watch.is_full(promised))
    }

    /// Returns why there is no room for writes; `None` when there is.
    pub(super) fn look(&self, promised: u64) -> Option<String> {
        match self {
            Home::Memory => None,
            Home::Files(files) => files.watch.look(promised),
        }
    }

    /// Returns the free bytes of the file system; `None` when the system does not report them.
    pub(super) fn available(&self) -> Option<u64> {
        match self {
            Home::Memory => None,
            Home::Files(files) => files.watch.available(),
        }
    }

    /// Returns the name of a copy of an engine directory that this or an earlier start found
    /// damaged.
    pub(super) fn damaged_copy(&self) -> Option<&str> {
        match self {
            Home::Memory => None,
            Home::Files(files) => files.copy.as_deref(),
        }
    }

    /// Releases the directory for another process.
    pub(super) fn close(&self) {
        if let Home::Files(files) = self {
            files.watch.end();
            files.lock.lock().take();
        }
    }
}

/// An engine alone, as a view.
pub(super) struct Bare<'a>(pub(super) &'a dyn Engine);

impl View for Bare<'_> {
    fn get(&self, key: &[u8]) -> StoreResult<Option<Bytes>> {
        self.0.get(key)
    }

    fn scan(&self, from: &[u8], to: &[u8], visit: &mut Visit<'_>) -> StoreResult<()> {
        self.0.scan(from, to, visit)
    }
}
