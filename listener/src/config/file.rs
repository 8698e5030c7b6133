//! The TOML file, and how flags, file and defaults become one queue's settings.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use smalt_worker::process::Sources;
use smalt_worker::settings::{Layers, Source};
use smalt_worker::span::Span;
use toml::Table;

use super::connection::ConnectionLayer;
use super::idle_tasks::IdleTasks;
use super::partitions::PartitionsLayer;
use super::profile::Profile;
use super::{ConfigError, Encoding, ListenerConfig, Policy, SentinelConfig, queue_name};
use crate::handler::exec::CommandLine;
use crate::handler::http::On4xx;
use crate::payload::OffloadLayer;
use crate::rules::instances::Bounds;

/// The configuration file.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ConfigFile {
    /// `[storage]`: the account.
    pub storage: ConnectionLayer,
    /// `[listener]`: the process and its queues.
    pub listener: ListenerTable,
}

/// `[listener]`: settings of the process, and its queues.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ListenerTable {
    /// Name of this worker in logs and requests.
    pub worker: Option<String>,
    /// Profile of the queues that name none.
    pub profile: Option<Profile>,
    /// Longest time that running handlers get to finish after a stop.
    pub grace: Option<Span>,
    /// `HOST:PORT` of `/livez`, `/readyz`, `/status` and `POST /notify`.
    pub health: Option<String>,
    /// `HOST:PORT` of `/metrics`; may be the same.
    pub metrics: Option<String>,
    /// Token that `POST /notify` requires, as `env:NAME` or `file:/path`; `None` requires none.
    pub notify_token: Option<String>,
    /// Requests per second of all queues together; `None` for the service's target.
    pub account_rate: Option<u32>,
    /// Price of 10,000 requests; adds the cost estimate to the metrics.
    pub price: Option<f64>,
    /// Largest cost of a day's requests, at `price`; 0 for no limit.
    pub max_cost_per_day: Option<f64>,
    /// `[listener.agent]`.
    pub agent: AgentLayer,
    /// `[[listener.queue]]`.
    pub queue: Vec<QueueLayer>,
    /// `[[listener.on]]`.
    pub on: Vec<OnLayer>,
}

/// `[listener.agent]`: when the command `agent` starts and stops instances.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AgentLayer {
    /// [`Bounds::min`].
    pub min: Option<u32>,
    /// [`Bounds::max`].
    pub max: Option<u32>,
    /// [`Bounds::depth_per_instance`].
    pub depth_per_instance: Option<u64>,
    /// [`Bounds::age_max`].
    pub age_max: Option<Span>,
    /// [`Bounds::processor_max`].
    pub processor_max: Option<f64>,
    /// [`Bounds::cooldown`].
    pub cooldown: Option<Span>,
    /// Interval between two looks; `None` for [`AGENT_EVERY`].
    pub every: Option<Span>,
}

/// Default interval between two looks of the agent.
pub const AGENT_EVERY: Duration = Duration::from_secs(10);

impl AgentLayer {
    /// Returns the bounds, and the interval between two looks.
    ///
    /// # Errors
    /// A value is out of range.
    pub fn bounds(&self) -> Result<(Bounds, Duration), ConfigError> {
        let base = Bounds::default();
        let span = |given: Option<Span>, base| given.map_or(base, |span: Span| span.0);
        let bounds = Bounds {
            min: self.min.unwrap_or(base.min),
            max: self.max.unwrap_or(base.max),
            depth_per_instance: self.depth_per_instance.unwrap_or(base.depth_per_instance),
            age_max: span(self.age_max, base.age_max),
            processor_max: self.processor_max.unwrap_or(base.processor_max),
            cooldown: span(self.cooldown, base.cooldown),
        };
        let every = span(self.every, AGENT_EVERY);
        let checks = [
            ("listener.agent.max", bounds.max >= 1, "at least 1"),
            (
                "listener.agent.min",
                bounds.min <= bounds.max,
                "at most max",
            ),
            (
                "listener.agent.depth_per_instance",
                bounds.depth_per_instance >= 1,
                "at least 1",
            ),
            (
                "listener.agent.processor_max",
                bounds.processor_max > 0.0 && bounds.processor_max <= 1.0,
                "above 0 and at most 1",
            ),
            (
                "listener.agent.every",
                every >= Duration::from_secs(1),
                "at least 1s",
            ),
        ];
        match checks.into_iter().find(|(_, holds, _)| !holds) {
            Some((name, _, range)) => Err(ConfigError::value(name, format!("must be {range}"))),
            None => Ok((bounds, every)),
        }
    }
}

/// `[[listener.on]]`: what handles the events of one name.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OnLayer {
    /// Name of the events.
    pub event: String,
    /// Topic that brings them; without one, only `POST /notify` does.
    #[serde(default)]
    pub topic: Option<String>,
    /// The handler, whose input is the event as JSON.
    #[serde(default)]
    pub handler: HandlerLayer,
}

