//! The loop of a worker: claims, processes and completes pages, waits for the next mark, and stops
//! when asked.

use std::time::Duration;

use smalt_protocol::Timestamp;
use tokio::time::Instant;

use crate::calls::lock;
use crate::claim::{self, Completion, Goal, Step};
use crate::error::SweepError;
use crate::monitor::Phase;
use crate::shared::Core;
use crate::state::Page;
use crate::work;

/// Maximum sleep while other workers are busy; a stopping worker may give its page back at any
/// time.
const POLL_MAX: Duration = Duration::from_secs(5);
const LOST_PAUSE: Duration = Duration::from_millis(500);
/// Maximum pause while the state document is unreachable.
const OUTAGE_PAUSE_MAX: Duration = Duration::from_secs(15);

/// Runs until the goal is reached or the worker is asked to stop.
pub(crate) async fn drive(core: &Core, mut goal: Goal) -> Result<(), SweepError> {
    let mut completion = None;
    let result = drive_steps(core, &mut goal, &mut completion).await;
    let settled = match &result {
        // The wait for the lease was given up, so do not wait again; another worker reclaims the
        // page.
        Err(SweepError::LeaseHeld { .. }) => Ok(()),
        _ => claim::settle_alone(core, &mut completion).await,
    };
    lock(&core.report).transactions = core.calls.counts();
    match result {
        Err(SweepError::Stopped) => settled,
        Ok(()) => settled,
        error => error,
    }
}

async fn drive_steps(
    core: &Core,
    goal: &mut Goal,
    completion: &mut Option<Completion>,
) -> Result<(), SweepError> {
    let mut outage = Outage::default();
    let mut watch = Watch::default();
    while !core.stop.is_set() {
        lock(&core.gauges).enter(Phase::Claiming);
        let asked = Instant::now();
        let step = match claim::step(core, completion, goal).await {
            Ok(step) => step,
            Err(error) => {
                outage.wait(core, error).await?;
                continue;
            }
        };
        outage = Outage::default();
        watch.note(core, &step, asked);
        match step {
            Step::Work(page) => {
                begin(core, &page.page);
                *completion = work::work(core, &page).await;
            }
            Step::Again => {}
            Step::Lost => core.stop.sleep(core.entropy.up_to(LOST_PAUSE)).await,
            Step::Wait(span) => {
                lock(&core.gauges).enter(Phase::Waiting);
                let span = span.min(POLL_MAX) + core.entropy.up_to(LOST_PAUSE);
                core.stop.sleep(span).await;
            }
            Step::Idle(span) => {
                let jitter = core.entropy.up_to(core.config.schedule.jitter);
                let until = core.now().plus(span).iso_s();
                let s = span.as_secs();
                tracing::info!(op = "sleep", s, %until, "sleeping until the next mark");
                lock(&core.gauges).enter(Phase::Idle { until });
                core.stop.sleep(span + jitter).await;
            }
            Step::Spent(until) => {
                let spent = over_budget(core, until);
                if matches!(goal, Goal::Once(_)) {
                    return Err(spent);
                }
                tracing::warn!("{spent}");
                let jitter = core.entropy.up_to(core.config.schedule.jitter);
                let span = until.since(core.now()) + jitter;
                let until = until.iso_s();
                lock(&core.gauges).enter(Phase::Idle { until });
                core.stop.sleep(span).await;
            }
            Step::Closed(closed, containers) => {
                tracing::info!(
                    op = "cycle",
                    cycle = closed.cycle,
                    purged = closed.purged,
                    parked = closed.parked.len(),
                    "cycle completed"
                );
                watch.closed(core);
                lock(&core.report).close(&closed, containers);
                if matches!(goal, Goal::Once(_)) {
                    return Ok(());
                }
            }
            Step::Overtaken => return Ok(()),
        }
    }
    Ok(())
}

fn begin(core: &Core, page: &Page) {
    let mut gauges = lock(&core.gauges);
    gauges.due += page.due;
    gauges.enter(Phase::Working {
        page: page.id.clone(),
        due: page.due,
    });
}

/// The cycle that this worker takes part in, and since when.
#[derive(Default)]
struct Watch(Option<(u64, Instant)>);

impl Watch {
    /// Records the first step of a cycle in progress; `asked` is when that step began.
    fn note(&mut self, core: &Core, step: &Step, asked: Instant) {
        let cycle = match step {
            Step::Idle(_) | Step::Spent(_) | Step::Overtaken => return,
            Step::Closed(closed, _) => closed.cycle,
            _ => lock(&core.gauges).cycle,
        };
        if self.0.is_none_or(|(known, _)| known != cycle) {
            self.0 = Some((cycle, asked));
        }
    }

    fn closed(&mut self, core: &Core) {
        let mut gauges = lock(&core.gauges);
        gauges.cycles += 1;
        if let Some((_, since)) = self.0.take() {
            gauges.cycle_time.add(since.elapsed());
        }
    }
}

fn over_budget(core: &Core, until: Timestamp) -> SweepError {
    let calls = core.spent_today().calls;
    let budget = core.config.budget;
    SweepError::BudgetSpent {
        max: budget.map_or(0.0, |budget| budget.max_cost_per_day),
        calls,
        cost: budget.map_or(0.0, |budget| budget.cost(calls)),
        until: until.iso_s(),
    }
}

/// A period in which the state document is unreachable.
#[derive(Default)]
struct Outage {
    since: Option<Instant>,
    failures: u32,
}

impl Outage {
    /// Waits, or returns the error if it is permanent or has lasted too long.
    async fn wait(&mut self, core: &Core, error: SweepError) -> Result<(), SweepError> {
        let since = *self.since.get_or_insert_with(Instant::now);
        if !error.is_transient() || since.elapsed() >= core.config.state_patience {
            return Err(error);
        }
        let limit = Duration::from_secs(1 << self.failures.min(6)).min(OUTAGE_PAUSE_MAX);
        self.failures += 1;
        let why = smalt_sleeve::redact(&error.to_string());
        lock(&core.gauges).enter(Phase::OutOfReach { error: why });
        tracing::warn!(%error, "the state document is unreachable; waiting");
        core.stop
            .sleep(limit.mul_f64(0.5 + core.entropy.fraction() / 2.0))
            .await;
        Ok(())
    }
}
