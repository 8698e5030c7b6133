//! Named snapshots of an emulator, and forks of it.

use serde::Serialize;

use super::about::About;
use crate::core::Core;
use crate::emulator::Emulator;
use crate::store::{SnapshotError, StoreError, StoreResult};

/// Name of the snapshot that is taken after the start, with the seed applied.
pub const START: &str = "start";

/// A snapshot in a listing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SavedState {
    /// The name that it was saved under.
    pub name: String,
    /// The emulator's time of the snapshot, in ISO 8601; `None` if it is damaged.
    pub now: Option<String>,
    /// Why the snapshot cannot be loaded; `None` if it can.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub damage: Option<String>,
}

impl Emulator {
    /// Saves the whole state under a name, replacing an earlier snapshot: records, payloads,
    /// account settings, a moved clock. Blocks until done.
    ///
    /// ```
    /// # use smalt::Emulator;
    /// let emulator = Emulator::builder().open()?;
    /// emulator.save("empty")?;
    /// // ... a test ...
    /// emulator.load("empty")?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Fails if the name is invalid or the disk fails.
    pub fn save(&self, name: &str) -> Result<(), SnapshotError> {
        save(self.core(), name)
    }

    /// Restores a saved state and discards everything written since. Blocks until done.
    ///
    /// # Errors
    /// Fails if there is no snapshot of this name, it is damaged, or the store cannot write.
    pub fn load(&self, name: &str) -> Result<(), SnapshotError> {
        load(self.core(), name)
    }

    /// Lists the snapshots by name.
    pub fn snapshots(&self) -> Vec<SavedState> {
        list(self.core())
    }

    /// Deletes a snapshot.
    ///
    /// # Errors
    /// Fails if there is no snapshot of this name or the disk fails.
    pub fn delete_snapshot(&self, name: &str) -> Result<(), SnapshotError> {
        self.core().store.snapshots().delete(name)
    }

    /// Creates another emulator, in memory, that starts with this one's state, settings and ids.
    /// Later changes in one do not affect the other. The fork has its own clock, which starts at
    /// the same time. Forking an emulator in memory takes no time; the first write afterwards
    /// copies the records.
    ///
    /// # Errors
    /// Fails if the state cannot be read.
    pub fn fork(&self) -> StoreResult<Emulator> {
        let core = self.core();
        let clock = core.clock.fork();
        let store = core.store.fork(clock.clone())?;
        Ok(Emulator::of(core.fork(clock, store)))
    }

    /// Saves the state after the start as [`START`] where that is cheap, in memory or with an empty
    /// store, or if there is a seed.
    ///
    /// # Errors
    /// Fails if the disk fails.
    pub(crate) fn keep_start(&self, seeded: bool) -> Result<(), SnapshotError> {
        let store = &self.core().store;
        if seeded || store.is_in_memory() || store.is_fresh() {
            return self.save(START);
        }
        match store.snapshots().delete(START) {
            Err(SnapshotError::NotFound(_)) => Ok(()),
            deleted => deleted,
        }
    }
}

/// Implements [`Emulator::save`].
///
/// # Errors
/// As [`Emulator::save`].
pub fn save(core: &Core, name: &str) -> Result<(), SnapshotError> {
    let about = serde_json::to_string(&About::of(core)).map_err(damaged)?;
    core.store.snapshots().save(name, &about)
}

/// Implements [`Emulator::load`].
///
/// # Errors
/// As [`Emulator::load`].
pub fn load(core: &Core, name: &str) -> Result<(), SnapshotError> {
    let about = core.store.snapshots().load(name)?;
    let about: About = serde_json::from_str(&about).map_err(damaged)?;
    about.restore(core);
    Ok(())
}

/// Implements [`Emulator::snapshots`].
pub fn list(core: &Core) -> Vec<SavedState> {
    let listed = core.store.snapshots().list().into_iter();
    let shown = listed.map(|snapshot| {
        let about = snapshot.about.and_then(|about| {
            serde_json::from_str::<About>(&about).map_err(|error| error.to_string())
        });
        let (now, damage) = match about {
            Ok(about) => (Some(about.now), None),
            Err(cause) => (None, Some(cause)),
        };
        SavedState {
            name: snapshot.name,
            now,
            damage,
        }
    });
    shown.collect()
}

fn damaged(error: serde_json::Error) -> StoreError {
    StoreError::Corrupt(error.to_string())
}
