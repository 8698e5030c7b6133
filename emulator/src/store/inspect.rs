//! Reads a store without changing it, as far as possible, for `smalt check` and `smalt salvage`.
//!
//! The metadata engine writes when it is opened, so a copy of it is opened; segments are read in
//! place.

use std::path::Path;
use std::sync::Arc;

use super::error::{OpenError, StoreError, StoreResult};
use super::extents::{Carved, Extents, carve};
use super::handle::Store;
use super::home::{Bare, ENGINE_PREFIX, FORMAT, Format, Found, Home};
use super::keys;
use super::sled_engine::{Damage, SledEngine};
use super::view::View as _;
use super::{Mode, StoreConfig, payload, stamp};
use crate::clock::Clock;
use crate::disk::{Disk, ReadingDisk, copy_dir, read_small};

/// Returns whether a copy leaves out a file.
type Skip<'a> = &'a dyn Fn(&Path) -> bool;

/// The readable parts of a store, and what is wrong with it.
pub struct Inspected {
    /// The readable part; `None` when the metadata, and with it every name, is unreadable.
    pub store: Option<Store>,
    /// Descriptions of the damage.
    pub findings: Vec<String>,
    /// Observations that are not damage.
    pub notes: Vec<String>,
    disk: Arc<dyn Disk>,
    dir: std::path::PathBuf,
    /// Keeps others from opening the store.
    _lock: Box<dyn std::any::Any + Send + Sync>,
}

impl Inspected {
    /// Opens the readable parts of the store in `dir`. Copies the engine to `scratch`.
    ///
    /// # Errors
    /// When there is no store, it is in use, or its files cannot be read.
    pub fn open(
        dir: &Path,
        scratch: &Path,
        disk: &Arc<dyn Disk>,
        clock: Clock,
    ) -> Result<Self, OpenError> {
        let reading: Arc<dyn Disk> = Arc::new(ReadingDisk::new(Arc::clone(disk)));
        let cannot = |error: &dyn std::fmt::Display| OpenError::Io {
            path: dir.to_owned(),
            cause: error.to_string(),
        };
        let lock = reading.lock(&dir.join("lock")).map_err(|e| cannot(&e))?;
        let lock = lock.ok_or_else(|| OpenError::Locked {
            dir: dir.to_owned(),
        })?;
        let mut inspected = Inspected {
            store: None,
            findings: Vec::new(),
            notes: Vec::new(),
            disk: reading,
            dir: dir.to_owned(),
            _lock: lock,
        };
        let found = Found::look(disk.as_ref(), dir).map_err(|e| cannot(&e))?;
        let format = inspected.format().map_err(|e| cannot(&e))?;
        if format.is_none() && found.is_empty() && inspected.findings.is_empty() {
            return Err(cannot(&"there is no store"));
        }
        if format.is_none() && inspected.findings.is_empty() {
            let text = format!("`format` is missing; the directory has {found}");
            inspected.findings.push(text);
        }
        for copy in &found.copies {
            let text = format!("{copy} is a copy of files that an earlier start found damaged");
            inspected.notes.push(text);
        }
        let last = found.engines.last().copied();
        let Some(index) = format.map(|format| format.index).or(last) else {
            let text = format!("there is no engine directory; the directory has {found}");
            inspected.findings.push(text);
            return Ok(inspected);
        };
        let engine = inspected.engine(index, scratch, disk.as_ref());
        if let Some(engine) = engine.map_err(|e| cannot(&e))? {
            let store = inspected.read_with(engine, format, clock);
            inspected.store = store.map_err(|e| cannot(&e))?;
        }
        Ok(inspected)
    }

