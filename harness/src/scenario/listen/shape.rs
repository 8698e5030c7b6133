//! The settings of the listeners of a run, and of their surroundings.

use std::time::Duration;

use proptest::prelude::*;
use smalt_listener::config::{Encoding, Idle, Policy, Tasks};
use smalt_listener::partition::PartitionSettings;
use smalt_listener::partition::map::queue_name_of;
use smalt_listener::payload::{Compression, Offload};
use smalt_listener::rules::sentinel::Sentinel;
use smalt_listener::{ListenerConfig, SentinelConfig};

use super::plan::{HANDLER_TIMEOUT_S, POLICIES};
use super::seen::Names;

/// Delays in seconds before the second, third and each later attempt.
pub(super) const RETRY_S: [u64; 3] = [1, 4, 20];
/// Least percentage of the request rate that renewals, retries and idle gets leave for others.
const RATE_FLOOR: u32 = 20;
/// How long a payload outlives its message; the least that the listener accepts.
pub(super) const MARGIN: Duration = Duration::from_secs(3_600);
/// Length of the sentinel's lease.
const LEASE: Duration = Duration::from_secs(15);

/// How the listeners learn that there are messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// This many tasks poll for ever.
    Poll(u32),
    /// Triggers, and a get every so many seconds in case a trigger is lost.
    Trigger(u16),
    /// One idle poller for all listeners.
    Sentinel,
}

/// Settings of the listeners.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Number of listeners.
    pub workers: u8,
    /// Visibility timeout in seconds.
    pub visibility_s: u16,
    /// Whether locks are renewed.
    pub renew: bool,
    /// Attempts before a message goes to the poison queue.
    pub max_dequeue: u32,
    /// Most messages that one task handles at the same time.
    pub slots: u32,
    /// Whether bodies are stored in Base64.
    pub base64: bool,
    /// How the number of tasks is chosen.
    pub policy: Policy,
    /// Most tasks of one listener.
    pub tasks_max: u32,
    /// How the listeners learn that there are messages.
    pub mode: Mode,
    /// First and longest idle interval in milliseconds.
    pub idle_ms: (u64, u64),
    /// Length of the idle stage, in longest idle intervals.
    pub idle_rounds: u16,
    /// Requests per second of one listener.
    pub rate_per_s: u32,
    /// Requests per second of all listeners together; `None` without a shared budget.
    pub account_per_s: Option<u32>,
    /// Seconds that a lower load must last before tasks are stopped.
    pub cooldown_s: u16,
    /// Seconds for running handlers after the order to stop.
    pub grace_s: u16,
    /// Whether a listener creates a missing queue.
    pub create_queue: bool,
    /// Seconds by which each listener's clock is ahead.
    pub skew_s: [i32; 3],
    /// Seconds in which the error of each clock turns into its opposite; `None` for constant
    /// errors.
    pub drift_s: Option<u16>,
    /// Milliseconds that each direction of an exchange takes.
    pub lag_ms: u64,
    /// Compression of payloads; when set, every second message has its body in a blob.
    pub payloads: Option<Compression>,
    /// The partitions that replace the queue, and their resize during the trouble; `None` for a
    /// plain queue.
    pub partitions: Option<Resize>,
    /// Whether a sweeper works on the payloads meanwhile.
    pub swept: bool,
    /// Whether a trigger reaches each listener at its own time.
    pub wakes_apart: bool,
}

/// A change of the number of partitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resize {
    /// Number of partitions at first.
    pub from: u32,
    /// Number of partitions afterwards.
    pub to: u32,
    /// Time of the change, in seconds.
    pub at_s: u16,
    /// Seconds after which the change is taken back; `None` if it stays.
    pub back_after_s: Option<u16>,
}

impl Resize {
    /// Returns the number of partitions at the end.
    fn at_last(self) -> u32 {
        match self.back_after_s {
            Some(_) => self.from,
            None => self.to,
        }
    }

    /// Returns the times in seconds and the numbers of partitions that they bring.
    pub(super) fn changes(self) -> impl Iterator<Item = (u16, u32)> {
        let back = self
            .back_after_s
            .map(|after| (self.at_s + after, self.from));
        std::iter::once((self.at_s, self.to)).chain(back)
    }
}

