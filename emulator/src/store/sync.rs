//! Locks, atomics, channels and threads of the committer, its readers and the segments.
//!
//! With the feature `shuttle` they are those of the model checker of that name, which runs the same
//! code in many thread schedules (`kernels`). Such a store cannot serve: only tests enable the
//! feature.

#[cfg(not(feature = "shuttle"))]
pub(super) use parking_lot::{Mutex, RwLock};
#[cfg(not(feature = "shuttle"))]
pub(super) use std::{
    sync::{atomic, mpsc},
    thread,
};

#[cfg(feature = "shuttle")]
pub(super) use checked::{Mutex, RwLock};
#[cfg(feature = "shuttle")]
pub(super) use shuttle::{
    sync::{atomic, mpsc},
    thread,
};

/// Whether the model checker runs the store. Then a store in memory also has a committer thread and
/// hides unsynced writes, so that the checked code is the code that serves on disk.
pub(super) const IS_CHECKED: bool = cfg!(feature = "shuttle");

#[cfg(feature = "shuttle")]
mod checked {
    use std::sync::PoisonError;

    use shuttle::sync::{MutexGuard, RwLockReadGuard, RwLockWriteGuard};

    /// A lock without poisoning.
    #[derive(Debug, Default)]
    pub(in super::super) struct Mutex<T>(shuttle::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(in super::super) fn new(value: T) -> Self {
            Mutex(shuttle::sync::Mutex::new(value))
        }

        pub(in super::super) fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner)
        }
    }

    /// A reader-writer lock without poisoning.
    #[derive(Debug, Default)]
    pub(in super::super) struct RwLock<T>(shuttle::sync::RwLock<T>);

    impl<T> RwLock<T> {
        pub(in super::super) fn new(value: T) -> Self {
            RwLock(shuttle::sync::RwLock::new(value))
        }

        pub(in super::super) fn read(&self) -> RwLockReadGuard<'_, T> {
            self.0.read().unwrap_or_else(PoisonError::into_inner)
        }

        /// The model checker's readers never wait for a waiting writer.
        pub(in super::super) fn read_recursive(&self) -> RwLockReadGuard<'_, T> {
            self.read()
        }

        pub(in super::super) fn write(&self) -> RwLockWriteGuard<'_, T> {
            self.0.write().unwrap_or_else(PoisonError::into_inner)
        }
    }
}
