//! Waits for the token buckets of a queue and of its account.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

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

/// Requests per second of one account that the service aims at (scalability targets of Queue
/// Storage: 20,000 messages per second).
pub const ACCOUNT_RATE_PER_S: u32 = 20_000;
/// Queues that are throttled within this time are throttled by their account.
const TOGETHER: Duration = Duration::from_secs(1);

/// The request budget of one account. Clones share it: give one to all listeners on the account.
#[derive(Clone)]
pub struct AccountLimit {
    throttle: Arc<Throttle>,
    /// The queue that was throttled last, and when.
    last: Arc<Mutex<Option<(String, Instant)>>>,
}

impl AccountLimit {
    /// So many requests per second.
    pub fn new(per_second: u32) -> Self {
        AccountLimit {
            throttle: Arc::new(Throttle::new(per_second)),
            last: Arc::default(),
        }
    }

    /// Waits for a token.
    pub(crate) async fn take(&self, priority: Priority) {
        if !planted("account-limit-ignored") {
            self.throttle.take(priority).await;
        }
    }

    /// A queue was throttled. The answer does not say whether by its own limit or by its account's:
    /// when two queues are at about the same time, it is the account's.
    pub(crate) fn throttled(&self, queue: &str) {
        let now = Instant::now();
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let other = last.as_ref().is_some_and(|(before, at)| {
            before != queue && now.saturating_duration_since(*at) < TOGETHER
        });
        *last = Some((queue.to_owned(), now));
        drop(last);
        if other {
            self.throttle.throttled();
        }
    }

    /// Requests per second that are allowed at the moment.
    pub fn rate_per_s(&self) -> f64 {
        self.throttle.rate_per_s()
    }

    /// Requests so far, of all listeners that share it.
    pub fn requests(&self) -> u64 {
        self.throttle.taken()
    }
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
