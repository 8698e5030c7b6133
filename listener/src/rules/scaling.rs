//! How many dequeue tasks should run: four policies, and the hysteresis around them.
//!
//! `little` follows Little's law: the arrival rate, plus the backlog divided by the time in which
//! it should be processed, times the whole time that a message is in hand. `seed` is the article's
//! static rule (L30) without its unreachable last line (DL13). `fixed` is the largest number
//! whenever there is work. `aimd` adds a task while everything is busy and halves the number when
//! throttled. All are monotone in the load and clamped.
//!
//! [`Scaler`] scales up at once, and down only after the wanted number was lower for a whole
//! cooldown (DL20). Tasks beyond the number that is currently wanted are kept but rest: they make
//! no gets.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// The policy that sets the number of tasks.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    clap::ValueEnum,
    serde::Deserialize,
    serde::Serialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Policy {
    /// Little's law: the arrivals and the backlog times the time that a message takes.
    #[default]
    Little,
    /// Fixed steps of 1, 10, 50 and 100 tasks by the depth of the queue, as in the source article
    /// (L30).
    Seed,
    /// Always the largest number.
    Fixed,
    /// Additive increase while all tasks are busy, multiplicative decrease when throttled.
    Aimd,
}

/// The settings that stay constant while a listener runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Smallest number of tasks while there is work.
    pub min: u32,
    /// Largest number of tasks.
    pub max: u32,
    /// Messages that one task handles at once.
    pub slots: u32,
    /// Time within which a backlog should be processed.
    pub drain_target: Duration,
    /// Time for which fewer tasks must be wanted before tasks are stopped.
    pub cooldown: Duration,
    /// Time that a handled message may wait for its delete while the request rate is the
    /// bottleneck: a small part of the visibility timeout, so that no lock is renewed for it.
    pub settle_wait: Duration,
}

impl Limits {
    /// Returns the [`Limits::settle_wait`] for this visibility timeout.
    pub fn settle_wait_of(visibility: Duration) -> Duration {
        visibility / SETTLE_WAIT_SHARE
    }
}

/// A message may wait for its delete for this part of the visibility timeout.
const SETTLE_WAIT_SHARE: u32 = 8;

/// The load at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Load {
    /// Messages received per second.
    pub arrivals_per_s: f64,
    /// Messages that a get would return now: the service's count less those in flight here, or 0
    /// after a later get that came back short (DL22).
    pub visible_backlog: u64,
    /// Mean time of a message in hand in seconds, from its get to the end of its delete.
    pub in_hand_s: f64,
    /// The part of `in_hand_s` in which the handler ran.
    pub handler_s: f64,
    /// Messages being handled.
    pub in_flight: u32,
    /// Running tasks.
    pub tasks: u32,
    /// Requests per second that the bucket allows.
    pub requests_per_s: f64,
    /// Whether a request was throttled since the last decision.
    pub throttled: bool,
}

/// Returns the number of tasks that `policy` wants, within the limits and the bucket's rate.
pub fn wish(policy: Policy, limits: &Limits, load: &Load) -> u32 {
    let wanted = match policy {
        Policy::Little => little(limits, load),
        Policy::Seed => seed(load.visible_backlog),
        Policy::Fixed => limits.max,
        Policy::Aimd => aimd(limits, load),
    };
    let wanted = if load.throttled {
        wanted.min(load.tasks / 2)
    } else {
        wanted
    };
    let most = limits.max.min(tasks_for_rate(limits, load)).max(1);
    wanted.clamp(limits.min.clamp(1, most), most)
}

/// Returns `ceil((lambda + backlog / drain) * W / slots)`, where `W` is the time in hand: a slot is
/// taken from the get to the delete, not only while the handler runs. If every slot is busy and
/// messages wait, returns at least one task more than now, because unfinished messages have no
/// measured time yet.
fn little(limits: &Limits, load: &Load) -> u32 {
    let drain_s = limits.drain_target.as_secs_f64().max(0.001);
    let per_s = load.arrivals_per_s.max(0.0) + load.visible_backlog as f64 / drain_s;
    let tasks = per_s * load.in_hand_s.max(0.0) / f64::from(limits.slots.max(1));
    let by_law = ceil_u32(tasks);
    if saturated(limits, load) {
        by_law.max(load.tasks.saturating_add(1))
    } else {
        by_law
    }
}

