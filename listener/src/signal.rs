//! A watched value that wakes its waiting tasks in the order in which they began to wait.
//!
//! `tokio::sync::watch` spreads its waiters over several lists at random, so that two runs with the
//! same seed would differ.

use std::sync::PoisonError;

use tokio::sync::Notify;

use crate::sync::Mutex;

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

    /// Changes the value and wakes all waiting tasks.
    pub(crate) fn modify(&self, change: impl FnOnce(T) -> T) {
        {
            let mut value = self.value.lock().unwrap_or_else(PoisonError::into_inner);
            *value = change(*value);
        }
        self.changed.notify_waiters();
    }

    /// Waits until the value satisfies `wished`; returns at once if it already does.
    pub(crate) async fn wait_for(&self, wished: impl Fn(T) -> bool) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // Registered before the check, so that no change between check and wait is missed.
            changed.as_mut().enable();
            if wished(self.get()) {
                return;
            }
            changed.await;
        }
    }
}

/// A counter of events; a task that remembers a count can wait for the next event.
impl Signal<u64> {
    pub(crate) fn count(&self) {
        self.modify(|count| count.wrapping_add(1));
    }

    pub(crate) async fn beyond(&self, seen: u64) {
        self.wait_for(|count| count != seen).await;
    }
}

/// Under the model checker shuttle:
/// `cargo test -p smalt-listener --features shuttle --lib kernels`.
#[cfg(all(test, feature = "shuttle"))]
mod kernels {
    use std::sync::Arc;

    use shuttle::future::block_on;
    use shuttle::{check_pct, check_random, thread};

    use super::*;

    /// Schedules per property; the wrong variant fails within some tens of them.
    const SCHEDULES: usize = 2_000;

    /// Two threads wait for a value that a third one sets in two steps; both must wake.
    fn both_wake(wait: fn(&Signal<u64>)) {
        let signal = Arc::new(Signal::new(0));
        let waiting = [(), ()].map(|()| {
            let signal = Arc::clone(&signal);
            thread::spawn(move || wait(&signal))
        });
        signal.count();
        signal.count();
        for thread in waiting {
            assert!(thread.join().is_ok(), "it wakes and ends");
        }
    }

    #[test]
    fn no_waiter_misses_a_change() {
        let right = || both_wake(|signal| block_on(signal.wait_for(|count| count >= 2)));
        check_random(right, SCHEDULES);
        check_pct(right, SCHEDULES, 3);
    }

    /// Wrong variant: a thread that checks before it registers misses a change in between.
    #[test]
    fn a_check_before_registration_is_detected() {
        let wrong = || {
            both_wake(|signal| {
                block_on(async {
                    while signal.get() < 2 {
                        thread::yield_now();
                        signal.changed.notified().await;
                    }
                });
            });
        };
        let told = std::panic::catch_unwind(|| check_random(wrong, SCHEDULES));
        assert!(told.is_err(), "the wrong variant was not found");
    }
}
