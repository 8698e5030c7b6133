//! What a listener has done, counted in one place: an [`Observer`] that sums up what it is told,
//! and shows it as Prometheus' text or for a person.

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

/// A call must have succeeded within so many of the longest intervals, or the listener is not ready
/// (workers.md D3).
const READY_INTERVALS: u32 = 3;

/// Sums of one listener since its start.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counts {
    /// Messages received.
    pub received: u64,
    /// Messages by what became of them.
    pub outcomes: BTreeMap<Outcome, u64>,
    /// Renewals that succeeded, and that failed.
    pub renewals: [u64; 2],
    /// Alarms about messages near their expiry.
    pub expiring: u64,
    /// Gets that brought nothing.
    pub empty_gets: u64,
    /// Answers that said: too often.
    pub throttled: u64,
    /// Requests by operation: what is billed.
    pub requests: BTreeMap<&'static str, u64>,
    /// Handlers that came to an end, and their time together.
    pub handled: (u64, Duration),
    /// Age of the oldest message of the last get; zero when it brought none.
    pub oldest_age: Duration,
    /// The newest pause of an idle task; zero while there is work.
    pub idle_delay: Duration,
}

impl Counts {
    /// Requests of all kinds.
    pub fn requests(&self) -> u64 {
        self.requests.values().sum()
    }

    /// Adds the requests that others make for the same queue.
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

/// How storage has answered lately.
#[derive(Clone, Copy, Debug, Default)]
struct Contact {
    succeeded_at: Option<Instant>,
    last_error: Option<ErrorKind>,
}

/// Counts what a listener does. One for each listener; see
/// [`QueueListener::observed_by`](crate::QueueListener::observed_by).
#[derive(Debug)]
pub struct Metrics {
    queue: String,
    start: Instant,
    state: Mutex<(Counts, Contact)>,
}

impl Metrics {
    /// Nothing counted yet, for the listener of `queue`.
    pub fn new(queue: &str) -> Self {
        Metrics {
            queue: queue.to_owned(),
            start: Instant::now(),
            state: Mutex::default(),
        }
    }

    /// Queue of the listener.
    pub fn queue(&self) -> &str {
        &self.queue
    }

    /// Time since the start.
    pub fn uptime(&self) -> Duration {
        self.start.elapsed()
    }

    /// The sums so far.
    pub fn counts(&self) -> Counts {
        self.state().0.clone()
    }

    /// Time since storage answered well for the last time.
    pub fn since_success(&self) -> Option<Duration> {
        self.state().1.succeeded_at.map(|at| at.elapsed())
    }

    /// How the last call failed, if it did.
    pub fn last_error(&self) -> Option<ErrorKind> {
        self.state().1.last_error
    }

    /// Whether the listener does its work, or why not. `interval` is the longest that it goes
    /// without a call while nothing is to do; while handlers run it may have none to make.
    pub fn readiness(&self, interval: Duration, in_flight: u32) -> Result<(), String> {
        let Contact {
            succeeded_at,
            last_error,
        } = self.state().1;
        if last_error == Some(ErrorKind::Denied) {
            return Err("access denied".to_owned());
        }
        let why = last_error.map_or(String::new(), |error| format!("; the last call: {error:?}"));
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
        // A refusal that is about one message is an answer: storage can be reached.
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

/// A listener's counts and what its pool is doing now.
#[derive(Clone, Debug)]
pub struct Look<'a> {
    /// Queue.
    pub queue: &'a str,
    /// Sums.
    pub counts: Counts,
    /// Pool; none for a queue of which only the requests are counted, such as a trigger queue or
    /// a map of partitions.
    pub pool: Option<PoolStatus>,
}

impl Look<'_> {
    fn pool(&self) -> PoolStatus {
        self.pool.unwrap_or_default()
    }

    /// A pause of a task that has left since says nothing.
    fn idle_delay(&self) -> Duration {
        match self.pool().tasks {
            0 => Duration::ZERO,
            _ => self.counts.idle_delay,
        }
    }
}

/// Families about requests, whoever makes them.
const OF_REQUESTS: [&str; 2] = ["listener_throttled", "listener_tx_total"];

/// A label beside the queue's, and the value.
type Sample<'a> = (Option<(&'static str, &'a str)>, f64);

/// One family of series: its name, kind, meaning, and the series of one listener.
type Family = (
    &'static str,
    Kind,
    &'static str,
    for<'a> fn(&'a Look<'_>) -> Vec<Sample<'a>>,
);

fn one(value: f64) -> Vec<Sample<'static>> {
    vec![(None, value)]
}

/// All families; the names are those of the user's guide.
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
        "Messages by what became of them.",
        |l| {
            let outcomes = Outcome::ALL.iter();
            let all = outcomes.map(|o| (Some(("verdict", o.name())), l.counts.of(&[*o]) as f64));
            all.collect()
        },
    ),
    (
        "listener_lost_lock",
        Kind::Counter,
        "Messages whose lock was lost under their handler.",
        |l| one(l.counts.of(&[Outcome::LostLock]) as f64),
    ),
    (
        "listener_duplicates_suppressed",
        Kind::Counter,
        "Messages that came again after they were finished.",
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
        "Time of handlers, together.",
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
        "Messages believed to wait.",
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
        "Dequeue tasks that run.",
        |l| one(f64::from(l.pool().tasks)),
    ),
    (
        "listener_desired_tasks",
        Kind::Gauge,
        "Dequeue tasks that the load of the moment needs; the others rest.",
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
        "Gets that brought nothing.",
        |l| one(l.counts.empty_gets as f64),
    ),
    (
        "listener_throttled",
        Kind::Counter,
        "Answers that said: too often.",
        |l| one(l.counts.throttled as f64),
    ),
    (
        "listener_tx_total",
        Kind::Counter,
        "Requests to storage by operation: what is billed.",
        |l| {
            let requests = l.counts.requests.iter();
            let all = requests.map(|(op, count)| (Some(("op", *op)), *count as f64));
            all.collect()
        },
    ),
];

/// The metrics of several listeners of one process, in the text format of Prometheus. With a price
/// per 10,000 requests, also what the requests have cost; with a budget, what is left of the day's.
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

/// The day's budget, which is the process's.
fn of_budget(text: &mut Exposition, today: Today) {
    for (name, help, value) in [
        (
            "listener_cost_today",
            "Cost of the requests of the day (UTC).",
            today.cost(),
        ),
        (
            "listener_max_cost_per_day",
            "Most that they may cost.",
            today.budget.max_cost_per_day,
        ),
        (
            "listener_budget_spent",
            "1 while the day's money is spent and no message is taken.",
            f64::from(u8::from(today.is_spent())),
        ),
    ] {
        text.value(name, Kind::Gauge, help, value);
    }
}

#[cfg(test)]
#[path = "metrics_tests.rs"]
mod tests;