/// A queue's settings as given in one place, by flags or file. Unset values come from lower layers.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct QueueLayer {
    /// Name of the queue.
    pub name: Option<String>,
    /// Named set of defaults.
    pub profile: Option<Profile>,
    /// [`ListenerConfig::visibility`].
    pub visibility: Option<Span>,
    /// [`ListenerConfig::renew`].
    pub renew: Option<bool>,
    /// [`ListenerConfig::max_dequeue`].
    pub max_dequeue: Option<u32>,
    /// [`ListenerConfig::retry`].
    pub retry: Option<Vec<Span>>,
    /// [`ListenerConfig::idle`].
    pub idle: IdleLayer,
    /// [`ListenerConfig::tasks`].
    pub tasks: TasksLayer,
    /// [`ListenerConfig::slots`].
    pub slots: Option<u32>,
    /// [`ListenerConfig::idle_tasks`], or `"sentinel"`.
    pub idle_tasks: Option<IdleTasks>,
    /// [`ListenerConfig::sentinel`], used if `idle_tasks` is `"sentinel"`.
    pub sentinel: SentinelLayer,
    /// [`ListenerConfig::watchdog`].
    pub watchdog: Option<Span>,
    /// [`ListenerConfig::policy`].
    pub policy: Option<Policy>,
    /// [`ListenerConfig::drain_target`].
    pub drain_target: Option<Span>,
    /// [`ListenerConfig::cooldown`].
    pub cooldown: Option<Span>,
    /// [`ListenerConfig::rate_per_s`].
    pub rate: Option<u32>,
    /// [`ListenerConfig::poison_queue`].
    pub poison: PoisonLayer,
    /// [`ListenerConfig::encoding`].
    pub encoding: Option<Encoding>,
    /// [`ListenerConfig::create_queue`].
    pub create_queue: Option<bool>,
    /// [`ListenerConfig::call_timeout`].
    pub call_timeout: Option<Span>,
    /// [`ListenerConfig::offload`].
    pub offload: OffloadLayer,
    /// Settings of a partitioned queue.
    pub partitions: PartitionsLayer,
    /// Topic whose events wake the listener.
    pub trigger: TriggerLayer,
    /// What handles the messages.
    pub handler: HandlerLayer,
}

/// `trigger = { queue, every }`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct TriggerLayer {
    /// Topic of the events; may serve many listeners.
    pub queue: Option<String>,
    /// Interval between two looks; `None` for [`TRIGGER_EVERY`].
    pub every: Option<Span>,
}

/// Default interval between two looks at the events of a topic.
pub const TRIGGER_EVERY: Duration = Duration::from_secs(1);

/// `idle = { min, max }`.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct IdleLayer {
    /// First interval.
    pub min: Option<Span>,
    /// Longest interval.
    pub max: Option<Span>,
}

/// `sentinel = { container, lease }`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct SentinelLayer {
    /// Container of the sentinel's blob.
    pub container: Option<String>,
    /// Length of the lease, 15 s to 60 s.
    pub lease: Option<Span>,
}

/// `tasks = { min, max }`.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct TasksLayer {
    /// [`Tasks::min`](super::Tasks::min).
    pub min: Option<u32>,
    /// [`Tasks::max`](super::Tasks::max).
    pub max: Option<u32>,
}

/// `poison = { queue }`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct PoisonLayer {
    /// [`ListenerConfig::poison_queue`].
    pub queue: Option<String>,
}

/// `handler = { ... }`: either `exec` or `http`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct HandlerLayer {
    /// Command: a shell command line, or a list of program and arguments.
    pub exec: Option<CommandLine>,
    /// Environment variables that the command gets in addition to
    /// [`BASE_ENVIRONMENT`](crate::handler::exec::BASE_ENVIRONMENT).
    pub env: Option<Vec<String>>,
    /// URL to post each message to.
    pub http: Option<String>,
    /// `Content-Type` of the posts.
    pub content_type: Option<String>,
    /// Verdict for a 4xx status without a meaning of its own.
    pub on_4xx: Option<On4xx>,
    /// [`ListenerConfig::handler_timeout`].
    pub timeout: Option<Span>,
}

impl ConfigFile {
    /// Returns the settings of the queue with this name.
    pub fn queue(&self, name: &str) -> Option<&QueueLayer> {
        let mut layers = self.listener.queue.iter();
        layers.find(|layer| layer.name.as_deref() == Some(name))
    }
}

/// Loads the file at `path`.
pub fn load(path: &str, sources: &dyn Sources) -> Result<ConfigFile, ConfigError> {
    let text = sources.file(path).map_err(|source| ConfigError::Read {
        path: path.to_owned(),
        source,
    })?;
    toml::from_str(&text).map_err(|error| ConfigError::Toml {
        path: path.to_owned(),
        line: error.span().map_or(1, |span| {
            1 + text.as_bytes()[..span.start.min(text.len())]
                .iter()
                .filter(|byte| **byte == b'\n')
                .count()
        }),
        problem: error.message().replace('\n', ", "),
    })
}

