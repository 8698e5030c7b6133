//! The settings of a listener, their sources and their checks.
//!
//! Settings come from flags and environment, then the TOML file, then a [`profile`], then the
//! defaults here ([`mod@file`] merges them). [`connection`] names the account.

pub mod connection;
pub mod effective;
pub mod file;
pub mod idle_tasks;
pub mod partitions;
pub mod profile;

use std::time::Duration;

use smalt_protocol::names;
use smalt_worker::span;

use crate::payload::Offload;
use crate::rules::renewal::min_start;
use crate::rules::retry_curve::{VISIBILITY_MAX, VISIBILITY_MIN};
pub use crate::rules::scaling::Policy;
use crate::rules::sentinel::{LEASE_S, Sentinel};

/// Largest number of dequeue tasks of one listener.
pub const TASKS_MAX: u32 = 1000;
/// Largest number of messages that one task handles at once, the size of the largest get (Get
/// Messages: 32).
pub const SLOTS_MAX: u32 = 32;
/// Length of the longest worker name. It is part of every request's context, which is at most 1
/// KiB.
const WORKER_NAME_MAX_BYTES: usize = 200;

/// A configuration error.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A value is out of its range.
    #[error("{setting}: {problem}")]
    Value {
        /// Name of the setting, as in the file.
        setting: &'static str,
        /// What is wrong, and which values are valid.
        problem: String,
    },
    /// The file cannot be read.
    #[error("cannot read {path}")]
    Read {
        /// Path of the file.
        path: String,
        /// The I/O error.
        source: std::io::Error,
    },
    /// The file is not valid TOML, or has an unknown or malformed setting.
    #[error("{path}:{line}: {problem}")]
    Toml {
        /// Path of the file.
        path: String,
        /// Line number, from 1.
        line: usize,
        /// What is wrong on that line.
        problem: String,
    },
}

impl ConfigError {
    pub(crate) fn value(setting: &'static str, problem: impl Into<String>) -> Self {
        ConfigError::Value {
            setting,
            problem: problem.into(),
        }
    }
}

/// How the body is encoded in the text of a message.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    serde::Deserialize,
    serde::Serialize,
    clap::ValueEnum,
)]
#[serde(rename_all = "lowercase")]
pub enum Encoding {
    /// The body itself, which must be UTF-8.
    #[default]
    Text,
    /// Base64, the default of several SDKs.
    Base64,
}

/// Bounds of the idle interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Idle {
    /// First interval.
    pub min: Duration,
    /// Longest interval.
    pub max: Duration,
}

/// Bounds of the number of dequeue tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tasks {
    /// Smallest number while there is work.
    pub min: u32,
    /// Largest number.
    pub max: u32,
}

/// One idle poller for a whole fleet: the listener that holds the lease of a blob with the queue's
/// name ([`crate::rules::sentinel`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentinelConfig {
    /// Container of the blob; created if missing.
    pub container: String,
    /// Length of the lease, 15 s to 60 s. A dead sentinel is replaced within about two leases.
    pub lease: Duration,
}

impl Default for SentinelConfig {
    fn default() -> Self {
        SentinelConfig {
            container: "listener-sentinels".to_owned(),
            lease: Duration::from_secs(30),
        }
    }
}

/// The settings of one listener. [`ListenerConfig::new`] gives the defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerConfig {
    /// Queue to process.
    pub queue: String,
    /// Name of this worker in logs and request ids, 1 to 200 bytes.
    pub worker: String,
    /// Visibility timeout of received messages, whole seconds from 1 s to 7 d.
    pub visibility: Duration,
    /// Whether the visibility timeout is renewed while a handler runs. If not, a handler must
    /// finish within one visibility timeout.
    pub renew: bool,
    /// Attempts at a message before it goes to the poison queue.
    pub max_dequeue: u32,
    /// Delays before the second and later attempts; the last one repeats.
    pub retry: Vec<Duration>,
    /// Bounds of the idle interval.
    pub idle: Idle,
    /// Bounds of the number of dequeue tasks.
    pub tasks: Tasks,
    /// Messages that one task handles at once, from 1 to [`SLOTS_MAX`].
    pub slots: u32,
    /// Tasks that poll while the queue is empty; with 0 only the watchdog looks.
    pub idle_tasks: u32,
    /// One idle poller for the whole fleet, in place of `idle_tasks` in each listener.
    pub sentinel: Option<SentinelConfig>,
    /// Interval between two looks of the watchdog while no task polls.
    pub watchdog: Duration,
    /// Policy that sets the number of tasks.
    pub policy: Policy,
    /// Time within which a backlog should be processed.
    pub drain_target: Duration,
    /// Time for which the load must stay lower before tasks are stopped.
    pub cooldown: Duration,
    /// Largest number of requests per second to the queue.
    pub rate_per_s: u32,
    /// Queue for failed messages; `None` for the queue's name with `-poison`.
    pub poison_queue: Option<String>,
    /// Encoding of the body in a message.
    pub encoding: Encoding,
    /// Longest time of one run of the handler.
    pub handler_timeout: Duration,
    /// Longest time that running handlers get to finish after a stop.
    pub grace: Duration,
    /// Whether a missing queue is created.
    pub create_queue: bool,
    /// Longest time of one request.
    pub call_timeout: Duration,
    /// How large payloads are stored; with `None` the listener reads no references.
    pub offload: Option<Offload>,
}

