//! The controller: the one task that owns the pool, receives all events, and decides how many
//! dequeue tasks run.
//!
//! ```text
//! Starting -> Active <-> Watching -> Active ... any -> Draining -> Stopped
//! ```
//! Active: messages were seen within the cooldown; the scaling rules choose the number of tasks,
//! and the depth is sampled only while gets come back full. Watching: `idle_tasks` tasks poll with
//! a growing interval; with none, a watchdog looks at long intervals. A wake-up or a message leads
//! back to Active.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use smalt_sleeve::port::{ErrorKind, PortError};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::message::until;
use crate::observers::is_throttle;
use crate::pool::Pool;
use crate::report::{Ended, ListenerError, PoolState, PoolStatus, Report};
use crate::rules::load::LoadMeter;
use crate::rules::scaling::{Limits, MakeRule, Scaler, ScalingRule};
use crate::rules::sentinel::Role;
use crate::run::CANCEL_GRACE;
use crate::sentinel::Guard;
use crate::shared::{Event, Phase, Shared};

/// Interval of the scaling rules while Active.
const TICK: Duration = Duration::from_secs(1);
/// Shortest interval of the scaling rules while gets come back full.
const RESCALE_EVERY: Duration = Duration::from_millis(200);
/// Shortest interval between two depth samples (D2: 1 to 5 s).
const DEPTH_EVERY: Duration = Duration::from_secs(5);
/// Consecutive empty gets after which `once` takes the queue to be empty: the service may answer
/// one get without messages although the queue has some.
const ONCE_EMPTY_GETS: u32 = 2;
/// Consecutive failed gets after which `once` gives up.
const ONCE_FAILED_GETS: u32 = 5;
/// Time that cancelled handlers and releases get after the grace time.
const LEAVE_WITHIN: Duration = Duration::from_secs(5);

/// A future that resolves when the listener should stop.
pub(crate) type Shutdown<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// When a run ends by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Run,
    Once,
}

pub(crate) struct Controller {
    shared: Arc<Shared>,
    events: mpsc::UnboundedReceiver<Event>,
    woken: u64,
    status: watch::Sender<PoolStatus>,
    pool: Pool,
    samples: JoinSet<()>,
    limits: Limits,
    scaler: Box<dyn ScalingRule>,
    meter: LoadMeter,
    /// This listener's part in the fleet's sentinel; `None` without a sentinel.
    guard: Option<Guard>,
    mode: Mode,
    start: Instant,
    state: PoolState,
    worked_at: Instant,
    sampled_at: Option<Instant>,
    watched_at: Instant,
    rescaled_at: Instant,
    /// Tasks that the current load needs.
    desired: u32,
    /// Tasks that remained when an observer stopped one of an empty queue; `None` once there is
    /// work again.
    left: Option<u32>,
    empty_gets: u32,
    failed_gets: u32,
    report: Report,
}

/// The parts of a controller besides the shared ones.
pub(crate) struct Wiring {
    pub(crate) events: mpsc::UnboundedReceiver<Event>,
    pub(crate) status: watch::Sender<PoolStatus>,
    pub(crate) mode: Mode,
    pub(crate) seed: u64,
    /// Makes the scaling rule; `None` for that of the settings' policy.
    pub(crate) rule: Option<MakeRule>,
}

impl Controller {
    pub(crate) fn new(shared: Arc<Shared>, wiring: Wiring) -> Self {
        let config = &shared.config;
        let limits = Limits {
            min: config.tasks.min,
            max: config.tasks.max,
            slots: config.slots,
            drain_target: config.drain_target,
            cooldown: config.cooldown,
            settle_wait: Limits::settle_wait_of(config.visibility),
        };
        let now = Instant::now();
        Controller {
            events: wiring.events,
            woken: shared.wake.get(),
            status: wiring.status,
            pool: Pool::new(Arc::clone(&shared), wiring.seed),
            samples: JoinSet::new(),
            scaler: match &wiring.rule {
                Some(rule) => rule(&limits),
                None => Box::new(Scaler::new(config.policy, limits)),
            },
            limits,
            meter: LoadMeter::new(Duration::ZERO),
            guard: match wiring.mode {
                Mode::Run => Guard::new(&shared, wiring.seed),
                Mode::Once => None,
            },
            mode: wiring.mode,
            start: now,
            state: PoolState::Starting,
            worked_at: now,
            sampled_at: None,
            watched_at: now,
            rescaled_at: now,
            desired: 0,
            left: None,
            empty_gets: 0,
            failed_gets: 0,
            report: Report::empty(),
            shared,
        }
    }