    /// Passes the payloads that their checksums alone identify to `take`, piece by piece. A store
    /// without metadata has nothing else.
    ///
    /// # Errors
    /// That of `take`, or the disk's.
    pub fn carve(
        &self,
        take: &mut dyn FnMut(Carved<'_>) -> std::io::Result<()>,
    ) -> std::io::Result<()> {
        let extents = self.dir.join("extents");
        let mut segments = self.disk.list(&extents)?;
        segments.sort_by(|a, b| a.name.cmp(&b.name));
        for entry in segments {
            carve(self.disk.as_ref(), &extents, &entry.name, take)?;
        }
        Ok(())
    }

    fn format(&mut self) -> std::io::Result<Option<Format>> {
        let Some(text) = read_small(self.disk.as_ref(), &self.dir.join("format"))? else {
            return Ok(None);
        };
        let format = Format::parse(&String::from_utf8_lossy(&text));
        match &format {
            None => self.findings.push("`format` is unreadable".to_owned()),
            Some(format) if format.version > FORMAT => {
                let found = format.version;
                let text = format!("`format` is {found}, this release reads up to {FORMAT}");
                self.findings.push(text);
                return Ok(None);
            }
            Some(_) => {}
        }
        Ok(format)
    }

    /// Opens a copy of the engine: with all files, or else without the expendable ones.
    fn engine(
        &mut self,
        index: u64,
        scratch: &Path,
        disk: &dyn Disk,
    ) -> std::io::Result<Option<SledEngine>> {
        let name = format!("{ENGINE_PREFIX}{index}");
        let from = self.dir.join(&name);
        if !self.disk.list(&from)?.iter().any(|file| file.name == "db") {
            self.findings.push(format!("`{name}/db` is missing"));
            return Ok(None);
        }
        let expendable = |file: &Path| SledEngine::is_expendable(self.disk.as_ref(), file);
        let tries: [(&str, Skip<'_>); 2] = [("whole", &|_| false), ("part", &expendable)];
        let mut findings = Vec::new();
        let mut opened = None;
        for (copy, skip) in tries {
            let copy = scratch.join(copy);
            copy_dir(disk, &from, &copy, skip)?;
            let mut damage = Vec::new();
            match open_copy(disk, &copy, &mut damage) {
                Ok(engine) => {
                    let told = damage.iter().map(|what| format!("{name}: {what}"));
                    self.findings.extend(told);
                    opened = Some(engine);
                    break;
                }
                Err(error) => findings.push(format!("{name}: {error}")),
            }
        }
        if opened.is_some() && !findings.is_empty() {
            let text = format!("{name} opens only without its snapshot and settings");
            findings.push(text);
        }
        findings.dedup();
        self.findings.extend(findings);
        Ok(opened)
    }

    /// Creates a store of the copied engine and the segments.
    fn read_with(
        &mut self,
        engine: SledEngine,
        format: Option<Format>,
        clock: Clock,
    ) -> StoreResult<Option<Store>> {
        let view = Bare(&engine);
        if let Some(format) = format {
            let reached = stamp::read(&view)?.tick.ticks();
            if reached < format.tick {
                let lost = format!(
                    "the last commits are lost: the engine is at tick {reached}, \
                     but `format` records {}",
                    format.tick
                );
                self.findings.push(lost);
            }
        }
        let needed = match payload::segments_needed(&view) {
            Ok(needed) => needed,
            Err(error) => {
                self.findings.push(error.to_string());
                Default::default()
            }
        };
        let extents = self.dir.join("extents");
        let segment_bytes = StoreConfig::durable(&self.dir, clock.clone()).segment_bytes;
        let extents = Extents::found(
            Arc::clone(&self.disk),
            extents,
            segment_bytes,
            true,
            &needed,
        )?;
        for number in extents.lost(&needed) {
            let text = format!("segment {number} is missing or too short");
            self.findings.push(text);
        }
        Store::to_read(
            Mode::Durable,
            clock,
            Home::Memory,
            Box::new(engine),
            extents,
        )
        .map(Some)
    }
}

fn open_copy(disk: &dyn Disk, copy: &Path, damage: &mut Vec<String>) -> StoreResult<SledEngine> {
    let cache_bytes = StoreConfig::memory(Clock::system()).cache_bytes;
    let engine = SledEngine::open(disk, copy, cache_bytes, 0, false, Damage::Tell(damage))?;
    match Bare(&engine).get(&keys::FORMAT)? {
        Some(found) if keys::numbers::<1>(&found)? <= [u64::from(FORMAT)] => Ok(engine),
        Some(_) => Err(StoreError::Corrupt("its format is too new".to_owned())),
        None => Err(StoreError::Corrupt("its records are lost".to_owned())),
    }
}
