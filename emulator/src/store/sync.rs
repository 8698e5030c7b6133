//! Locks, channels and threads of the committer and its readers.
//!
//! With the feature `shuttle` they are those of the model checker of that name, which runs the same
//! code in many orders of its threads (`kernels`). That store cannot serve: only tests turn the
//! feature on.

#[cfg(not(feature = "shuttle"))]
pub(super) use parking_lot::{Mutex, RwLock};
#[cfg(not(feature = "shuttle"))]
pub(super) use std::{sync::mpsc, thread};

#[cfg(feature = "shuttle")]
pub(super) use checked::{Mutex, RwLock};
#[cfg(feature = "shuttle")]
pub(super) use shuttle::{sync::mpsc, thread};

/// Whether the model checker watches: then a store in memory has a committer of its own as well,
/// and hides what is not synced, so that what serves on disk is what is checked.
pub(super) const IS_CHECKED: bool = cfg!(feature = "shuttle");

#[cfg(feature = "shuttle")]
mod checked {
    use std::sync::PoisonError;

    use shuttle::sync::{MutexGuard, RwLockReadGuard, RwLockWriteGuard};

    /// A lock that is not poisoned by a panic.
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

    /// The same for readers and writers.
    #[derive(Debug, Default)]
    pub(in super::super) struct RwLock<T>(shuttle::sync::RwLock<T>);

    impl<T> RwLock<T> {
        pub(in super::super) fn new(value: T) -> Self {
            RwLock(shuttle::sync::RwLock::new(value))
        }

        pub(in super::super) fn read(&self) -> RwLockReadGuard<'_, T> {
            self.0.read().unwrap_or_else(PoisonError::into_inner)
        }

        pub(in super::super) fn write(&self) -> RwLockWriteGuard<'_, T> {
            self.0.write().unwrap_or_else(PoisonError::into_inner)
        }
    }
}
