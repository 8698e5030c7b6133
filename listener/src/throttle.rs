//! Waits for the token buckets of a queue and of its account.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use smalt_protocol::Timestamp;
use smalt_worker::budget::Budget;
use tokio::sync::Mutex as Gate;
use tokio::time::Instant;

use crate::rules::bucket::Bucket;
use crate::rules::budget::{Afforded, Refused, Spending, Today};

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

/// The request budget of one account, and what its requests may cost in a day. Clones share both:
/// give one to all listeners on the account.
#[derive(Clone)]
pub struct AccountLimit {
    throttle: Arc<Throttle>,
    spending: Arc<Mutex<Spending>>,
    /// The queue that was throttled last, and when.
    last: Arc<Mutex<Option<(String, Instant)>>>,
}

impl AccountLimit {
    /// So many requests per second.
    pub fn new(per_second: u32) -> Self {
        AccountLimit {
            throttle: Arc::new(Throttle::new(per_second)),
            spending: Arc::new(Mutex::new(Spending::new(None))),
            last: Arc::default(),
        }
    }

    /// With a budget of money for a day: when it is spent, no message is taken until the next day
    /// (UTC, by the service's clock). What is in hand is settled all the same. What clones made
    /// before have spent does not count.
    #[must_use]
    pub fn with_budget(self, budget: Budget) -> Self {
        AccountLimit {
            spending: Arc::new(Mutex::new(Spending::new(Some(budget)))),
            ..self
        }
    }

    /// How much of the day's budget is spent; `None` without one.
    pub fn today(&self) -> Option<Today> {
        self.spending().today(self.throttle.now())
    }

    /// Whether nothing more is taken today.
    pub fn is_spent(&self) -> bool {
        self.today().is_some_and(|today| today.is_spent())
    }

    /// Waits until a request may be sent that is made beside the listeners', and counts it.
    pub async fn request(&self) {
        self.take(Priority::Fetch).await;
    }

    /// Waits for a token, and counts the request.
    pub(crate) async fn take(&self, priority: Priority) {
        self.token(priority).await;
        self.spending().count(self.throttle.now());
    }

    /// Waits for a token, for a get that is counted already.
    pub(crate) async fn token(&self, priority: Priority) {
        self.throttle.take(priority).await;
    }

    /// Counts a get, if the day's money suffices for it and so many deletes.
    pub(crate) fn afford_get(&self, in_hand: u64) -> Result<Afforded, Refused> {
        self.spending().get(in_hand, self.throttle.now())
    }

    /// Takes in the service's time.
    pub(crate) fn told(&self, server_time: Timestamp) {
        self.spending().told(server_time, self.throttle.now());
    }

    fn spending(&self) -> MutexGuard<'_, Spending> {
        self.spending.lock().unwrap_or_else(PoisonError::into_inner)
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

/// While both wait, one request in so many is a fetch: a get brings up to 32 messages, so a few
/// keep the slots filled, and those that wait for their deletes lose no time to speak of.
const FETCH_SHARE: u32 = 16;

/// A bucket that can be waited for: in order of arrival, each priority by itself. Only the first of
/// each looks at the bucket, so thousands may wait.
pub(crate) struct Throttle {
    start: Instant,
    state: Mutex<State>,
    settle: Gate<()>,
    fetch: Gate<()>,
}

struct State {
    bucket: Bucket,
    settling: usize,
    fetching: usize,
    /// Requests that went before a fetch that waited.
    overtaken: u32,
    taken: u64,
}

impl State {
    /// How many go before one of this priority.
    fn ahead(&self, priority: Priority) -> usize {
        let fetch_is_due = self.fetching > 0 && self.overtaken + 1 >= FETCH_SHARE;
        match priority {
            Priority::Settle => usize::from(fetch_is_due),
            Priority::Fetch => usize::from(self.settling > 0 && !fetch_is_due),
        }
    }

    fn take(&mut self, priority: Priority) {
        self.taken += 1;
        self.overtaken = match priority {
            Priority::Settle if self.fetching > 0 => self.overtaken + 1,
            _ => 0,
        };
    }
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
                fetching: 0,
                overtaken: 0,
                taken: 0,
            }),
            settle: Gate::new(()),
            fetch: Gate::new(()),
        }
    }

    /// The time since it was made.
    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// Waits for a token.
    pub(crate) async fn take(&self, priority: Priority) {
        let _queued = Queued::new(self, priority);
        let gate = match priority {
            Priority::Settle => &self.settle,
            Priority::Fetch => &self.fetch,
        };
        let _first = gate.lock().await;
        loop {
            let wait = {
                let mut state = self.state();
                let ahead = state.ahead(priority);
                match state.bucket.take(self.now(), ahead) {
                    Ok(()) => {
                        state.take(priority);
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
        self.state().bucket.throttled(self.now());
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

/// Counts one who waits, until it is dropped.
struct Queued<'a> {
    throttle: &'a Throttle,
    priority: Priority,
}

impl<'a> Queued<'a> {
    fn new(throttle: &'a Throttle, priority: Priority) -> Self {
        *Self::count(&mut throttle.state(), priority) += 1;
        Queued { throttle, priority }
    }

    fn count(state: &mut State, priority: Priority) -> &mut usize {
        match priority {
            Priority::Settle => &mut state.settling,
            Priority::Fetch => &mut state.fetching,
        }
    }
}

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        *Self::count(&mut self.throttle.state(), self.priority) -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// LS9: who settles goes first, in the order of arrival; yet gets are not starved.
    #[tokio::test(start_paused = true)]
    async fn settling_goes_first_and_fetching_is_not_starved() {
        let throttle = Arc::new(Throttle::new(10));
        throttle.take(Priority::Fetch).await;
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut waiting = tokio::task::JoinSet::new();
        let kinds = [Priority::Fetch; 2]
            .into_iter()
            .chain([Priority::Settle; 40]);
        for (number, priority) in kinds.enumerate() {
            let (throttle, order) = (Arc::clone(&throttle), Arc::clone(&order));
            waiting.spawn(async move {
                throttle.take(priority).await;
                order.lock().unwrap().push(number);
            });
        }
        waiting.join_all().await;
        let order = order.lock().unwrap().clone();
        let place = |number| order.iter().position(|n| *n == number).unwrap();
        assert_eq!((place(0), place(1)), (15, 31), "{order:?}");
        let settled: Vec<_> = order.iter().filter(|n| **n >= 2).collect();
        assert!(settled.is_sorted(), "{order:?}");
        assert_eq!(throttle.taken(), 43);
    }
}