/// How long a sender uses the map of a partitioned queue before it reads it again.
const MAP_TRUSTED: Duration = Duration::from_secs(10);

/// Container of the map of a partitioned queue.
const MAPS: &str = "maps";
pub(super) const PAYLOADS: &str = "payloads";
/// Longest body in bytes that is not stored in a blob.
pub(super) const APART_ABOVE_BYTES: usize = 64;

impl Shape {
    /// Returns the shape of one listener with payloads, which a sweeper sweeps.
    pub(super) fn small() -> Self {
        Shape {
            workers: 1,
            visibility_s: 10,
            renew: true,
            max_dequeue: 4,
            slots: 2,
            base64: true,
            policy: Policy::Fixed,
            tasks_max: 1,
            mode: Mode::Poll(1),
            idle_ms: (500, 10_000),
            idle_rounds: 2,
            rate_per_s: 100,
            account_per_s: None,
            cooldown_s: 3,
            grace_s: 20,
            create_queue: true,
            skew_s: [0; 3],
            drift_s: None,
            lag_ms: 20,
            payloads: Some(Compression::Zstd),
            partitions: None,
            swept: true,
            wakes_apart: false,
        }
    }

    /// Returns the longest time that a visible message waits for the next get.
    pub fn longest_sleep(&self) -> Duration {
        match self.mode {
            Mode::Poll(_) => Duration::from_millis(self.idle_ms.1),
            Mode::Trigger(watchdog_s) => Duration::from_secs(u64::from(watchdog_s)),
            Mode::Sentinel => Sentinel::gap(LEASE) + Duration::from_millis(self.idle_ms.1),
        }
    }

    /// Returns the requests per second on which one listener can rely.
    pub(super) fn request_rate(&self) -> u32 {
        let share = self
            .account_per_s
            .map(|all| all / u32::from(self.workers.max(1)));
        share.map_or(self.rate_per_s, |share| share.min(self.rate_per_s))
    }

    /// Returns the number of tasks that never stop.
    pub fn floor(&self) -> u32 {
        match self.mode {
            Mode::Poll(tasks) => tasks,
            Mode::Trigger(_) | Mode::Sentinel => 0,
        }
    }

    /// Makes the settings sufficient for a load: twice the tasks and three times the requests that
    /// it needs.
    pub(super) fn can_bear(&mut self, per_s: u8, work_ms: u32) {
        let busy = (u32::from(per_s) * work_ms).div_ceil(1_000);
        self.tasks_max = self.tasks_max.max((2 * busy).div_ceil(self.slots) + 1);
        let needs = RATE_FLOOR + 9 * u32::from(per_s);
        self.rate_per_s = self.rate_per_s.max(needs);
        self.account_per_s = self.account_per_s.map(|all| all.max(3 * needs));
    }

    /// Returns the duration of the idle stage.
    pub fn idle_time(&self) -> Duration {
        match self.mode {
            Mode::Poll(_) => self.longest_sleep() * u32::from(self.idle_rounds),
            Mode::Trigger(_) => self.longest_sleep() * 2,
            Mode::Sentinel => self.longest_sleep() * 3,
        }
    }

    /// Returns the number of queues that one life may serve at a time.
    pub(super) fn queues_max(&self) -> u32 {
        self.partitions
            .map_or(1, |resize| resize.from.max(resize.to))
    }

    /// Returns the names of the queues, first those that a resize abandons.
    pub(super) fn queues(&self, names: &Names) -> Vec<String> {
        match self.partitions {
            None => vec![names.queue.clone()],
            Some(_) => {
                let numbers = (0..self.queues_max()).rev();
                numbers.map(|n| queue_name_of(&names.queue, n)).collect()
            }
        }
    }

    /// Returns the names of the queues that remain at the end.
    pub(super) fn queues_at_last(&self, names: &Names) -> Vec<String> {
        match self.partitions {
            None => vec![names.queue.clone()],
            Some(resize) => (0..resize.at_last())
                .map(|n| queue_name_of(&names.queue, n))
                .collect(),
        }
    }

    /// Returns the settings of the partitioned queue, if there is one.
    pub(super) fn set(&self, names: &Names) -> Option<PartitionSettings> {
        self.partitions.map(|resize| PartitionSettings {
            max_age: MAP_TRUSTED,
            ..PartitionSettings::new(&names.queue, resize.from, MAPS)
        })
    }