impl ListenerConfig {
    /// Returns the defaults for `queue`.
    pub fn new(queue: impl Into<String>) -> Self {
        let s = Duration::from_secs;
        ListenerConfig {
            queue: queue.into(),
            worker: "listener".to_owned(),
            visibility: s(60),
            renew: true,
            max_dequeue: 5,
            retry: vec![s(1), s(10), s(60), s(600)],
            idle: Idle {
                min: Duration::from_millis(100),
                max: s(30),
            },
            tasks: Tasks { min: 1, max: 8 },
            slots: 8,
            idle_tasks: 1,
            sentinel: None,
            watchdog: s(60),
            policy: Policy::Little,
            drain_target: s(1),
            cooldown: s(15),
            rate_per_s: 500,
            poison_queue: None,
            encoding: Encoding::Text,
            handler_timeout: s(300),
            grace: s(30),
            create_queue: false,
            call_timeout: s(30),
            offload: None,
        }
    }

    pub(crate) fn in_hand_max(&self) -> usize {
        (self.tasks.max as usize) * (self.slots as usize)
    }

    /// Returns the name of the poison queue.
    pub fn poison_queue(&self) -> String {
        self.poison_queue
            .clone()
            .unwrap_or_else(|| format!("{}-poison", self.queue))
    }

    /// Returns the longest time that a visible message waits for a get (LL1): the idle interval,
    /// the watchdog's interval, or the time until a dead sentinel is replaced.
    pub fn longest_sleep(&self) -> Duration {
        if let Some(sentinel) = &self.sentinel {
            let replaced = Sentinel::gap(sentinel.lease) + self.idle.max;
            replaced.max(self.watchdog)
        } else if self.idle_tasks > 0 {
            self.idle.max
        } else {
            self.watchdog
        }
    }

    /// Checks every setting and returns the first problem.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.faults().into_iter().next().map_or(Ok(()), Err)
    }

    /// Returns all problems.
    pub fn faults(&self) -> Vec<ConfigError> {
        let name = queue_name("queue", &self.queue);
        // The poison queue's default name derives from the queue's, whose fault is already
        // reported.
        let poison = match self.poison_queue.is_some() || name.is_ok() {
            true => queue_name("poison.queue", &self.poison_queue()),
            false => Ok(()),
        };
        let worker = match self.worker.is_empty() || self.worker.len() > WORKER_NAME_MAX_BYTES {
            true => wrong("worker", "must be 1 to 200 bytes long"),
            false => Ok(()),
        };
        let itself = match self.poison_queue() == self.queue {
            true => wrong("poison.queue", "must differ from the queue's own name"),
            false => Ok(()),
        };
        let checks = [name, poison, itself, worker, self.check_visibility()];
        let checks = checks.into_iter().chain(self.check_times());
        let offload = self.offload.iter().flat_map(Offload::faults).map(Err);
        let checks = checks.chain(self.check_sentinel()).chain(offload);
        checks
            .chain(self.check_counts())
            .filter_map(Result::err)
            .collect()
    }

    fn check_visibility(&self) -> Result<(), ConfigError> {
        within(
            "visibility",
            self.visibility,
            VISIBILITY_MIN,
            VISIBILITY_MAX,
        )?;
        if self.visibility.subsec_nanos() > 0 {
            return wrong("visibility", "must be in whole seconds");
        }
        if !self.renew && self.visibility <= min_start(self.visibility) {
            return wrong(
                "visibility",
                "is too short for any handler while `renew` is false",
            );
        }
        Ok(())
    }

    fn check_times(&self) -> [Result<(), ConfigError>; 9] {
        let day = Duration::from_secs(86_400);
        let ms = Duration::from_millis(1);
        let mut delays = self.retry.iter();
        let retry = delays.try_for_each(|d| within("retry", *d, Duration::ZERO, VISIBILITY_MAX));
        // An invalid minimum is clamped, so that it does not cause a second fault.
        let least = self.idle.min.clamp(ms, day);
        [
            retry,
            within("idle.min", self.idle.min, ms, day),
            within("idle.max", self.idle.max, least, day),
            within("watchdog", self.watchdog, Duration::from_secs(1), day),
            within("drain_target", self.drain_target, ms, day),
            within("cooldown", self.cooldown, Duration::ZERO, day),
            within("handler.timeout", self.handler_timeout, ms, VISIBILITY_MAX),
            within("grace", self.grace, Duration::ZERO, day),
            within("call_timeout", self.call_timeout, ms * 100, day),
        ]
    }

    fn check_sentinel(&self) -> Vec<Result<(), ConfigError>> {
        let Some(sentinel) = &self.sentinel else {
            return Vec::new();
        };
        let seconds = |s: &u64| Duration::from_secs(*s);
        let (least, most) = (seconds(LEASE_S.start()), seconds(LEASE_S.end()));
        vec![
            queue_name("sentinel.container", &sentinel.container),
            within("sentinel.lease", sentinel.lease, least, most),
        ]
    }

    fn check_counts(&self) -> Vec<Result<(), ConfigError>> {
        let tasks = self.tasks;
        let checks = [
            (
                self.max_dequeue == 0,
                "max_dequeue",
                "must be at least 1, or no message would be handled",
            ),
            (
                self.rate_per_s == 0,
                "rate",
                "must be at least 1 request per second",
            ),
            (
                self.slots == 0 || self.slots > SLOTS_MAX,
                "slots",
                "must be 1 to 32, as many as one get returns",
            ),
            (
                tasks.min == 0 || tasks.min > tasks.max || tasks.max > TASKS_MAX,
                "tasks",
                "must satisfy 1 <= min <= max <= 1000",
            ),
            (
                self.idle_tasks > tasks.min.max(1),
                "idle_tasks",
                "cannot be more than tasks.min",
            ),
        ];
        let wrongs = checks.into_iter().filter(|(is_wrong, ..)| *is_wrong);
        wrongs
            .map(|(_, setting, why)| wrong(setting, why))
            .collect()
    }
}