/// L30 with DL13 fixed: an empty queue asks for one task, not for ten.
fn seed(depth: u64) -> u32 {
    match depth {
        0 => 1,
        1..=99 => 10,
        100..=999 => 50,
        _ => 100,
    }
}

fn aimd(limits: &Limits, load: &Load) -> u32 {
    if saturated(limits, load) {
        load.tasks.saturating_add(1)
    } else if load.visible_backlog > 0 {
        load.tasks
    } else {
        load.tasks.saturating_sub(1)
    }
}

fn saturated(limits: &Limits, load: &Load) -> bool {
    let slots = u64::from(load.tasks) * u64::from(limits.slots);
    load.visible_backlog > 0 && u64::from(load.in_flight) >= slots
}

/// Returns the number of tasks that the request rate can supply: a message costs its delete and its
/// share of a get. With more tasks, messages would only wait for their deletes. While messages are
/// visible, a wait of `settle_wait` is accepted so that handlers start sooner. The measured time in
/// hand cannot be used here, because it includes that wait.
fn tasks_for_rate(limits: &Limits, load: &Load) -> u32 {
    let wait = match load.visible_backlog {
        0 => Duration::ZERO,
        _ => limits.settle_wait,
    };
    let busy_s = load.handler_s + wait.as_secs_f64();
    if busy_s <= 0.0 {
        return u32::MAX;
    }
    let slots = f64::from(limits.slots.max(1));
    let requests_per_task_s = slots / busy_s * (1.0 + 1.0 / slots.min(32.0));
    ceil_u32(load.requests_per_s / requests_per_task_s)
}

fn ceil_u32(x: f64) -> u32 {
    // A float cast saturates; NaN becomes zero.
    x.ceil() as u32
}

/// The number of tasks to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// Tasks to run.
    pub tasks: u32,
    /// Tasks among them that poll even if they found no message before.
    pub awake: u32,
}

/// A rule that chooses the number of tasks; [`Policy`] names the built-in ones (L30). It runs in
/// the controller, about once a second while there is work.
pub trait ScalingRule: Send {
    /// Returns the number of tasks to run from `now` on, counted from the listener's start, and how
    /// many of them the current load needs; the others rest.
    fn target(&mut self, now: Duration, load: &Load) -> Target;

    /// Forgets the history, because the queue has gone idle.
    fn reset(&mut self) {}
}

/// Makes the scaling rule of a run.
pub(crate) type MakeRule = Arc<dyn Fn(&Limits) -> Box<dyn ScalingRule> + Send + Sync>;

/// Scales up at once; scales down after the cooldown, to the largest number wanted during it.
#[derive(Clone, Debug)]
pub struct Scaler {
    policy: Policy,
    limits: Limits,
    wishes: VecDeque<(Duration, u32)>,
}

impl Scaler {
    /// Creates a scaler without history.
    pub fn new(policy: Policy, limits: Limits) -> Self {
        Scaler {
            policy,
            limits,
            wishes: VecDeque::new(),
        }
    }
}

impl ScalingRule for Scaler {
    fn target(&mut self, now: Duration, load: &Load) -> Target {
        let wished = wish(self.policy, &self.limits, load);
        if load.throttled {
            // Throttled, so the earlier numbers were too high.
            self.wishes.clear();
        }
        let horizon = now.saturating_sub(self.limits.cooldown);
        while self.wishes.front().is_some_and(|(at, _)| *at < horizon) {
            self.wishes.pop_front();
        }
        // Only falling numbers matter for a maximum over time, so the queue stays sorted and short.
        while self.wishes.back().is_some_and(|(_, w)| *w <= wished) {
            self.wishes.pop_back();
        }
        self.wishes.push_back((now, wished));
        let highest = self.wishes.front();
        Target {
            tasks: highest.map_or(wished, |(_, w)| *w),
            awake: wished,
        }
    }

    fn reset(&mut self) {
        self.wishes.clear();
    }
}

impl Target {
    /// Keeps both numbers within the limits of the listener.
    pub fn within(self, limits: &Limits) -> Self {
        let most = limits.max.max(1);
        let clamp = |tasks: u32| tasks.clamp(limits.min.clamp(1, most), most);
        Target {
            tasks: clamp(self.tasks),
            awake: clamp(self.awake),
        }
    }
}

#[cfg(test)]
#[path = "scaling_tests.rs"]
mod tests;