/// Merges the flags over the file's settings of a queue. Returns the result, and the source of each
/// value.
///
/// # Errors
/// A value has no form in the file.
pub fn merge(flags: &QueueLayer, below: &QueueLayer) -> Result<(QueueLayer, Layers), ConfigError> {
    let table = |layer: &QueueLayer| Table::try_from(layer).map_err(unwritable);
    let mut layers = Layers::default();
    layers.add_table(table(below)?, &Source::File);
    if flags.handler.exec.is_some() || flags.handler.http.is_some() {
        // A flag that names a handler replaces the file's, because the two kinds cannot be mixed.
        layers.remove("handler.exec");
        layers.remove("handler.http");
    }
    layers.add_table(table(flags)?, &Source::Flag);
    let merged = layers.table().clone().try_into().map_err(unwritable)?;
    Ok((merged, layers))
}

fn unwritable(error: impl std::fmt::Display) -> ConfigError {
    ConfigError::value("queue", error.to_string())
}

impl HandlerLayer {
    /// Checks the names of the variables to pass to the command.
    fn faults(&self) -> Vec<ConfigError> {
        let names = self.env.iter().flatten();
        let wrong = names.filter(|name| {
            let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
            name.is_empty() || !name.chars().all(plain)
        });
        let fault = |name: &String| {
            let problem = format!("`{name}` is not the name of a variable; give each name in full");
            ConfigError::value("handler.env", problem)
        };
        wrong.map(fault).collect()
    }
}

impl SentinelLayer {
    fn settings(&self) -> SentinelConfig {
        let default = SentinelConfig::default();
        SentinelConfig {
            container: self.container.clone().unwrap_or(default.container),
            lease: self.lease.map_or(default.lease, |Span(lease)| lease),
        }
    }
}

impl QueueLayer {
    /// Returns the checked settings; unset values come from the profile. Returns the first problem.
    pub fn settings(&self, worker: &str) -> Result<ListenerConfig, ConfigError> {
        let (config, mut faults) = self.draft(worker);
        faults.extend(config.faults());
        faults.into_iter().next().map_or(Ok(config), Err)
    }

    /// Returns the settings, and the problems of values that do not become part of them. The caller
    /// checks the settings' own [faults](ListenerConfig::faults), since it may change some first.
    pub fn draft(&self, worker: &str) -> (ListenerConfig, Vec<ConfigError>) {
        let mut faults = Vec::new();
        if self.name.is_none() {
            faults.push(ConfigError::value("queue", "give a queue: --queue NAME"));
        }
        let name = self.name.as_deref().unwrap_or("nameless");
        let mut c = self.profile.unwrap_or_default().config(name);
        worker.clone_into(&mut c.worker);
        let set = |target: &mut Duration, value: Option<Span>| {
            if let Some(Span(duration)) = value {
                *target = duration;
            }
        };
        set(&mut c.visibility, self.visibility);
        set(&mut c.idle.min, self.idle.min);
        set(&mut c.idle.max, self.idle.max);
        set(&mut c.watchdog, self.watchdog);
        set(&mut c.drain_target, self.drain_target);
        set(&mut c.cooldown, self.cooldown);
        set(&mut c.call_timeout, self.call_timeout);
        set(&mut c.handler_timeout, self.handler.timeout);
        c.renew = self.renew.unwrap_or(c.renew);
        c.max_dequeue = self.max_dequeue.unwrap_or(c.max_dequeue);
        if let Some(retry) = &self.retry {
            c.retry = retry.iter().map(|Span(delay)| *delay).collect();
        }
        c.tasks.min = self.tasks.min.unwrap_or(c.tasks.min);
        c.tasks.max = self.tasks.max.unwrap_or(c.tasks.max.max(c.tasks.min));
        c.slots = self.slots.unwrap_or(c.slots);
        match self.idle_tasks {
            Some(IdleTasks::Each(tasks)) => c.idle_tasks = tasks,
            Some(IdleTasks::Sentinel) => c.sentinel = Some(self.sentinel.settings()),
            None => {}
        }
        c.policy = self.policy.unwrap_or(c.policy);
        c.rate_per_s = self.rate.unwrap_or(c.rate_per_s);
        c.poison_queue.clone_from(&self.poison.queue);
        c.encoding = self.encoding.unwrap_or(c.encoding);
        c.create_queue = self.create_queue.unwrap_or(c.create_queue);
        c.offload = self.offload.settings().ok().flatten();
        faults.extend(self.offload.faults());
        faults.extend(self.handler.faults());
        // An invalid queue name is reported only once.
        let sound = queue_name("queue", name).map_or("nameless", |()| name);
        faults.extend(self.partitions.faults(sound));
        (c, faults)
    }
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