fn wrong<T>(setting: &'static str, problem: &str) -> Result<T, ConfigError> {
    Err(ConfigError::value(setting, problem))
}

fn within(
    setting: &'static str,
    value: Duration,
    least: Duration,
    most: Duration,
) -> Result<(), ConfigError> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    let (value, least, most) = (span::format(value), span::format(least), span::format(most));
    let problem = format!("{value} is not between {least} and {most}");
    Err(ConfigError::value(setting, problem))
}

/// Checks a queue name by Azure's rule: 3 to 63 lower-case letters, digits and single dashes, with
/// a letter or digit at both ends. `InputQueue` is invalid (DL21).
pub fn queue_name(setting: &'static str, name: &str) -> Result<(), ConfigError> {
    if names::validate_queue_name(name).is_ok() {
        return Ok(());
    }
    let problem = format!(
        "`{name}` is not a queue name: use 3 to 63 lower-case letters, digits and single dashes"
    );
    Err(ConfigError::value(setting, problem))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_valid() {
        ListenerConfig::new("orders").validate().unwrap();
    }

    fn sentinel(config: &mut ListenerConfig) -> &mut SentinelConfig {
        config.sentinel.get_or_insert_default()
    }

    /// DL21: the article's example name is rejected at the start, not ignored at the first trigger.
    #[test]
    fn dl21_names_are_checked() {
        for bad in [
            "InputQueue",
            "ab",
            "-abc",
            "abc-",
            "a--b",
            "a_b",
            "",
            &"x".repeat(64),
        ] {
            assert!(queue_name("name", bad).is_err(), "{bad}");
        }
        for good in ["abc", "orders-2026", "0a0", &"x".repeat(63)] {
            queue_name("name", good).unwrap();
        }
    }

    #[test]
    fn every_setting_is_checked() {
        type Change = fn(&mut ListenerConfig);
        let changes: [Change; 16] = [
            |c| c.visibility = Duration::ZERO,
            |c| c.visibility = Duration::from_secs(604_801),
            |c| c.visibility = Duration::from_millis(1500),
            |c| c.retry = vec![Duration::MAX],
            |c| c.idle.max = Duration::ZERO,
            |c| c.tasks.min = 0,
            |c| c.tasks.max = 0,
            |c| c.slots = 33,
            |c| c.slots = 0,
            |c| c.idle_tasks = 2,
            |c| c.max_dequeue = 0,
            |c| c.rate_per_s = 0,
            |c| c.poison_queue = Some("orders".to_owned()),
            |c| c.worker = String::new(),
            |c| sentinel(c).lease = Duration::from_secs(61),
            |c| sentinel(c).container = "No".to_owned(),
        ];
        for (number, change) in changes.iter().enumerate() {
            let mut config = ListenerConfig::new("orders");
            change(&mut config);
            assert_eq!(config.faults().len(), 1, "change {number}");
            assert!(config.validate().is_err(), "change {number}");
        }
        // Leaves out the checks that concern the same setting: the visibility's length, tasks,
        // slots.
        let mut config = ListenerConfig::new("orders");
        for number in [0, 3, 5, 7, 10, 11, 12, 13, 14] {
            changes[number](&mut config);
        }
        let faults = config.faults();
        let settings: Vec<_> = faults
            .iter()
            .map(|fault| match fault {
                ConfigError::Value { setting, .. } => *setting,
                other => panic!("{other}"),
            })
            .collect();
        let wanted = [
            "poison.queue",
            "worker",
            "visibility",
            "retry",
            "sentinel.lease",
            "max_dequeue",
            "rate",
            "slots",
            "tasks",
        ];
        assert_eq!(settings, wanted);
    }
}
