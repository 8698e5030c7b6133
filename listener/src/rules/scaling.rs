//! How many dequeue tasks should run: four policies, and the hysteresis around them.
//!
//! `little` follows Little's law: enough tasks for what arrives plus what lies there, divided by
//! the time in which it shall be worked off, times the whole time that a message is in hand. `seed`
//! is the article's static rule (L30) without its unreachable last line (DL13). `fixed` is the
//! greatest number whenever there is work. `aimd` adds a task while everything is busy and halves
//! when throttled. All are monotone in the load and clamped.
//!
//! [`Scaler`] goes up at once and down only after the wish was lower for a whole cooldown (DL20).
//! Tasks beyond the wish of the moment are kept, but rest: they ask for nothing.

use std::collections::VecDeque;
use std::time::Duration;

/// How the number of tasks is chosen.
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
    /// Little's law.
    #[default]
    Little,
    /// Fixed steps by depth: those of the source article (L30).
    Seed,
    /// Always the greatest number.
    Fixed,
    /// Additive increase, multiplicative decrease.
    Aimd,
}

/// What does not change while a listener runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Fewest tasks while there is work.
    pub min: u32,
    /// Most tasks.
    pub max: u32,
    /// Messages that one task handles at once.
    pub slots: u32,
    /// In what time a backlog shall be worked off.
    pub drain_target: Duration,
    /// How long the wish must be lower before tasks are stopped.
    pub cooldown: Duration,
    /// How long a message that is handled may wait for its delete, where the request budget is what
    /// is short: a small part of the visibility, so that no lock is renewed for it.
    pub settle_wait: Duration,
}

impl Limits {
    /// The [`Limits::settle_wait`] under this visibility timeout.
    pub fn settle_wait_of(visibility: Duration) -> Duration {
        visibility / SETTLE_WAIT_SHARE
    }
}

/// A message may wait for its delete for this part of the visibility timeout.
const SETTLE_WAIT_SHARE: u32 = 8;

/// What the controller knows at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Load {
    /// Messages received per second.
    pub arrivals_per_s: f64,
    /// Messages that a get would return now: the service's count less our own in flight, and none
    /// when a later get came back short (DL22).
    pub visible_backlog: u64,
    /// Mean time of a message in hand in seconds: from its get to the end of its delete.
    pub in_hand_s: f64,
    /// The part of it in which its handler ran.
    pub handler_s: f64,
    /// Messages being handled.
    pub in_flight: u32,
    /// Tasks that run.
    pub tasks: u32,
    /// Requests per second that the bucket allows.
    pub requests_per_s: f64,
    /// Whether a request was throttled since the last decision.
    pub throttled: bool,
}

/// The number of tasks that `policy` wishes for, within the limits and the bucket.
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

/// `ceil((lambda + backlog / drain) * W / slots)`, where `W` is the time in hand: a slot is taken
/// from the get to the delete, not only while the handler runs. When every slot is busy and
/// messages wait, one task more than now: what has not yet ended tells nothing about its time.
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

/// L30 with DL13 mended: an empty queue asks for one task, not for ten.
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

/// Tasks that the request budget can feed: a message costs its delete and its share of a get. With
/// more of them messages would only wait for their deletes. While others wait in the queue that is
/// borne for `settle_wait`: handlers begin the sooner. The time in hand is no measure here, it
/// holds that very wait.
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
    // A float cast saturates; not-a-number becomes zero.
    x.ceil() as u32
}

/// How many tasks there should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// Tasks that run.
    pub tasks: u32,
    /// Those among them that ask for messages although they found none before.
    pub awake: u32,
}

/// Up at once, down after the cooldown, to the highest wish of that time.
#[derive(Clone, Debug)]
pub struct Scaler {
    policy: Policy,
    limits: Limits,
    wishes: VecDeque<(Duration, u32)>,
}

impl Scaler {
    /// A scaler without history.
    pub fn new(policy: Policy, limits: Limits) -> Self {
        Scaler {
            policy,
            limits,
            wishes: VecDeque::new(),
        }
    }

    /// The number of tasks that should run from `now` on, and how many of them the load of the
    /// moment needs: the others rest until it does.
    pub fn target(&mut self, now: Duration, load: &Load) -> Target {
        let wished = wish(self.policy, &self.limits, load);
        if load.throttled {
            // Throttled: what was wished for before was too much.
            self.wishes.clear();
        }
        let horizon = now.saturating_sub(self.limits.cooldown);
        while self.wishes.front().is_some_and(|(at, _)| *at < horizon) {
            self.wishes.pop_front();
        }
        // Only falling wishes matter for a maximum over time: the queue stays sorted and short.
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

    /// Forgets the past: the queue has gone idle.
    pub fn reset(&mut self) {
        self.wishes.clear();
    }
}

#[cfg(test)]
#[path = "scaling_tests.rs"]
mod tests;
