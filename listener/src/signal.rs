//! A value that many tasks watch, waking them in the order in which they began to wait.
//!
//! `tokio::sync::watch` spreads its waiters over several lists at random, so that two runs of one
//! seed would differ.

use std::sync::{Mutex, PoisonError};

use tokio::sync::Notify;

/// A watched value.
#[derive(Debug)]
pub(crate) struct Signal<T> {
    value: Mutex<T>,
    changed: Notify,
}

impl<T: Copy> Signal<T> {
    pub(crate) fn new(value: T) -> Self {
        Signal {
            value: Mutex::new(value),
            changed: Notify::new(),
        }
    }

    pub(crate) fn get(&self) -> T {
        *self.value.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the value and wakes all who wait.
    pub(crate) fn modify(&self, change: impl FnOnce(T) -> T) {
        {
            let mut value = self.value.lock().unwrap_or_else(PoisonError::into_inner);
            *value = change(*value);
        }
        self.changed.notify_waiters();
    }

    /// Waits until the value is as wished; at once when it is already.
    pub(crate) async fn wait_for(&self, wished: impl Fn(T) -> bool) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // In line before the look, so that no change between look and wait is missed.
            changed.as_mut().enable();
            if wished(self.get()) {
                return;
            }
            changed.await;
        }
    }
}

/// Counts occurrences; whoever remembers a count can wait for the next one.
impl Signal<u64> {
    pub(crate) fn count(&self) {
        self.modify(|count| count.wrapping_add(1));
    }

    pub(crate) async fn beyond(&self, seen: u64) {
        self.wait_for(|count| count != seen).await;
    }
}
