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

#[derive(Clone, Debug, Default)]
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

    fn in_phase(&self) -> Duration {
        self.since.map_or(Duration::ZERO, |since| since.elapsed())
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
    core: Arc<Core>,
    report: Report,
    calls: BTreeMap<&'static str, u64>,
    gauges: Gauges,
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
        let (report, gauges) = (lock(&core.report).clone(), lock(&core.gauges).clone());
        Some(Snapshot {
            report,
            calls: core.calls.counts(),
            gauges,
            core,
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
        let schedule = &look.core.config.schedule;
        let interval = schedule.every + schedule.jitter;
        match (&look.gauges.phase, look.core.calls.since_success()) {
            (Phase::OutOfReach { error }, _) => Err(error.clone()),
            (Phase::Stopped, _) => Err("stopped".to_owned()),
            (_, None) => Err("no call answered yet".to_owned()),
            (_, Some(silent)) if silent > interval * INTERVALS_SILENT_MAX => {
                Err(format!("no call answered for {} s", silent.as_secs()))
            }
            _ => Ok(()),
        }
    }

    fn status(&self) -> serde_json::Value {
        let Some(look) = self.look() else {
            return serde_json::json!({ "phase": Phase::Starting, "ready": false });
        };
        let (core, gauges, now) = (&look.core, &look.gauges, look.core.now());
        let silent = core.calls.since_success();
        serde_json::json!({
            "worker": core.worker,
            "version": env!("CARGO_PKG_VERSION"),
            "uptime_s": core.began.elapsed().as_secs_f64(),
            "service_time": (now != Timestamp::MIN).then(|| now.iso_s()),
            "phase": gauges.phase,
            "phase_s": gauges.in_phase().as_secs_f64(),
            "cycle": gauges.cycle,
            "cycles_seen_closed": gauges.cycles,
            "pages_in_flight": gauges.in_flight,
            "containers_parked": gauges.parked,
            "lag_s": gauges.lag.as_secs(),
            "last_answer_s_ago": silent.map(|silent| silent.as_secs_f64()),
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
    let cycles = look.gauges.cycles as f64;
    text.value("sweeper_cycles_total", Kind::Counter, help, cycles);
}

fn times(text: &mut Exposition, look: &Snapshot) {
    let mut summary = |name, help, timed: Timed| {
        let mut family = text.family(name, Kind::Summary, help);
        family.sum(timed.sum.as_secs_f64(), timed.count);
    };
    let help = "Duration of the cycles that this worker closed.";
    summary("sweeper_cycle_seconds", help, look.gauges.cycle_time);
    let help = "Time spent waiting for the lease on the state document.";
    summary("sweeper_lease_wait_s", help, look.gauges.lease_wait);
}

fn gauges(text: &mut Exposition, look: &Snapshot, ready: bool) {
    let gauges = &look.gauges;
    let page_age = match gauges.phase {
        Phase::Working { .. } => gauges.in_phase().as_secs_f64(),
        _ => 0.0,
    };
    let mut gauge = |name, help, value| text.value(name, Kind::Gauge, help, value);
    let help = "1 if the worker is ready, else 0.";
    gauge("sweeper_ready", help, f64::from(u8::from(ready)));
    let help = "Number of the cycle that is running or due next.";
    gauge("sweeper_cycle", help, gauges.cycle as f64);
    let help = "Pages in progress, of all workers.";
    gauge("sweeper_inflight_pages", help, gauges.in_flight as f64);
    let help = "Containers that the cycle skips after failures.";
    gauge("sweeper_parked_containers", help, gauges.parked as f64);
    let help = "Age of the page that this worker is processing.";
    gauge("sweeper_page_age_s", help, page_age);
    let help = "How long the longest-due blob of the last page has been due.";
    gauge("sweeper_lag_s", help, gauges.lag.as_secs_f64());
    let (help, uptime) = ("Time since the worker started.", look.core.began.elapsed());
    gauge("sweeper_uptime_s", help, uptime.as_secs_f64());
}
