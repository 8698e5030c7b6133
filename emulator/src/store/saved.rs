//! Named snapshots of the whole state: images in memory or, if the store has a directory, in files.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::committer::{Built, Next};
use super::config::StoreConfig;
use super::engine::MemoryEngine;
use super::error::{StoreError, StoreResult};
use super::extents::Extents;
use super::handle::{Inner, Store};
use super::home::{Bare, Home};
use super::image::{self, Image};
use super::shared::Shared;
use super::stamp;
use super::successor::Successor;
use super::sync::Mutex;
use crate::clock::Clock;

const DIRECTORY: &str = "snapshots";
const SUFFIX: &str = ".snap";
/// Longest name; with the suffix it is a valid file name on every system.
const NAME_CHARS_MAX: usize = 64;

/// The reason why a snapshot cannot be saved, loaded or deleted.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The name is invalid.
    #[error(
        "invalid snapshot name {0:?}: use 1 to {NAME_CHARS_MAX} of a-z, 0-9, `-`, `_` and `.`, \
         and begin with a letter or digit"
    )]
    Name(String),
    /// No snapshot has this name.
    #[error("there is no snapshot {0:?}")]
    NotFound(String),
    /// The store cannot read or write.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A snapshot in a list.
#[derive(Debug)]
pub struct Snapshot {
    /// Name given when it was saved.
    pub name: String,
    /// The description given when it was saved, or why it cannot be loaded.
    pub about: Result<String, String>,
}

/// The images of a store.
#[derive(Default)]
pub(super) struct Saved {
    named: Mutex<BTreeMap<String, Result<Arc<Image>, String>>>,
    temporary: AtomicU64,
}

impl Store {
    /// Returns the snapshots of this store.
    pub fn snapshots(&self) -> Snapshots<'_> {
        Snapshots(&self.0)
    }

    /// Returns the current state, which can be read during later writes.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn image(&self) -> StoreResult<Image> {
        self.0.saved().image(self.0.shared())
    }

    /// Creates a store in memory with the state of this one and its own clock. It shares payloads
    /// with this store.
    ///
    /// # Errors
    /// When the state cannot be read.
    pub fn fork(&self, clock: Clock) -> StoreResult<Store> {
        let (records, segments) = self.0.shared().frozen()?;
        let extents = Extents::in_memory(u64::MAX);
        extents.replace(segments);
        let engine = Box::new(MemoryEngine::of(records));
        let config = StoreConfig::memory(clock);
        let opened = Self::start(&config, Home::Memory, engine, extents, Saved::default());
        opened.map_err(|error| StoreError::Io(error.to_string()))
    }
}

impl Saved {
    /// Finds the snapshots of a directory. Keeps and logs damaged ones.
    pub(super) fn open(home: &Home, extents: &Extents) -> StoreResult<Self> {
        let Some((disk, dir)) = home.files() else {
            return Ok(Self::default());
        };
        let dir = dir.join(DIRECTORY);
        let mut named = BTreeMap::new();
        for entry in disk.list(&dir)? {
            let path = dir.join(&entry.name);
            let Some(name) = entry.name.strip_suffix(SUFFIX) else {
                // A killed process left it incomplete.
                disk.remove(&path)?;
                continue;
            };
            let opened = Image::open(disk, &path, |number| extents.pin(number));
            let opened = opened.map(Arc::new).map_err(|error| error.to_string());
            if let Err(cause) = &opened {
                tracing::warn!(name, cause, "cannot load a snapshot");
            }
            named.insert(name.to_owned(), opened);
        }
        Ok(Saved {
            named: Mutex::new(named),
            temporary: AtomicU64::new(0),
        })
    }

    /// Returns an unnamed image of the current state.
    pub(super) fn image(&self, shared: &Shared) -> StoreResult<Image> {
        if shared.home.files().is_none() {
            let (records, segments) = shared.frozen()?;
            return Ok(Image::in_memory(String::new(), records, segments));
        }
        let number = self.temporary.fetch_add(1, Ordering::Relaxed);
        let path = directory(shared)?.join(format!("{number}.tmp"));
        Ok(write(shared, path, "")?.temporary())
    }
}

/// The snapshots of a store.
pub struct Snapshots<'a>(&'a Inner);

