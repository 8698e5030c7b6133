//! Status, readiness and metrics of a running sweeper.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::Serialize;
use smalt_protocol::Timestamp;
use smalt_worker::budget::cost;
use smalt_worker::face::Face;
use smalt_worker::metrics::{Exposition, Kind};
use tokio::time::Instant;

use crate::calls::{self, lock};
use crate::outcome::Class;
use crate::plan::Prices;
use crate::report::Report;
use crate::shared::Core;

/// A worker without an answered call for more than this many intervals is not ready.
const INTERVALS_SILENT_MAX: u32 = 3;

/// Current activity of a worker.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum Phase {
    /// The worker has not started its loop.
    #[default]
    Starting,
    /// The worker looks for a page to claim.
    Claiming,
    /// The worker processes a page.
    Working {
        /// Id of the page.
        page: String,
        /// Number of blobs in the page to remove.
        due: u64,
    },
    /// Other workers still process their pages.
    Waiting,
    /// No cycle is due.
    Idle {
        /// When the next cycle is due.
        until: String,
    },
    /// The state document is unreachable.
    OutOfReach {
        /// Error of the last attempt.
        error: String,
    },
    /// The worker has stopped.
    Stopped,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Timed {
    sum: Duration,
    count: u64,
}

impl Timed {
    pub(crate) fn add(&mut self, took: Duration) {
        self.sum += took;
        self.count += 1;
    }
}

#[derive(Debug, Default)]
pub(crate) struct Gauges {
    pub(crate) phase: Phase,
    since: Option<Instant>,
    pub(crate) cycle: u64,
    pub(crate) parked: usize,
    pub(crate) in_flight: usize,
    /// How long the longest-due blob of the last listing had been due.
    pub(crate) lag: Duration,
    pub(crate) cycles: u64,
    /// Containers of the cycle, and how many of them are done or parked.
    pub(crate) containers: usize,
    pub(crate) containers_done: usize,
    /// Blobs to remove in the pages that this worker claimed.
    pub(crate) due: u64,
    /// Duration of the cycles that this worker closed, from its first step in each.
    pub(crate) cycle_time: Timed,
    /// Time from requesting the lease to acquiring it.
    pub(crate) lease_wait: Timed,
}

impl Gauges {
    pub(crate) fn enter(&mut self, phase: Phase) {
        if self.phase != phase {
            self.phase = phase;
            self.since = Some(Instant::now());
        }
    }
}

/// A view of a running worker. Clones share the same worker.
#[derive(Clone, Default)]
pub struct Monitor(Arc<Mutex<Window>>);

#[derive(Default)]
struct Window {
    core: Option<Arc<Core>>,
    prices: Prices,
}

/// Progress of a worker. Containers count the whole fleet's cycle, blobs only this worker's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Number of the current cycle.
    pub cycle: u64,
    /// Containers in this cycle.
    pub containers: u64,
    /// Containers that are done or parked.
    pub containers_done: u64,
    /// Blobs in completed pages.
    pub seen: u64,
    /// Blobs to remove in the claimed pages.
    pub due: u64,
    /// Blobs that were removed.
    pub gone: u64,
    /// Blobs that should have been removed but were not.
    pub failed: u64,
}

/// A snapshot of the worker's state.
struct Snapshot {
    worker: String,
    report: Report,
    calls: BTreeMap<&'static str, u64>,
    phase: Phase,
    in_phase: Duration,
    cycle: u64,
    cycles: u64,
    parked: usize,
    in_flight: usize,
    lag: Duration,
    cycle_time: Timed,
    lease_wait: Timed,
    silent: Option<Duration>,
    uptime: Duration,
    now: Timestamp,
    interval: Duration,
}

impl Monitor {
    pub(crate) fn watch(&self, core: &Arc<Core>) {
        lock(&self.0).core = Some(Arc::clone(core));
    }

    /// Sets the prices for the cost metric.
    pub fn set_prices(&self, prices: Prices) {
        lock(&self.0).prices = prices;
    }

    fn look(&self) -> Option<Snapshot> {
        let core = lock(&self.0).core.clone()?;
        let report = lock(&core.report).clone();
        let gauges = lock(&core.gauges);
        let schedule = &core.config.schedule;
        Some(Snapshot {
            worker: core.worker.clone(),
            report,
            calls: core.calls.counts(),
            phase: gauges.phase.clone(),
            in_phase: gauges.since.map_or(Duration::ZERO, |since| since.elapsed()),
            cycle: gauges.cycle,
            cycles: gauges.cycles,
            parked: gauges.parked,
            in_flight: gauges.in_flight,
            lag: gauges.lag,
            cycle_time: gauges.cycle_time,
            lease_wait: gauges.lease_wait,
            silent: core.calls.since_success(),
            uptime: core.began.elapsed(),
            now: core.now(),
            interval: schedule.every + schedule.jitter,
        })
    }

    /// Returns the worker's progress; all zero before it has started.
    pub fn progress(&self) -> Progress {
        let Some(core) = lock(&self.0).core.clone() else {
            return Progress::default();
        };
        let counted = {
            let report = lock(&core.report);
            [Class::Done, Class::Kept, Class::Failed].map(|class| report.count_class(class))
        };
        let [gone, kept, failed] = counted;
        let gauges = lock(&core.gauges);
        Progress {
            cycle: gauges.cycle,
            containers: gauges.containers as u64,
            containers_done: gauges.containers_done as u64,
            seen: gone + kept + failed,
            due: gauges.due,
            gone,
            failed,
        }
    }
}

