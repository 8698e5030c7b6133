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

/// The latest answers of storage.
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
pub struct Look<'a> {
    /// Name of the queue.
    pub queue: &'a str,
    /// Sums of the queue.
    pub counts: Counts,
    /// State of the pool; `None` for a queue of which only the requests are counted, such as a
    /// subscription or a partitioned queue's map.
    pub pool: Option<PoolStatus>,
}

impl Look<'_> {
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

/// Families that exist for every source of requests.
const OF_REQUESTS: [&str; 2] = ["listener_throttled", "listener_tx_total"];

/// A label in addition to the queue's, and the value.
type Sample<'a> = (Option<(&'static str, &'a str)>, f64);

/// A family of series: name, kind, help text, and the samples of one listener.
type Family = (
    &'static str,
    Kind,
    &'static str,
    for<'a> fn(&'a Look<'_>) -> Vec<Sample<'a>>,
);

fn one(value: f64) -> Vec<Sample<'static>> {
    vec![(None, value)]
}

/// All families; their names are those in the user's guide.
const FAMILIES: &[Family] = &[
    (
        "listener_received",
        Kind::Counter,
        "Messages received.",
        |l| one(l.counts.received as f64),
    ),
    (
        "listener_handled",
        Kind::Counter,
        "Messages by outcome.",
        |l| {
            let outcomes = Outcome::ALL.iter();
            let all = outcomes.map(|o| (Some(("verdict", o.name())), l.counts.of(&[*o]) as f64));
            all.collect()
        },
    ),
    (
        "listener_lost_lock",
        Kind::Counter,
        "Messages whose lock was lost while their handler ran.",
        |l| one(l.counts.of(&[Outcome::LostLock]) as f64),
    ),
    (
        "listener_duplicates_suppressed",
        Kind::Counter,
        "Messages received again after they were finished.",
        |l| {
            one(l
                .counts
                .of(&[Outcome::DuplicateDeleted, Outcome::DuplicateKept]) as f64)
        },
    ),
    (
        "listener_renewals",
        Kind::Counter,
        "Renewals of locks by result.",
        |l| {
            let [succeeded, failed] = l.counts.renewals;
            let result = |name| Some(("result", name));
            vec![
                (result("ok"), succeeded as f64),
                (result("failed"), failed as f64),
            ]
        },
    ),
    (
        "listener_poisoned",
        Kind::Counter,
        "Messages put into the poison queue.",
        |l| one(l.counts.of(&[Outcome::Poisoned, Outcome::PoisonedUnacked]) as f64),
    ),
    (
        "listener_expiring",
        Kind::Counter,
        "Alarms: messages about to expire unhandled.",
        |l| one(l.counts.expiring as f64),
    ),
    (
        "listener_handler_s_sum",
        Kind::Counter,
        "Total run time of handlers.",
        |l| one(l.counts.handled.1.as_secs_f64()),
    ),
    (
        "listener_handler_s_count",
        Kind::Counter,
        "Runs of handlers.",
        |l| one(l.counts.handled.0 as f64),
    ),
    (
        "listener_oldest_age_s",
        Kind::Gauge,
        "Age of the oldest message of the last get.",
        |l| one(l.counts.oldest_age.as_secs_f64()),
    ),
    (
        "listener_visible_estimate",
        Kind::Gauge,
        "Estimated visible messages.",
        |l| one(l.pool().backlog as f64),
    ),
    (
        "listener_inflight",
        Kind::Gauge,
        "Messages being handled.",
        |l| one(f64::from(l.pool().in_flight)),
    ),
    (
        "listener_tasks",
        Kind::Gauge,
        "Running dequeue tasks.",
        |l| one(f64::from(l.pool().tasks)),
    ),
    (
        "listener_desired_tasks",
        Kind::Gauge,
        "Dequeue tasks that the current load needs; the others rest.",
        |l| one(f64::from(l.pool().desired)),
    ),
    (
        "listener_tasks_started",
        Kind::Counter,
        "Dequeue tasks ever started.",
        |l| one(l.pool().tasks_started as f64),
    ),
    (
        "listener_idle_delay_s",
        Kind::Gauge,
        "Newest pause of an idle task; 0 while there is work.",
        |l| one(l.idle_delay().as_secs_f64()),
    ),
    (
        "listener_empty_gets",
        Kind::Counter,
        "Gets that returned no message.",
        |l| one(l.counts.empty_gets as f64),
    ),
    (
        "listener_throttled",
        Kind::Counter,
        "Answers that throttled a request.",
        |l| one(l.counts.throttled as f64),
    ),
    (
        "listener_tx_total",
        Kind::Counter,
        "Billed requests to storage by operation.",
        |l| {
            let requests = l.counts.requests.iter();
            let all = requests.map(|(op, count)| (Some(("op", *op)), *count as f64));
            all.collect()
        },
    ),
];

/// Returns the metrics of the listeners of one process in the Prometheus text format. A price per
/// 10,000 requests adds the cost of the requests; a budget adds the cost of the day and the limit.
pub fn prometheus(
    looks: &[Look<'_>],
    uptime: Duration,
    price_per_10k: Option<f64>,
    today: Option<Today>,
) -> String {
    let mut text = Exposition::default();
    for (name, kind, help, series) in FAMILIES {
        let mut family = text.family(name, *kind, help);
        let has = |look: &&Look<'_>| look.pool.is_some() || OF_REQUESTS.contains(name);
        for look in looks.iter().filter(has) {
            for (label, value) in series(look) {
                let labels: Vec<_> = [("queue", look.queue)].into_iter().chain(label).collect();
                family.sample(&labels, value);
            }
        }
    }
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
    for (name, help, value) in [
        (
            "listener_cost_today",
            "Cost of the requests of the day (UTC).",
            today.cost(),
        ),
        (
            "listener_max_cost_per_day",
            "Limit of that cost.",
            today.budget.max_cost_per_day,
        ),
        (
            "listener_budget_spent",
            "1 while the daily budget is spent and no message is received.",
            f64::from(u8::from(today.is_spent())),
        ),
    ] {
        text.value(name, Kind::Gauge, help, value);
    }
}

#[cfg(test)]
#[path = "metrics_tests.rs"]
mod tests;