    /// Returns how payloads are stored, if they are.
    pub(super) fn offload(&self) -> Option<Offload> {
        self.payloads.map(|compression| Offload {
            above_bytes: APART_ABOVE_BYTES,
            compression,
            margin: MARGIN,
            ..Offload::into(PAYLOADS)
        })
    }

    /// Returns the configuration of one life.
    pub fn config(&self, names: &Names, worker: &str) -> ListenerConfig {
        let s = |seconds: u16| Duration::from_secs(u64::from(seconds));
        let (idle_tasks, watchdog) = match self.mode {
            Mode::Poll(tasks) => (tasks, s(60)),
            Mode::Trigger(watchdog_s) => (0, s(watchdog_s)),
            Mode::Sentinel => (0, s(60)),
        };
        let min = idle_tasks.max(1);
        ListenerConfig {
            worker: worker.to_owned(),
            visibility: s(self.visibility_s),
            renew: self.renew,
            max_dequeue: self.max_dequeue,
            retry: RETRY_S.map(Duration::from_secs).to_vec(),
            idle: Idle {
                min: Duration::from_millis(self.idle_ms.0),
                max: Duration::from_millis(self.idle_ms.1),
            },
            tasks: Tasks {
                min,
                max: self.tasks_max.max(min),
            },
            slots: self.slots,
            idle_tasks,
            sentinel: (self.mode == Mode::Sentinel).then(|| SentinelConfig {
                lease: LEASE,
                ..SentinelConfig::default()
            }),
            watchdog,
            policy: self.policy,
            cooldown: s(self.cooldown_s),
            rate_per_s: self.rate_per_s,
            poison_queue: Some(names.poison.clone()),
            encoding: if self.base64 {
                Encoding::Base64
            } else {
                Encoding::Text
            },
            handler_timeout: s(HANDLER_TIMEOUT_S),
            grace: s(self.grace_s),
            create_queue: self.create_queue,
            offload: self.offload(),
            ..ListenerConfig::new(&names.queue)
        }
    }
}

/// Generates all shapes.
pub(super) fn shapes() -> impl Strategy<Value = Shape> {
    let visibility_s = prop_oneof![5 => 4u16..30, 1 => 60u16..120];
    let counts = (1u8..4, visibility_s, 1u32..5, 1u32..9, 1u32..5);
    let flags = (
        any::<bool>(),
        prop_oneof![3 => Just(true), 1 => Just(false)],
        any::<bool>(),
        proptest::sample::select(&POLICIES[..]),
    );
    let mode = prop_oneof![
        3 => (1u32..3).prop_map(Mode::Poll),
        1 => (20u16..90).prop_map(Mode::Trigger),
        1 => Just(Mode::Sentinel),
    ];
    let idle = (
        50u64..500,
        1_000u64..20_000,
        prop_oneof![3 => 2u16..6, 1 => Just(32)],
    );
    let pace = (
        prop_oneof![2 => 5u32..40, 1 => Just(500)],
        3u16..20,
        0u16..25,
        prop_oneof![3 => Just(None), 1 => (30u32..60).prop_map(Some)],
    );
    let skew = prop_oneof![
        4 => Just(0i32),
        3 => -890i32..890,
        1 => 905i32..1_000,
        1 => -1_000i32..-905,
    ];
    let wire = (
        [skew.clone(), skew.clone(), skew],
        prop_oneof![1 => Just(0u64), 2 => 5u64..120],
    );
    (counts, flags, mode, idle, pace, wire).prop_map(|(counts, flags, mode, idle, pace, wire)| {
        let (workers, visibility_s, max_dequeue, slots, tasks_max) = counts;
        let (base64, renew, create_queue, policy) = flags;
        Shape {
            workers,
            visibility_s,
            renew,
            max_dequeue,
            slots,
            base64,
            policy,
            tasks_max,
            mode,
            idle_ms: (idle.0, idle.1),
            idle_rounds: idle.2,
            rate_per_s: pace.0,
            account_per_s: pace.3,
            cooldown_s: pace.1,
            grace_s: pace.2,
            create_queue,
            skew_s: wire.0,
            drift_s: None,
            lag_ms: wire.1,
            payloads: None,
            partitions: None,
            swept: false,
            wakes_apart: false,
        }
    })
}