impl Face for Monitor {
    fn readiness(&self) -> Result<(), String> {
        let look = self.look().ok_or("not started")?;
        match (&look.phase, look.silent) {
            (Phase::OutOfReach { error }, _) => Err(error.clone()),
            (Phase::Stopped, _) => Err("stopped".to_owned()),
            (_, None) => Err("no call answered yet".to_owned()),
            (_, Some(silent)) if silent > look.interval * INTERVALS_SILENT_MAX => {
                Err(format!("no call answered for {} s", silent.as_secs()))
            }
            _ => Ok(()),
        }
    }

    fn status(&self) -> serde_json::Value {
        let Some(look) = self.look() else {
            return serde_json::json!({ "phase": Phase::Starting, "ready": false });
        };
        serde_json::json!({
            "worker": look.worker,
            "version": env!("CARGO_PKG_VERSION"),
            "uptime_s": look.uptime.as_secs_f64(),
            "service_time": (look.now != Timestamp::MIN).then(|| look.now.iso_s()),
            "phase": look.phase,
            "phase_s": look.in_phase.as_secs_f64(),
            "cycle": look.cycle,
            "cycles_seen_closed": look.cycles,
            "pages_in_flight": look.in_flight,
            "containers_parked": look.parked,
            "lag_s": look.lag.as_secs(),
            "last_answer_s_ago": look.silent.map(|silent| silent.as_secs_f64()),
            "ready": self.readiness().is_ok(),
            "containers": look.report.containers,
            "transactions": look.calls,
        })
    }

    fn metrics(&self) -> String {
        let mut text = Exposition::default();
        let prices = lock(&self.0).prices;
        if let Some(look) = self.look() {
            counters(&mut text, &look, prices);
            times(&mut text, &look);
            gauges(&mut text, &look, self.readiness().is_ok());
        }
        text.finish()
    }
}

fn counters(text: &mut Exposition, look: &Snapshot, prices: Prices) {
    let containers = &look.report.containers;
    let help = "Blobs processed, by outcome.";
    let mut blobs = text.family("sweeper_blobs_total", Kind::Counter, help);
    for (name, container) in containers {
        for (outcome, count) in &container.outcomes {
            let labels = [
                ("container", name.as_str()),
                ("outcome", &outcome.to_string()),
            ];
            blobs.sample(&labels, *count as f64);
        }
    }
    let help = "Bytes of removed blobs.";
    let mut bytes = text.family("sweeper_bytes_freed_total", Kind::Counter, help);
    for (name, container) in containers {
        bytes.sample(&[("container", name)], container.bytes_removed as f64);
    }
    let help = "Pages listed.";
    let mut pages = text.family("sweeper_list_pages_total", Kind::Counter, help);
    for (name, container) in containers {
        pages.sample(&[("container", name)], container.pages as f64);
    }
    let mut calls = text.family("sweeper_tx_total", Kind::Counter, "Storage calls.");
    for (op, count) in &look.calls {
        calls.sample(&[("op", op)], *count as f64);
    }
    let cost = cost(calls::charged(&look.calls), prices.per_10k_transactions);
    let help = "Estimated cost of the calls at the configured price.";
    text.value("sweeper_cost_estimate_total", Kind::Counter, help, cost);
    let help = "Cycles that this worker closed.";
    let cycles = look.cycles as f64;
    text.value("sweeper_cycles_total", Kind::Counter, help, cycles);
}

fn times(text: &mut Exposition, look: &Snapshot) {
    for (name, help, timed) in [
        (
            "sweeper_cycle_seconds",
            "Duration of the cycles that this worker closed.",
            look.cycle_time,
        ),
        (
            "sweeper_lease_wait_s",
            "Time spent waiting for the lease on the state document.",
            look.lease_wait,
        ),
    ] {
        let mut family = text.family(name, Kind::Summary, help);
        family.sum(timed.sum.as_secs_f64(), timed.count);
    }
}

fn gauges(text: &mut Exposition, look: &Snapshot, ready: bool) {
    let page_age = match look.phase {
        Phase::Working { .. } => look.in_phase.as_secs_f64(),
        _ => 0.0,
    };
    for (name, help, value) in [
        (
            "sweeper_ready",
            "1 if the worker is ready, else 0.",
            f64::from(u8::from(ready)),
        ),
        (
            "sweeper_cycle",
            "Number of the cycle that is running or due next.",
            look.cycle as f64,
        ),
        (
            "sweeper_inflight_pages",
            "Pages in progress, of all workers.",
            look.in_flight as f64,
        ),
        (
            "sweeper_parked_containers",
            "Containers that the cycle skips after failures.",
            look.parked as f64,
        ),
        (
            "sweeper_page_age_s",
            "Age of the page that this worker is processing.",
            page_age,
        ),
        (
            "sweeper_lag_s",
            "How long the longest-due blob of the last page has been due.",
            look.lag.as_secs_f64(),
        ),
        (
            "sweeper_uptime_s",
            "Time since the worker started.",
            look.uptime.as_secs_f64(),
        ),
    ] {
        text.value(name, Kind::Gauge, help, value);
    }
}
