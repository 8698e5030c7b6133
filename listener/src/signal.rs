//! A value that many tasks watch, waking them in the order in which they began to wait.
//!
//! `tokio::sync::watch` spreads its waiters over several lists at random, so that two runs of one
//! seed would differ.

use std::sync::PoisonError;

use tokio::sync::Notify;

use crate::sync::Mutex;

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

/// Under the model checker shuttle:
/// `cargo test -p smalt-listener --features shuttle --lib kernels`.
#[cfg(all(test, feature = "shuttle"))]
mod kernels {
    use std::sync::Arc;

    use shuttle::future::block_on;
    use shuttle::{check_pct, check_random, thread};

    use super::*;

    /// Schedules for each property; the wrong variant is found in some tens.
    const SCHEDULES: usize = 2_000;

    /// Two wait for a value that a third one sets, in two steps: both wake.
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
    fn nobody_misses_a_change() {
        let right = || both_wake(|signal| block_on(signal.wait_for(|count| count >= 2)));
        check_random(right, SCHEDULES);
        check_pct(right, SCHEDULES, 3);
    }

    /// Wrong: who looks first and gets in line afterwards sleeps through a change in between.
    #[test]
    fn a_look_before_the_line_is_found() {
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
