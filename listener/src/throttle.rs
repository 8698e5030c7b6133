//! Waits for the token buckets of a queue and of its account.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use smalt_protocol::Timestamp;
use smalt_worker::budget::Budget;
use tokio::sync::Mutex as Gate;
use tokio::time::Instant;

use crate::rules::bucket::Bucket;
use crate::rules::budget::{Afforded, Refused, Spending, Today};

/// The priority of a request: keeping and settling messages goes before receiving more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Priority {
    /// Renewals, deletes, poison copies.
    Settle,
    /// Gets and depth samples.
    Fetch,
}

/// The service's target for requests per second of one account (scalability targets of Queue
/// Storage: 20,000 messages per second).
pub const ACCOUNT_RATE_PER_S: u32 = 20_000;
/// If several queues are throttled within this time, the account is.
const TOGETHER: Duration = Duration::from_secs(1);

/// The limits of one account: requests per second, and the cost of a day's requests. Clones share
/// both; pass one to all listeners on the account.
#[derive(Clone)]
pub struct AccountLimit {
    throttle: Arc<Throttle>,
    spending: Arc<Mutex<Spending>>,
    /// The queue that was throttled last, and when.
    last: Arc<Mutex<Option<(String, Instant)>>>,
}

impl AccountLimit {
    /// Creates a limit of `per_second` requests per second.
    pub fn new(per_second: u32) -> Self {
        AccountLimit {
            throttle: Arc::new(Throttle::new(per_second)),
            spending: Arc::new(Mutex::new(Spending::new(None))),
            last: Arc::default(),
        }
    }

    /// Adds a daily budget: when it is spent, no message is received until the next day (UTC, by
    /// the service's clock). Messages in hand are still settled. Requests of earlier clones do not
    /// count.
    #[must_use]
    pub fn with_budget(self, budget: Budget) -> Self {
        AccountLimit {
            spending: Arc::new(Mutex::new(Spending::new(Some(budget)))),
            ..self
        }
    }

    /// Returns the state of the day's budget; `None` without one.
    pub fn today(&self) -> Option<Today> {
        self.spending().today(self.throttle.now())
    }

    /// Returns whether no more messages are received today.
    pub fn is_spent(&self) -> bool {
        self.today().is_some_and(|today| today.is_spent())
    }

    /// Waits until a request besides the listeners' own may be sent, and counts it.
    pub async fn request(&self) {
        self.take(Priority::Fetch).await;
    }

    pub(crate) async fn take(&self, priority: Priority) {
        self.token(priority).await;
        self.spending().count(self.throttle.now());
    }

    /// Waits for a token, for a get that is already counted.
    pub(crate) async fn token(&self, priority: Priority) {
        self.throttle.take(priority).await;
    }

    /// Counts a get if the daily budget covers it and `in_hand` deletes.
    pub(crate) fn afford_get(&self, in_hand: u64) -> Result<Afforded, Refused> {
        self.spending().get(in_hand, self.throttle.now())
    }

    pub(crate) fn told(&self, server_time: Timestamp) {
        self.spending().told(server_time, self.throttle.now());
    }

    fn spending(&self) -> MutexGuard<'_, Spending> {
        self.spending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that a queue was throttled. The answer does not say whether the queue's or the
    /// account's limit was reached: if two queues are throttled at about the same time, it is the
    /// account's.
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

    /// Returns the requests per second that are currently allowed.
    pub fn rate_per_s(&self) -> f64 {
        self.throttle.rate_per_s()
    }

    /// Returns the number of requests so far, of all listeners that share the limit.
    pub fn requests(&self) -> u64 {
        self.throttle.taken()
    }
}

/// While both priorities wait, one request in this many is a fetch. A get returns up to 32
/// messages, so few gets keep the slots filled, and the waiting deletes are hardly delayed.
const FETCH_SHARE: u32 = 16;

/// A token bucket with two queues of waiting tasks, one per priority, each in order of arrival.
/// Only the first of each queue checks the bucket, so thousands may wait.
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
    /// Requests that overtook the waiting fetch.
    overtaken: u32,
    taken: u64,
}

impl State {
    /// Returns how many requests go before one of this priority.
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

    fn now(&self) -> Duration {
        self.start.elapsed()
    }

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

    pub(crate) fn throttled(&self) {
        self.state().bucket.throttled(self.now());
    }

    /// Returns the requests per second that are currently allowed.
    pub(crate) fn rate_per_s(&self) -> f64 {
        self.state().bucket.rate_per_s()
    }

    pub(crate) fn taken(&self) -> u64 {
        self.state().taken
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts a waiting request until it is dropped.
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
    use proptest::prelude::*;

    use super::*;

    /// Returns the order in which waiting requests get their tokens; the gets came first.
    async fn order_of(fetches: usize, settles: usize) -> Vec<usize> {
        let throttle = Arc::new(Throttle::new(10));
        throttle.take(Priority::Fetch).await;
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut waiting = tokio::task::JoinSet::new();
        for number in 0..fetches + settles {
            let priority = match number < fetches {
                true => Priority::Fetch,
                false => Priority::Settle,
            };
            let (throttle, order) = (Arc::clone(&throttle), Arc::clone(&order));
            waiting.spawn(async move {
                throttle.take(priority).await;
                order.lock().unwrap().push(number);
            });
        }
        waiting.join_all().await;
        order.lock().unwrap().clone()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        /// LS9: settling goes first, in order of arrival, but gets are not starved.
        #[test]
        fn settling_goes_first_and_fetching_is_not_starved(
            fetches in 1_usize..5, settles in 0_usize..70,
        ) {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_time()
                .start_paused(true)
                .build();
            let order = runtime.unwrap().block_on(order_of(fetches, settles));
            let share = FETCH_SHARE as usize;
            for fetch in 0..fetches {
                let place = order.iter().position(|number| *number == fetch);
                let wanted = (share * (fetch + 1) - 1).min(settles + fetch);
                prop_assert_eq!(place, Some(wanted), "{:?}", order);
            }
            let settled: Vec<_> = order.iter().filter(|number| **number >= fetches).collect();
            prop_assert!(settled.is_sorted(), "{:?}", order);
        }
    }
}
