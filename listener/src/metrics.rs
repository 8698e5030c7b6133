//! The counts of a listener: an [`Observer`] that sums up what happens, and its output as
//! Prometheus text.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use smalt_sleeve::port::ErrorKind;
use smalt_worker::metrics::{Exposition, Kind};
use tokio::time::Instant;

use crate::observers::{Called, Expiring, Fetched, Idle, Observer, Renewed};
use crate::report::{Decision, Outcome, PoolStatus};
use crate::rules::budget::Today;
use crate::rules::cost::cost;

/// A listener is ready if a call succeeded within this many of its longest intervals (workers.md
/// D3).
const READY_INTERVALS: u32 = 3;

/// Sums of one listener since its start.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counts {
    /// Messages received.
    pub received: u64,
    /// Messages by outcome.
    pub outcomes: BTreeMap<Outcome, u64>,
    /// Renewals that succeeded, then those that failed.
    pub renewals: [u64; 2],
    /// Alarms about messages near their expiry.
    pub expiring: u64,
    /// Gets that returned no message.
    pub empty_gets: u64,
    /// Answers that throttled a request.
    pub throttled: u64,
    /// Requests by operation, which are billed.
    pub requests: BTreeMap<&'static str, u64>,
    /// Completed runs of handlers, and their total time.
    pub handled: (u64, Duration),
    /// Age of the oldest message of the last get; zero if it returned none.
    pub oldest_age: Duration,
    /// Newest pause of an idle task; zero while there is work.
    pub idle_delay: Duration,
}

impl Counts {
    /// Returns the number of requests of all operations.
    pub fn requests(&self) -> u64 {
        self.requests.values().sum()
    }

    /// Adds the requests that other components made for the same queue.
    pub fn add_requests(&mut self, others: &Counts) {
        for (operation, count) in &others.requests {
            *self.requests.entry(operation).or_insert(0) += count;
        }
        self.throttled += others.throttled;
    }

    fn of(&self, outcomes: &[Outcome]) -> u64 {
        let counts = outcomes.iter().filter_map(|o| self.outcomes.get(o));
        counts.sum()
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Contact {
    succeeded_at: Option<Instant>,
    last_error: Option<ErrorKind>,
}

/// Counts what a listener does; each listener needs its own. See
/// [`QueueListener::observed_by`](crate::QueueListener::observed_by).
#[derive(Debug)]
pub struct Metrics {
    queue: String,
    start: Instant,
    state: Mutex<(Counts, Contact)>,
}

impl Metrics {
    /// Creates zero counts for the listener of `queue`.
    pub fn new(queue: &str) -> Self {
        Metrics {
            queue: queue.to_owned(),
            start: Instant::now(),
            state: Mutex::default(),
        }
    }

    /// Returns the listener's queue.
    pub fn queue(&self) -> &str {
        &self.queue
    }

    /// Returns the time since the start.
    pub fn uptime(&self) -> Duration {
        self.start.elapsed()
    }

    /// Returns the sums so far.
    pub fn counts(&self) -> Counts {
        self.state().0.clone()
    }

    /// Returns the time since the last successful call; `None` before the first.
    pub fn since_success(&self) -> Option<Duration> {
        self.state().1.succeeded_at.map(|at| at.elapsed())
    }

    /// Returns the error of the last call; `None` if it succeeded.
    pub fn last_error(&self) -> Option<ErrorKind> {
        self.state().1.last_error
    }

    /// Returns whether the listener is ready, or why not. `interval` is its longest time without a
    /// call while idle; while handlers run, there may be no call to make.
    pub fn readiness(&self, interval: Duration, in_flight: u32) -> Result<(), String> {
        let Contact {
            succeeded_at,
            last_error,
        } = self.state().1;
        if last_error == Some(ErrorKind::Denied) {
            return Err("access denied".to_owned());
        }
        let why = last_error.map_or(String::new(), |error| format!("; last error: {error:?}"));
        let Some(at) = succeeded_at else {
            return Err(format!("storage has not answered yet{why}"));
        };
        let silent = at.elapsed();
        let is_busy = in_flight > 0 && last_error.is_none();
        if silent < interval * READY_INTERVALS || is_busy {
            return Ok(());
        }
        let seconds = silent.as_secs();
        Err(format!("storage has not answered for {seconds} s{why}"))
    }

    fn state(&self) -> MutexGuard<'_, (Counts, Contact)> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for Metrics {
    fn called(&self, call: &Called) {
        let (counts, contact) = &mut *self.state();
        *counts.requests.entry(call.operation).or_insert(0) += 1;
        counts.throttled += u64::from(call.throttled);
        // A refusal that concerns one message shows that storage can be reached.
        let answered = match call.error {
            None => true,
            Some(kind) => matches!(kind, ErrorKind::ReceiptMismatch | ErrorKind::Refused),
        };
        let is_get = call.operation == "Get Messages";
        if answered || (call.error == Some(ErrorKind::NotFound) && !is_get) {
            contact.succeeded_at = Some(Instant::now());
            contact.last_error = None;
        } else {
            contact.last_error = call.error;
        }
    }

    fn received(&self, fetched: &Fetched) {
        let (counts, _) = &mut *self.state();
        counts.received += u64::from(fetched.got);
        counts.empty_gets += u64::from(fetched.got == 0);
        counts.oldest_age = fetched.oldest_age.unwrap_or_default();
        if fetched.got > 0 {
            counts.idle_delay = Duration::ZERO;
        }
    }

    fn renewed(&self, renewal: &Renewed<'_>) {
        self.state().0.renewals[usize::from(!renewal.succeeded)] += 1;
    }

    fn expiring(&self, _alarm: &Expiring<'_>) {
        self.state().0.expiring += 1;
    }

    fn decided(&self, decision: &Decision) {
        let (counts, _) = &mut *self.state();
        *counts.outcomes.entry(decision.outcome).or_insert(0) += 1;
        if let Some(time) = decision.handler_time {
            counts.handled.0 += 1;
            counts.handled.1 += time;
        }
    }

    fn idle(&self, idle: &Idle) {
        self.state().0.idle_delay = idle.pause;
    }
}

/// A listener's counts and the current state of its pool.
#[derive(Clone, Debug)]
pub struct QueueMetrics<'a> {
    /// Name of the queue.
    pub queue: &'a str,
    /// Sums of the queue.
    pub counts: Counts,
    /// State of the pool; `None` for a queue of which only the requests are counted, such as a
    /// subscription or a partitioned queue's map.
    pub pool: Option<PoolStatus>,
}

impl QueueMetrics<'_> {
    fn pool(&self) -> PoolStatus {
        self.pool.unwrap_or_default()
    }

