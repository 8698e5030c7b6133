//! Waits for the token bucket of a queue.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

use crate::planted::planted;
use crate::rules::bucket::Bucket;

/// Who waits: what keeps or settles a message goes before what fetches more of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Priority {
    /// Renewals, deletes, poison copies.
    Settle,
    /// Gets and depth samples.
    Fetch,
}

/// A bucket that can be waited for.
pub(crate) struct Throttle {
    start: Instant,
    state: Mutex<State>,
}

struct State {
    bucket: Bucket,
    settling: usize,
    taken: u64,
}

impl Throttle {
    pub(crate) fn new(per_second: u32) -> Self {
        let start = Instant::now();
        let bucket = Bucket::new(per_second, start.elapsed());
        Throttle {
            start,
            state: Mutex::new(State {
                bucket,
                settling: 0,
                taken: 0,
            }),
        }
    }

    /// Waits for a token.
    pub(crate) async fn take(&self, priority: Priority) {
        let _queued = (priority == Priority::Settle).then(|| Queued::new(self));
        loop {
            let wait = {
                let mut state = self.state();
                let ahead = match priority {
                    Priority::Settle => 0,
                    Priority::Fetch => state.settling,
                };
                match state.bucket.take(self.start.elapsed(), ahead) {
                    Err(_) if planted("bucket-ignored") => return,
                    Ok(()) => {
                        state.taken += 1;
                        return;
                    }
                    Err(wait) => wait,
                }
            };
            tokio::time::sleep(wait).await;
        }
    }

    /// The service answered 503.
    pub(crate) fn throttled(&self) {
        self.state().bucket.throttled(self.start.elapsed());
    }

    /// Requests per second that are allowed at the moment.
    pub(crate) fn rate_per_s(&self) -> f64 {
        self.state().bucket.rate_per_s()
    }

    /// Requests so far.
    pub(crate) fn taken(&self) -> u64 {
        self.state().taken
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts one who waits with priority, until it is dropped.
struct Queued<'a>(&'a Throttle);

impl<'a> Queued<'a> {
    fn new(throttle: &'a Throttle) -> Self {
        throttle.state().settling += 1;
        Queued(throttle)
    }
}

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        self.0.state().settling -= 1;
    }
}
