//! State shared by the executors of one worker.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use smalt_protocol::Timestamp;
use smalt_sleeve::port::CallContext;
use tokio::sync::{Mutex as Turns, Notify, OnceCell};
use tokio::time::Instant;

use crate::accounts::Accounts;
use crate::budget::{Spending, Spent};
use crate::calls::{Calls, lock};
use crate::config::SweeperConfig;
use crate::decide::Policy;
use crate::entropy::Entropy;
use crate::error::SweepError;
use crate::monitor::Gauges;
use crate::report::Report;

/// This machine's clock, used only to measure its skew; no decision depends on it (DS15).
pub type WallClock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// Clock difference above which a warning is logged (D4).
const SKEW_WARN_S: u64 = 60;
/// Clock difference above which the worker stops with an error (D4).
const SKEW_MAX_S: u64 = 600;
/// Maximum length of a page id in a client request id (Gridwich G6: 1 KiB), with room for the
/// fields around it.
const PAGE_ID_CHARS_MAX: usize = 800;

/// Returns the difference of two clocks in whole seconds. Fractions are ignored because the service
/// reports whole seconds.
fn skew_s(wall: Timestamp, server_time: Timestamp) -> u64 {
    wall.since(server_time)
        .max(server_time.since(wall))
        .as_secs()
}

/// A container that is created once, by the first task that needs it.
pub(crate) type Made = Arc<OnceCell<()>>;

/// The policy, which may be replaced during a run.
pub(crate) type PolicyCell = Arc<Mutex<Arc<Policy>>>;

pub(crate) struct Core {
    pub(crate) config: SweeperConfig,
    pub(crate) accounts: Accounts,
    pub(crate) calls: Calls,
    pub(crate) entropy: Entropy,
    pub(crate) worker: String,
    pub(crate) lease_id: String,
    pub(crate) stop: Stop,
    pub(crate) report: Mutex<Report>,
    /// Destination containers by account. One call creates each, and all tasks that need it wait
    /// for that call (DS20).
    pub(crate) made: Mutex<BTreeMap<(String, String), Made>>,
    /// Held while fetching the key that signs source URLs.
    pub(crate) signing: Turns<()>,
    pub(crate) wall_clock: Option<WallClock>,
    /// Measurements for [`Monitor`](crate::Monitor).
    pub(crate) gauges: Mutex<Gauges>,
    pub(crate) began: Instant,
    /// Known charged calls of the fleet on this day.
    pub(crate) spending: Mutex<Spending>,
    /// Whether the document's containers were found to match the configuration.
    pub(crate) agreed: AtomicBool,
    policy: PolicyCell,
    clock: Mutex<Option<(Timestamp, Instant)>>,
    skew_is_told: AtomicBool,
}

impl Core {
    pub(crate) fn new(
        config: SweeperConfig,
        accounts: Accounts,
        seed: u64,
        wall_clock: Option<WallClock>,
        stop: Stop,
        policy: PolicyCell,
    ) -> Self {
        let entropy = Entropy::new(seed);
        let lease_id = entropy.guid();
        let worker = config.worker_id.clone();
        let worker = worker.unwrap_or_else(|| format!("w-{lease_id}"));
        Core {
            calls: Calls::new(config.rate_per_s, config.retries),
            report: Mutex::new(Report::new(&worker)),
            made: Mutex::default(),
            signing: Turns::default(),
            clock: Mutex::new(None),
            skew_is_told: AtomicBool::new(false),
            gauges: Mutex::default(),
            spending: Mutex::default(),
            began: Instant::now(),
            agreed: AtomicBool::new(false),
            policy,
            config,
            accounts,
            entropy,
            worker,
            lease_id,
            stop,
            wall_clock,
        }
    }

    /// Returns the current policy. A page claimed under an earlier one is finished under that one.
    pub(crate) fn policy(&self) -> Arc<Policy> {
        Arc::clone(&lock(&self.policy))
    }

    /// Updates the clock from the service's time in a response about the state document.
    pub(crate) fn observe(&self, server_time: Timestamp) -> Result<(), SweepError> {
        *lock(&self.clock) = Some((server_time, Instant::now()));
        let Some(wall) = self.wall_clock.as_ref().map(|clock| clock()) else {
            return Ok(());
        };
        let skew_s = skew_s(wall, server_time);
        if skew_s > SKEW_MAX_S && !self.config.trust_service_clock {
            return Err(SweepError::ClockSkew(skew_s));
        }
        if skew_s > SKEW_WARN_S && !self.skew_is_told.swap(true, Ordering::Relaxed) {
            tracing::warn!(skew_s, "clock skew; using the service's time");
        }
        Ok(())
    }

    /// Returns the service's time: the last observed one plus the time measured by tokio's clock
    /// since.
    pub(crate) fn now(&self) -> Timestamp {
        match *lock(&self.clock) {
            Some((observed, at)) => observed.plus(at.elapsed()),
            None => Timestamp::MIN,
        }
    }

    /// Returns how far a trusted clock of the service is ahead of this machine's.
    pub(crate) fn ahead(&self) -> Duration {
        let trusted = self.wall_clock.as_ref();
        let trusted = trusted.filter(|_| self.config.trust_service_clock);
        trusted.map_or(Duration::ZERO, |clock| self.now().since(clock()))
    }

    /// Returns the day's charged calls of all workers, as far as this one knows.
    pub(crate) fn spent_today(&self) -> Spent {
        lock(&self.spending).today(self.now(), self.calls.charged())
    }

    /// Returns whether `next` further calls would exceed the day's budget.
    pub(crate) fn exceeds_budget(&self, next: u64) -> bool {
        let budget = self.config.budget;
        budget.is_some_and(|budget| budget.is_exceeded(self.spent_today().calls, next))
    }

    /// Returns the context of a call: worker and page. All calls of a sweeper are muted (G8).
    pub(crate) fn context(&self, page: &str) -> CallContext {
        let page: String = page.chars().take(PAGE_ID_CHARS_MAX / 4).collect();
        let worker: String = self.worker.chars().take(40).collect();
        CallContext {
            client_request_id: serde_json::json!({ "worker": worker, "page": page }).to_string(),
            muted: true,
        }
    }
}

/// Signals a worker to stop, without lost wake-ups. Waiters wake in the order in which they began
/// to wait. A `watch` channel wakes them in random order, but a seed must reproduce a run.
#[derive(Clone, Default)]
pub(crate) struct Stop(Arc<StopState>);

#[derive(Default)]
struct StopState {
    is_set: AtomicBool,
    set: Notify,
}

impl Stop {
    pub(crate) fn set(&self) {
        self.0.is_set.store(true, Ordering::SeqCst);
        self.0.set.notify_waiters();
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.is_set.load(Ordering::SeqCst)
    }

    /// Sleeps for `span`, or until the stop.
    pub(crate) async fn sleep(&self, span: Duration) {
        let mut told = pin!(self.0.set.notified());
        // From here on, no stop is missed.
        told.as_mut().enable();
        if self.is_set() {
            return;
        }
        tokio::select! {
            biased;
            () = told => {}
            () = tokio::time::sleep(span) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_of_a_second_are_ignored() {
        let service = Timestamp::from_unix_s(1_800_000_000);
        let ahead = service.plus(Duration::from_millis(600_900));
        assert_eq!(skew_s(ahead, service), SKEW_MAX_S);
        assert_eq!(skew_s(service, ahead), SKEW_MAX_S);
        assert_eq!(skew_s(service.plus_s(601), service), SKEW_MAX_S + 1);
        assert_eq!(skew_s(service, service), 0);
    }
}