    /// Returns the pause of an idle task; zero without tasks, because a stopped task's pause is
    /// outdated.
    fn idle_delay(&self) -> Duration {
        match self.pool().tasks {
            0 => Duration::ZERO,
            _ => self.counts.idle_delay,
        }
    }
}

/// The text of the listeners' families, whose names are those in the user's guide.
struct Families<'a> {
    text: Exposition,
    looks: &'a [QueueMetrics<'a>],
}

/// A label in addition to the queue's, and the value.
type Sample<'a> = (Option<(&'static str, &'a str)>, f64);

impl Families<'_> {
    fn counter(&mut self, name: &str, help: &str, value: impl Fn(&QueueMetrics<'_>) -> f64) {
        self.family(name, Kind::Counter, help, |look| vec![(None, value(look))]);
    }

    fn gauge(&mut self, name: &str, help: &str, value: impl Fn(&QueueMetrics<'_>) -> f64) {
        self.family(name, Kind::Gauge, help, |look| vec![(None, value(look))]);
    }

    /// Adds a family. Listeners with a pool have every family; of other queues only the requests
    /// are counted.
    fn family(
        &mut self,
        name: &str,
        kind: Kind,
        help: &str,
        samples: impl for<'l> Fn(&'l QueueMetrics<'_>) -> Vec<Sample<'l>>,
    ) {
        let is_of_requests = ["listener_throttled", "listener_tx_total"].contains(&name);
        let mut family = self.text.family(name, kind, help);
        for look in self
            .looks
            .iter()
            .filter(|look| look.pool.is_some() || is_of_requests)
        {
            for (label, value) in samples(look) {
                let labels: Vec<_> = [("queue", look.queue)].into_iter().chain(label).collect();
                family.sample(&labels, value);
            }
        }
    }

    fn messages(&mut self) {
        self.counter("listener_received", "Messages received.", |l| {
            l.counts.received as f64
        });
        let help = "Messages by outcome.";
        self.family("listener_handled", Kind::Counter, help, |l| {
            let of = |o: &Outcome| (Some(("verdict", o.name())), l.counts.of(&[*o]) as f64);
            Outcome::ALL.iter().map(of).collect()
        });
        let help = "Messages whose lock was lost while their handler ran.";
        let lost = [Outcome::LostLock];
        self.counter("listener_lost_lock", help, |l| l.counts.of(&lost) as f64);
        let help = "Messages received again after they were finished.";
        let again = [Outcome::DuplicateDeleted, Outcome::DuplicateKept];
        self.counter("listener_duplicates_suppressed", help, |l| {
            l.counts.of(&again) as f64
        });
        let help = "Renewals of locks by result.";
        self.family("listener_renewals", Kind::Counter, help, |l| {
            let results = ["ok", "failed"].into_iter().zip(l.counts.renewals);
            results
                .map(|(name, count)| (Some(("result", name)), count as f64))
                .collect()
        });
        let help = "Messages put into the poison queue.";
        let poisoned = [Outcome::Poisoned, Outcome::PoisonedUnacked];
        self.counter("listener_poisoned", help, |l| l.counts.of(&poisoned) as f64);
        let help = "Alarms: messages about to expire unhandled.";
        self.counter("listener_expiring", help, |l| l.counts.expiring as f64);
        let help = "Total run time of handlers.";
        self.counter("listener_handler_s_sum", help, |l| {
            l.counts.handled.1.as_secs_f64()
        });
        let help = "Runs of handlers.";
        self.counter("listener_handler_s_count", help, |l| {
            l.counts.handled.0 as f64
        });
    }

    fn pool(&mut self) {
        let help = "Age of the oldest message of the last get.";
        self.gauge("listener_oldest_age_s", help, |l| {
            l.counts.oldest_age.as_secs_f64()
        });
        let help = "Estimated visible messages.";
        self.gauge("listener_visible_estimate", help, |l| {
            l.pool().backlog as f64
        });
        let help = "Messages being handled.";
        self.gauge("listener_inflight", help, |l| f64::from(l.pool().in_flight));
        let help = "Running dequeue tasks.";
        self.gauge("listener_tasks", help, |l| f64::from(l.pool().tasks));
        let help = "Dequeue tasks that the current load needs; the others rest.";
        self.gauge("listener_desired_tasks", help, |l| {
            f64::from(l.pool().desired)
        });
        let help = "Dequeue tasks ever started.";
        self.counter("listener_tasks_started", help, |l| {
            l.pool().tasks_started as f64
        });
        let help = "Newest pause of an idle task; 0 while there is work.";
        self.gauge("listener_idle_delay_s", help, |l| {
            l.idle_delay().as_secs_f64()
        });
    }

    fn requests(&mut self) {
        let help = "Gets that returned no message.";
        self.counter("listener_empty_gets", help, |l| l.counts.empty_gets as f64);
        let help = "Answers that throttled a request.";
        self.counter("listener_throttled", help, |l| l.counts.throttled as f64);
        let help = "Billed requests to storage by operation.";
        self.family("listener_tx_total", Kind::Counter, help, |l| {
            let requests = l.counts.requests.iter();
            requests
                .map(|(op, count)| (Some(("op", *op)), *count as f64))
                .collect()
        });
    }
}

/// Returns the metrics of the listeners of one process in the Prometheus text format. A price per
/// 10,000 requests adds the cost of the requests; a budget adds the cost of the day and the limit.
pub fn prometheus(
    looks: &[QueueMetrics<'_>],
    uptime: Duration,
    price_per_10k: Option<f64>,
    today: Option<Today>,
) -> String {
    let text = Exposition::default();
    let mut families = Families { text, looks };
    families.messages();
    families.pool();
    families.requests();
    let mut text = families.text;
    if let Some(price) = price_per_10k {
        let help = "Cost of the requests so far, at the configured price.";
        let mut family = text.family("listener_cost_estimate", Kind::Counter, help);
        for look in looks {
            let cost = cost(look.counts.requests() as f64, price);
            family.sample(&[("queue", look.queue)], cost);
        }
    }
    let (help, uptime) = ("Time since the start.", uptime.as_secs_f64());
    text.value("listener_uptime_s", Kind::Gauge, help, uptime);
    if let Some(today) = today {
        of_budget(&mut text, today);
    }
    text.finish()
}

/// Adds the daily budget of the process.
fn of_budget(text: &mut Exposition, today: Today) {
    let mut gauge = |name, help, value| text.value(name, Kind::Gauge, help, value);
    let help = "Cost of the requests of the day (UTC).";
    gauge("listener_cost_today", help, today.cost());
    let most = today.budget.max_cost_per_day;
    gauge("listener_max_cost_per_day", "Limit of that cost.", most);
    let help = "1 while the daily budget is spent and no message is received.";
    let spent = f64::from(u8::from(today.is_spent()));
    gauge("listener_budget_spent", help, spent);
}

#[cfg(test)]
#[path = "metrics_tests.rs"]
mod tests;
