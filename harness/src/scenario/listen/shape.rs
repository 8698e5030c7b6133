//! The settings of the listeners of a run, and of their surroundings.

use std::time::Duration;

use proptest::prelude::*;
use smalt_listener::config::{Encoding, Idle, Policy, Tasks};
use smalt_listener::partition::PartitionSettings;
use smalt_listener::partition::map::queue_name_of;
use smalt_listener::payload::{Compression, Offload};
use smalt_listener::rules::sentinel::Sentinel;
use smalt_listener::{ListenerConfig, SentinelConfig};

use super::Names;
use super::plan::{HANDLER_TIMEOUT_S, POLICIES};

/// Delays before the second, third and each later attempt.
pub(super) const RETRY_S: [u64; 3] = [1, 4, 20];
/// Least share of requests that renewals, retries and idle gets leave for others.
const RATE_FLOOR: u32 = 20;
/// Length of the sentinel's lease.
const LEASE: Duration = Duration::from_secs(15);

/// How the listeners learn that there is something to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// So many tasks poll for ever.
    Poll(u32),
    /// Triggers, and a look every so many seconds in case that one is lost.
    Trigger(u16),
    /// One idle poller for all listeners.
    Sentinel,
}

/// The settings.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Listeners.
    pub workers: u8,
    /// Visibility timeout.
    pub visibility_s: u16,
    /// Whether locks are renewed.
    pub renew: bool,
    /// Attempts before the poison queue.
    pub max_dequeue: u32,
    /// Messages that one task handles at once.
    pub slots: u32,
    /// Whether bodies are written in Base64.
    pub base64: bool,
    /// How the number of tasks is chosen.
    pub policy: Policy,
    /// Most tasks.
    pub tasks_max: u32,
    /// How work is noticed.
    pub mode: Mode,
    /// First and longest idle interval in milliseconds.
    pub idle_ms: (u64, u64),
    /// How many of the longest intervals the queue is left idle for.
    pub idle_rounds: u16,
    /// Requests per second.
    pub rate_per_s: u32,
    /// Requests per second of all listeners together, where they share a budget.
    pub account_per_s: Option<u32>,
    /// How long a lower load must last before tasks are stopped.
    pub cooldown_s: u16,
    /// Time for running handlers after the order to stop.
    pub grace_s: u16,
    /// Whether a missing queue is created.
    pub create_queue: bool,
    /// How far each listener's clock is off, in seconds.
    pub skew_s: [i32; 3],
    /// How long each way takes a request, in milliseconds.
    pub lag_ms: u64,
    /// How payloads are compressed, where every second message has one in a blob.
    pub payloads: Option<Compression>,
    /// Several queues in the place of one, and their resize during the trouble.
    pub partitions: Option<Resize>,
}

/// How many queues there are at first, how many later, and when that is said, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resize {
    /// At first.
    pub from: u32,
    /// Later.
    pub to: u32,
    /// When.
    pub at_s: u16,
}

/// How long a sender trusts the map of a partitioned queue.
const MAP_TRUSTED: Duration = Duration::from_secs(10);

/// Container of the map of a partitioned queue.
const MAPS: &str = "maps";
/// Container of the payloads.
pub(super) const PAYLOADS: &str = "payloads";
/// Longer bodies travel in a blob.
pub(super) const APART_ABOVE_BYTES: usize = 64;

impl Shape {
    /// The longest that a visible message waits until somebody looks.
    pub fn longest_sleep(&self) -> Duration {
        match self.mode {
            Mode::Poll(_) => Duration::from_millis(self.idle_ms.1),
            Mode::Trigger(watchdog_s) => Duration::from_secs(u64::from(watchdog_s)),
            Mode::Sentinel => Sentinel::gap(LEASE) + Duration::from_millis(self.idle_ms.1),
        }
    }

    /// Requests per second that one listener can count on.
    pub(super) fn request_rate(&self) -> u32 {
        let share = self
            .account_per_s
            .map(|all| all / u32::from(self.workers.max(1)));
        share.map_or(self.rate_per_s, |share| share.min(self.rate_per_s))
    }

    /// Tasks that never leave.
    pub fn floor(&self) -> u32 {
        match self.mode {
            Mode::Poll(tasks) => tasks,
            Mode::Trigger(_) | Mode::Sentinel => 0,
        }
    }

    /// Makes room for a load: twice the tasks, and three times the requests that it needs.
    pub(super) fn can_bear(&mut self, per_s: u8, work_ms: u32) {
        let busy = (u32::from(per_s) * work_ms).div_ceil(1_000);
        self.tasks_max = self.tasks_max.max((2 * busy).div_ceil(self.slots) + 1);
        let needs = RATE_FLOOR + 9 * u32::from(per_s);
        self.rate_per_s = self.rate_per_s.max(needs);
        self.account_per_s = self.account_per_s.map(|all| all.max(3 * needs));
    }

    /// How long the queue is left idle.
    pub fn idle_time(&self) -> Duration {
        match self.mode {
            Mode::Poll(_) => self.longest_sleep() * u32::from(self.idle_rounds),
            Mode::Trigger(_) => self.longest_sleep() * 2,
            Mode::Sentinel => self.longest_sleep() * 3,
        }
    }

    /// Queues that one life may work off at a time.
    pub(super) fn queues_max(&self) -> u32 {
        self.partitions
            .map_or(1, |resize| resize.from.max(resize.to))
    }

    /// The queues, those that are left by and by first.
    pub(super) fn queues(&self, names: &Names) -> Vec<String> {
        match self.partitions {
            None => vec![names.queue.clone()],
            Some(_) => {
                let numbers = (0..self.queues_max()).rev();
                numbers.map(|n| queue_name_of(&names.queue, n)).collect()
            }
        }
    }

    /// The queues that are there at the end.
    pub(super) fn queues_at_last(&self, names: &Names) -> Vec<String> {
        match self.partitions {
            None => vec![names.queue.clone()],
            Some(Resize { to, .. }) => (0..to).map(|n| queue_name_of(&names.queue, n)).collect(),
        }
    }

    /// What the partitioned queue is, where there is one.
    pub(super) fn set(&self, names: &Names) -> Option<PartitionSettings> {
        self.partitions.map(|resize| PartitionSettings {
            max_age: MAP_TRUSTED,
            ..PartitionSettings::new(&names.queue, resize.from, MAPS)
        })
    }

    /// How payloads travel.
    pub(super) fn offload(&self) -> Option<Offload> {
        self.payloads.map(|compression| Offload {
            above_bytes: APART_ABOVE_BYTES,
            compression,
            margin: Duration::from_secs(3_600),
            ..Offload::into(PAYLOADS)
        })
    }

    /// The configuration of one life.
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

/// All shapes.
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
            lag_ms: wire.1,
            payloads: None,
            partitions: None,
        }
    })
}