    /// Runs to the end. Dropping the future drops everything that it started.
    pub(crate) async fn run(mut self, mut shutdown: Shutdown<'_>) -> Result<Report, ListenerError> {
        let end = self.work(&mut shutdown).await;
        let drained = match end {
            Ok(Ended::Empty) => self.drain(Phase::Finishing).await,
            Ok(Ended::BudgetSpent) if self.finish(&mut shutdown).await => {
                self.drain(Phase::Finishing).await
            }
            Ok(_) | Err(_) => self.drain(Phase::Draining).await,
        };
        self.publish(PoolState::Stopped);
        let ended = end?;
        self.report.ended = if drained { ended } else { Ended::GraceExceeded };
        self.shared.observers.tell(|o| o.stopped(&self.report));
        Ok(self.report)
    }

    async fn work(&mut self, shutdown: &mut Shutdown<'_>) -> Result<Ended, ListenerError> {
        self.activate();
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            let watchdog_at = self.watchdog_at();
            tokio::select! {
                biased;
                () = &mut *shutdown => return Ok(Ended::Drained),
                Some(event) = self.events.recv() => {
                    if let Some(end) = self.hear(event)? {
                        return Ok(end);
                    }
                }
                () = self.pool.ended() => self.replace(),
                () = self.shared.wake.beyond(self.woken) => {
                    self.woken = self.shared.wake.get();
                    self.left = None;
                    self.activate();
                }
                () = until(watchdog_at) => self.look_after_all(),
                _ = tick.tick() => self.tick(),
            }
        }
    }

    /// Processes an event; returns how the run ended if the event ended it.
    fn hear(&mut self, event: Event) -> Result<Option<Ended>, ListenerError> {
        match event {
            Event::Received { asked, got } => self.received(asked, got),
            Event::Leave(task) => self.leave(task),
            Event::Failed(error) => self.failed(error)?,
            Event::Finished {
                outcome,
                handler_time,
                in_hand,
                expiring,
            } => {
                self.meter.finished(handler_time, in_hand);
                *self.report.outcomes.entry(outcome).or_insert(0) += 1;
                self.report.expiring += u64::from(expiring);
            }
            Event::BudgetSpent { .. } if self.mode == Mode::Once => {
                return Ok(Some(Ended::BudgetSpent));
            }
            Event::BudgetSpent { is_first: true } => self.shared.say_budget_is_spent(),
            Event::Unable(reason) => return Err(ListenerError::HandlerUnable(reason)),
            Event::Depth(Some(count)) => {
                self.meter.depth(count);
                if self.state == PoolState::Active {
                    self.rescale();
                } else if self.meter.backlog() > 0 {
                    self.activate();
                }
            }
            Event::BudgetSpent { .. } | Event::Depth(None) => {}
            Event::Sentinel(answer) => {
                if let Some(guard) = &mut self.guard {
                    guard.answered(answer);
                }
                self.follow_role();
            }
        }
        let is_empty = self.empty_gets >= ONCE_EMPTY_GETS && self.meter.in_flight() == 0;
        Ok((self.mode == Mode::Once && is_empty).then_some(Ended::Empty))
    }

    fn received(&mut self, asked: u32, got: u32) {
        self.failed_gets = 0;
        self.meter.received(asked, got);
        self.report.received += u64::from(got);
        if got == 0 {
            self.empty_gets = self.empty_gets.saturating_add(1);
            // The watchdog's pause starts at the answer, however long the look took.
            self.watched_at = Instant::now();
            return;
        }
        self.empty_gets = 0;
        self.left = None;
        self.worked_at = Instant::now();
        if self.state != PoolState::Active {
            self.activate();
        }
        if got == asked {
            // More messages may wait, so the pool grows now and not only at the next tick (DL10).
            self.sample_depth();
            if self.rescaled_at.elapsed() >= RESCALE_EVERY {
                self.rescale();
            }
        }
    }

    fn failed(&mut self, error: PortError) -> Result<(), ListenerError> {
        self.failed_gets = self.failed_gets.saturating_add(1);
        if is_throttle(&error) {
            self.meter.throttled();
            if self.state == PoolState::Active {
                self.rescale();
            }
        }
        if self.mode == Mode::Run {
            return Ok(());
        }
        match error.kind {
            ErrorKind::Denied => Err(ListenerError::Denied(error)),
            ErrorKind::NotFound => Err(ListenerError::QueueMissing(error)),
            ErrorKind::Untrusted => Err(ListenerError::Unreachable(error)),
            _ if !error.is_transient() => Err(ListenerError::Refused(error)),
            _ if self.failed_gets >= ONCE_FAILED_GETS => Err(ListenerError::Unreachable(error)),
            _ => Ok(()),
        }
    }

    /// Stops a task as an observer decided (L20), but leaves the tasks that poll while idle.
    fn leave(&mut self, task: u64) {
        if self.pool.active() > self.floor() && self.empty_gets > 0 {
            self.pool.stop(task);
            self.left = Some(self.pool.active());
            self.publish(self.state);
        }
    }

    /// Waits until all received messages are settled, however long their handlers run; returns
    /// `false` if `shutdown` resolves first.
    async fn finish(&mut self, shutdown: &mut Shutdown<'_>) -> bool {
        self.publish(PoolState::Draining);
        self.shared.phase.modify(|_| Phase::Finishing);
        tokio::select! {
            biased;
            () = self.pool.drained() => true,
            () = shutdown => false,
        }
    }

    /// Applies the scaling rules or, while Watching, updates the sentinel's lease.
    fn tick(&mut self) {
        if self.state != PoolState::Active {
            self.watch();
            return;
        }
        // Failed gets prove nothing: the pool becomes idle only after the queue was seen empty.
        let quiet = self.worked_at.elapsed() >= self.shared.config.cooldown;
        if quiet && self.meter.backlog() == 0 {
            self.scaler.reset();
            self.watched_at = Instant::now();
            self.pool.resize(self.floor());
            self.pool.rest(u32::MAX);
            self.desired = self.floor();
            self.publish(PoolState::Watching);
        } else {
            self.rescale();
        }
        self.guard_step();
    }

    /// Updates the sentinel's lease while Watching.
    fn watch(&mut self) {
        self.guard_step();
        self.follow_role();
        self.publish(self.state);
    }

    /// Returns when the watchdog looks next: one interval after the last look, while no task polls.
    fn watchdog_at(&self) -> Option<Instant> {
        let asleep = self.state == PoolState::Watching && self.pool.active() == 0;
        // A follower knows that another listener polls.
        let relies = self.role() == Some(Role::Follower);
        let watches = asleep && !relies;
        watches.then(|| self.watched_at + self.shared.config.watchdog)
    }

    /// Starts a task that looks once, for the watchdog.
    fn look_after_all(&mut self) {
        self.watched_at = Instant::now();
        self.pool.start(true);
        self.publish(self.state);
    }

    /// Returns this listener's role in its fleet; `None` without a sentinel.
    fn role(&self) -> Option<Role> {
        self.guard.as_ref().map(Guard::role)
    }

    /// Updates the sentinel's lease. The lease is wanted while the listener is idle, and kept while
    /// it can do all the work alone. With more work the lease is released, and the listener that
    /// acquires it wakes up.
    fn guard_step(&mut self) {
        let spent = self
            .shared
            .calls
            .today()
            .is_some_and(|today| today.is_spent());
        let watching = self.state == PoolState::Watching;
        let alone = self.meter.backlog() == 0;
        let role = self.role();
        if let Some(guard) = &mut self.guard {
            // A listener with a spent budget leaves the queue to the others of the fleet.
            guard.step(!spent && (watching || (alone && role == Some(Role::Holder))));
        }
    }

    /// Adjusts the polling tasks to the role while Watching.
    fn follow_role(&mut self) {
        if self.state == PoolState::Watching && self.guard.is_some() {
            let probes = self.role() == Some(Role::Unsure) && self.pool.active() <= 1;
            if !probes {
                self.pool.resize(self.floor());
            }
            self.publish(self.state);
        }
    }

    /// Returns the number of tasks that poll while idle (LS10). `once` always keeps one.
    fn floor(&self) -> u32 {
        match self.mode {
            Mode::Run if self.guard.is_some() => u32::from(self.role() == Some(Role::Holder)),
            Mode::Run => self.shared.config.idle_tasks,
            Mode::Once => self.shared.config.idle_tasks.max(1),
        }
    }

    fn activate(&mut self) {
        self.worked_at = Instant::now();
        self.publish(PoolState::Active);
        self.rescale();
    }

    /// Replaces a task that ended, if fewer tasks remain than must poll: it failed, or it was a
    /// probe that found nothing.
    fn replace(&mut self) {
        if self.pool.active() < self.floor() {
            self.pool.resize(self.floor());
        }
    }

    fn rescale(&mut self) {
        self.rescaled_at = Instant::now();
        let now = self.start.elapsed();
        let tasks = self.pool.active();
        let rate = self.shared.calls.rate_per_s();
        let load = self.meter.load(now, tasks, rate);
        let target = self.scaler.target(now, &load).within(&self.limits);
        let (floor, most) = (self.floor(), self.left.unwrap_or(u32::MAX));
        let within = |tasks: u32| tasks.min(most).max(floor);
        self.pool.resize(within(target.tasks));
        self.pool.rest(within(target.awake));
        self.desired = within(target.awake);
        if load.visible_backlog > 0 {
            self.shared.work.count();
        }
        self.publish(self.state);
    }

    /// Samples the depth in a task of its own; never while idle (DL2), and never twice at a time.
    fn sample_depth(&mut self) {
        while self.samples.try_join_next().is_some() {}
        let recently = self.sampled_at.is_some_and(|at| at.elapsed() < DEPTH_EVERY);
        if recently || !self.samples.is_empty() {
            return;
        }
        self.sampled_at = Some(Instant::now());
        let shared = Arc::clone(&self.shared);
        self.samples.spawn(async move {
            let depth = shared.calls.depth().await.ok();
            shared.tell(Event::Depth(depth));
        });
    }

    /// Waits for running work to end; returns `false` if the grace time did not suffice.
    async fn drain(&mut self, phase: Phase) -> bool {
        self.publish(PoolState::Draining);
        self.samples.shutdown().await;
        self.shared.phase.modify(|_| phase);
        let grace = self.shared.config.grace;
        let leave = async {
            if let Some(guard) = &mut self.guard {
                guard.leave().await;
            }
        };
        let (shared, pool) = (&self.shared, &mut self.pool);
        let drain = async {
            if tokio::time::timeout(grace, pool.drained()).await.is_ok() {
                return true;
            }
            shared.phase.modify(|_| Phase::Leaving);
            let within = CANCEL_GRACE + LEAVE_WITHIN;
            let _ = tokio::time::timeout(within, pool.drained()).await;
            false
        };
        // Both run concurrently, so that releasing the lease does not use up the time to stop
        // (LL4).
        let (drained, ()) = tokio::join!(drain, leave);
        while let Ok(event) = self.events.try_recv() {
            self.count(event);
        }
        self.report.requests = self.shared.requests();
        self.report.tasks_started = self.pool.started();
        drained
    }

    fn count(&mut self, event: Event) {
        match event {
            Event::Received { got, .. } => self.report.received += u64::from(got),
            Event::Finished {
                outcome, expiring, ..
            } => {
                *self.report.outcomes.entry(outcome).or_insert(0) += 1;
                self.report.expiring += u64::from(expiring);
            }
            Event::Leave(_)
            | Event::Failed(_)
            | Event::BudgetSpent { .. }
            | Event::Unable(_)
            | Event::Depth(_)
            | Event::Sentinel(_) => {}
        }
    }

    fn publish(&mut self, state: PoolState) {
        if self.state != state {
            tracing::info!(
                worker = %self.shared.config.worker,
                op = "pool",
                queue = %self.shared.config.queue,
                state = ?state,
                tasks = self.pool.active(),
                "pool"
            );
        }
        self.state = state;
        let pool = PoolStatus {
            state,
            tasks: self.pool.active(),
            desired: self.desired,
            tasks_started: self.pool.started(),
            in_flight: self.meter.in_flight(),
            backlog: self.meter.backlog(),
        };
        let before = self.status.send_replace(pool);
        if (before.state, before.tasks) != (pool.state, pool.tasks) {
            self.shared.observers.tell(|o| o.scaled(&pool));
        }
    }
}
