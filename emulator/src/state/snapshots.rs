//! Named snapshots of an emulator, and forks of it.

use serde::Serialize;

use super::about::About;
use crate::core::Core;
use crate::emulator::Emulator;
use crate::store::{SnapshotError, StoreError, StoreResult};

/// The snapshot of the state after the start: seeds are in it.
pub const START: &str = "start";

/// A snapshot as a list shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SavedState {
    /// Its name.
    pub name: String,
    /// The emulator's time when it was saved, in ISO 8601; absent where it is damaged.
    pub now: Option<String>,
    /// Why it cannot be loaded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub damage: Option<String>,
}

impl Emulator {
    /// Saves the whole state under a name, in place of an earlier one of this name: records,
    /// payloads, settings of accounts, a clock that was moved. It blocks meanwhile.
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
    /// An invalid name; when the disk fails.
    pub fn save(&self, name: &str) -> Result<(), SnapshotError> {
        save(self.core(), name)
    }

    /// Goes on with a saved state. What was written since is gone. It blocks meanwhile.
    ///
    /// # Errors
    /// When there is no snapshot of this name, it is damaged, or the store takes no writes.
    pub fn load(&self, name: &str) -> Result<(), SnapshotError> {
        load(self.core(), name)
    }

    /// Every snapshot, by name.
    pub fn snapshots(&self) -> Vec<SavedState> {
        list(self.core())
    }

    /// Deletes a snapshot.
    ///
    /// # Errors
    /// When there is none of this name, or the disk fails.
    pub fn delete_snapshot(&self, name: &str) -> Result<(), SnapshotError> {
        self.core().store.snapshots().delete(name)
    }

    /// Another emulator, in memory, that begins with the state of this one: neither sees what the
    /// other does from now on. It has the same settings and ids, and a clock of its own that shows
    /// the same time. In memory this takes no time; the first write afterwards copies the records.
    ///
    /// # Errors
    /// When the state cannot be read.
    pub fn fork(&self) -> StoreResult<Emulator> {
        let core = self.core();
        let clock = core.clock.fork();
        let store = core.store.fork(clock.clone())?;
        Ok(Emulator::of(core.fork(clock, store)))
    }

    /// Keeps the state after the start, for [`START`], where that costs little: in memory, when the
    /// store is empty, or when a seed asks for it.
    ///
    /// # Errors
    /// When the disk fails.
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

/// As [`Emulator::save`].
///
/// # Errors
/// As [`Emulator::save`].
pub fn save(core: &Core, name: &str) -> Result<(), SnapshotError> {
    let about = serde_json::to_string(&About::of(core)).map_err(damaged)?;
    core.store.snapshots().save(name, &about)
}

/// As [`Emulator::load`].
///
/// # Errors
/// As [`Emulator::load`].
pub fn load(core: &Core, name: &str) -> Result<(), SnapshotError> {
    let about = core.store.snapshots().load(name)?;
    let about: About = serde_json::from_str(&about).map_err(damaged)?;
    about.restore(core);
    Ok(())
}

/// As [`Emulator::snapshots`].
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