impl Snapshots<'_> {
    /// Returns every snapshot.
    pub fn list(&self) -> Vec<Snapshot> {
        let named = self.0.saved().named.lock();
        let listed = named.iter().map(|(name, image)| Snapshot {
            name: name.clone(),
            about: match image {
                Ok(image) => Ok(image.about().to_owned()),
                Err(cause) => Err(cause.clone()),
            },
        });
        listed.collect()
    }

    /// Saves the current state, and replaces a snapshot of the same name.
    ///
    /// # Errors
    /// An invalid name; when the disk fails.
    pub fn save(&self, name: &str, about: &str) -> Result<(), SnapshotError> {
        check(name)?;
        let shared = self.0.shared();
        let mut named = self.0.saved().named.lock();
        let image = match shared.home.files() {
            None => {
                let (records, segments) = shared.frozen()?;
                Image::in_memory(about.to_owned(), records, segments)
            }
            Some((disk, _)) => {
                let dir = directory(shared)?;
                let path = dir.join(format!("{name}{SUFFIX}"));
                let new = dir.join(format!("{name}.new"));
                let image = write(shared, new.clone(), about)?;
                disk.rename(&new, &path).map_err(StoreError::from)?;
                disk.sync_dir(&dir).map_err(StoreError::from)?;
                image.renamed(path)
            }
        };
        named.insert(name.to_owned(), Ok(Arc::new(image)));
        Ok(())
    }

    /// Replaces the current state with a saved one. Returns the description given when it was
    /// saved.
    ///
    /// # Errors
    /// When no snapshot has this name, it is damaged, or the store accepts no writes.
    pub fn load(&self, name: &str) -> Result<String, SnapshotError> {
        let image = self.get(name)?;
        let _alone = self.0.replacing().lock();
        let next = match image.shared() {
            Some((records, segments)) => {
                let engine = MemoryEngine::of(records);
                Built {
                    reached: stamp::read(&Bare(&engine))?,
                    engine: Box::new(engine),
                    segments,
                    held: Vec::new(),
                }
            }
            None => {
                let mut successor = Successor::new(self.0)?;
                successor.take(&image)?;
                successor.finish()?
            }
        };
        self.0.replace(Next::Built(next))?;
        Ok(image.about().to_owned())
    }

    /// Deletes a snapshot; the next maintenance frees its payloads.
    ///
    /// # Errors
    /// When no snapshot has this name, or the disk fails.
    pub fn delete(&self, name: &str) -> Result<(), SnapshotError> {
        check(name)?;
        let mut named = self.0.saved().named.lock();
        if !named.contains_key(name) {
            return Err(SnapshotError::NotFound(name.to_owned()));
        }
        if let Some((disk, dir)) = self.0.shared().home.files() {
            let dir = dir.join(DIRECTORY);
            let removed = disk.remove(&dir.join(format!("{name}{SUFFIX}")));
            removed
                .and_then(|()| disk.sync_dir(&dir))
                .map_err(StoreError::from)?;
        }
        named.remove(name);
        Ok(())
    }

    fn get(&self, name: &str) -> Result<Arc<Image>, SnapshotError> {
        check(name)?;
        match self.0.saved().named.lock().get(name) {
            Some(Ok(image)) => Ok(Arc::clone(image)),
            Some(Err(cause)) => Err(StoreError::Corrupt(cause.clone()).into()),
            None => Err(SnapshotError::NotFound(name.to_owned())),
        }
    }
}

/// Writes an image of the readers' state, after making its payloads durable.
fn write(shared: &Shared, path: PathBuf, about: &str) -> StoreResult<Image> {
    let (disk, _) = shared.home.files().ok_or(StoreError::Closed)?;
    let written = shared
        .read(|view| image::write(disk.as_ref(), &path, about, view))
        .and_then(|held| shared.extents.sync_all().map(|()| held));
    match written {
        // Holding the segments keeps maintenance from deleting them.
        Ok(_held) => Image::open(disk, &path, |number| shared.extents.pin(number)),
        Err(error) => {
            // Returns the cause; the next start removes a file that remains.
            let _ = disk.remove(&path);
            Err(error)
        }
    }
}

fn directory(shared: &Shared) -> StoreResult<PathBuf> {
    let (disk, dir) = shared.home.files().ok_or(StoreError::Closed)?;
    let dir = dir.join(DIRECTORY);
    disk.create_dir(&dir)?;
    Ok(dir)
}

fn check(name: &str) -> Result<(), SnapshotError> {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_name = name.len() <= NAME_CHARS_MAX
        && name.starts_with(is_plain)
        && name.chars().all(|c| is_plain(c) || "-_.".contains(c));
    match is_name {
        true => Ok(()),
        false => Err(SnapshotError::Name(name.to_owned())),
    }
}
