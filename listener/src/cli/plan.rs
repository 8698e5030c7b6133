//! The plan: checked settings from flags, environment and file, made before anything is opened.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use smalt_listener::config::file::{ConfigFile, QueueLayer, TRIGGER_EVERY, merge};
use smalt_listener::handler::Handler;
use smalt_listener::notify::Topic;
use smalt_listener::partition::PartitionSettings;
use smalt_listener::rules::cost::EXAMPLE_PRICE_PER_10K;
use smalt_listener::{ACCOUNT_RATE_PER_S, AccountLimit, ListenerConfig};
use smalt_worker::budget::Budget;
use smalt_worker::process::Process;
use smalt_worker::settings::Layers;

use super::flags::ListenFlags;
use super::on::On;
use super::program::handler;
use super::token::Token;

const TRIGGER_EVERY_MIN: Duration = Duration::from_millis(100);

pub(crate) struct Queue {
    pub(crate) config: ListenerConfig,
    /// Set for a partitioned queue.
    pub(crate) partitions: Option<PartitionSettings>,
    pub(crate) handler: Arc<dyn Handler>,
    /// The flags' settings over the file's.
    pub(crate) merged: QueueLayer,
    /// The source of each of them.
    pub(crate) layers: Layers,
}

impl Queue {
    /// Returns the topic whose events wake the listener, and the polling interval.
    pub(crate) fn trigger(&self) -> Option<(&str, Duration)> {
        let every = self.merged.trigger.every.map_or(TRIGGER_EVERY, |e| e.0);
        let queue = self.merged.trigger.queue.as_deref();
        queue.map(|queue| (queue, every))
    }
}

/// The checked settings of `run`, `once` and `validate`.
pub(crate) struct Plan {
    pub(crate) worker: String,
    pub(crate) health: Option<String>,
    pub(crate) metrics: Option<String>,
    pub(crate) token: Option<Token>,
    pub(crate) price: Option<f64>,
    pub(crate) budget: Option<Budget>,
    /// Requests per second of all queues together.
    pub(crate) account_rate: u32,
    pub(crate) queues: Vec<Queue>,
    pub(crate) on: Vec<On>,
}

impl Plan {
    /// Returns the topics to subscribe to, and how often to look at each.
    pub(crate) fn topics(&self) -> BTreeMap<&str, Duration> {
        let mut every: BTreeMap<&str, Duration> = BTreeMap::new();
        let queues = self.queues.iter().filter_map(Queue::trigger);
        for (topic, wished) in queues.chain(self.on.iter().filter_map(On::topic)) {
            let shortest = every.entry(topic).or_insert(wished);
            *shortest = wished.min(*shortest);
        }
        every
    }

    /// Returns the limit that the listeners share: requests per second, and the daily budget.
    pub(crate) fn account(&self) -> AccountLimit {
        let account = AccountLimit::new(self.account_rate);
        match self.budget {
            Some(budget) => account.with_budget(budget),
            None => account,
        }
    }
}

/// Makes the plan, or returns all problems.
pub(crate) fn make(file: &ConfigFile, flags: &ListenFlags) -> Result<Plan, Vec<anyhow::Error>> {
    let mut problems = Vec::new();
    let worker = worker(file, flags);
    let queues = queues(file, flags, &worker, &mut problems);
    let (look, in_file) = (&flags.look, &file.listener);
    let health = look.health.clone().or_else(|| in_file.health.clone());
    let metrics = look.metrics.clone().or_else(|| in_file.metrics.clone());
    for (setting, address) in [("health", &health), ("metrics", &metrics)] {
        if let Some(address) = address.as_ref().filter(|a| !is_address(a)) {
            problems.push(anyhow::anyhow!("{setting}: `{address}` is not HOST:PORT"));
        }
    }
    let token = in_file.notify_token.as_deref();
    let token = match token
        .map(|written| Token::named(written, &Process))
        .transpose()
    {
        Ok(token) => token,
        Err(error) => {
            problems.push(error.into());
            None
        }
    };
    let price = flags.scale.price.or(in_file.price);
    let max_cost = flags.scale.max_cost_per_day.or(in_file.max_cost_per_day);
    for (setting, money) in [("price", price), ("max_cost_per_day", max_cost)] {
        if money.is_some_and(|money| !money.is_finite() || money < 0.0) {
            problems.push(anyhow::anyhow!("{setting}: must be a number of 0 or more"));
        }
    }
    let account_rate = in_file.account_rate.unwrap_or(ACCOUNT_RATE_PER_S);
    if account_rate == 0 {
        problems.push(anyhow::anyhow!("account_rate: must be at least 1"));
    }
    problems.extend(in_file.agent.bounds().err().map(anyhow::Error::from));
    let mut on = Vec::new();
    for layer in &in_file.on {
        match On::of(layer) {
            Ok(handler) => on.push(handler),
            Err(problem) => problems.push(problem),
        }
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    Ok(Plan {
        worker,
        health,
        metrics,
        token,
        price,
        budget: max_cost.filter(|max| *max != 0.0).map(|max| Budget {
            max_cost_per_day: max,
            price_per_10k: price.unwrap_or(EXAMPLE_PRICE_PER_10K),
        }),
        account_rate,
        queues,
        on,
    })
}

/// Returns the valid queues and appends the problems of the others to `problems`.
fn queues(
    file: &ConfigFile,
    flags: &ListenFlags,
    worker: &str,
    problems: &mut Vec<anyhow::Error>,
) -> Vec<Queue> {
    let mut queues: Vec<Queue> = Vec::new();
    let chosen = chosen(file, flags);
    if chosen.is_empty() {
        problems.push(anyhow::anyhow!(
            "no queue is named: give --queue NAME, or [[listener.queue]] in a --config file"
        ));
    }
    for (at, below) in chosen.iter().enumerate() {
        let name = below.name.clone().unwrap_or_default();
        let mut earlier = chosen[..at].iter().map(|earlier| &earlier.name);
        if below.name.is_some() && earlier.any(|other| *other == below.name) {
            problems.push(anyhow::anyhow!(
                "queue `{name}`: is named twice; name it once"
            ));
            continue;
        }
        match queue(below, worker, file, flags) {
            Ok(queue) => queues.push(queue),
            Err(faults) => {
                let named = |fault: anyhow::Error| fault.context(format!("queue `{name}`"));
                problems.extend(faults.into_iter().map(named));
            }
        }
    }
    queues
}

fn is_address(text: &str) -> bool {
    let parts = text.rsplit_once(':');
    parts.is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
}

/// Returns the file's settings of the queues named by flags, or else of all of the file.
fn chosen(file: &ConfigFile, flags: &ListenFlags) -> Vec<QueueLayer> {
    let in_file = |name: &String| {
        let mut found = file.listener.queue.iter();
        found.find(|queue| queue.name.as_ref() == Some(name))
    };
    let named = |name: &String| QueueLayer {
        name: Some(name.clone()),
        ..QueueLayer::default()
    };
    let below: Vec<QueueLayer> = if flags.queue.is_empty() {
        file.listener.queue.clone()
    } else {
        let queues = flags.queue.iter();
        queues
            .map(|name| in_file(name).cloned().unwrap_or_else(|| named(name)))
            .collect()
    };
    let layered = below.into_iter().map(|queue| QueueLayer {
        profile: queue.profile.or(file.listener.profile),
        ..queue
    });
    layered.collect()
}

/// Returns the plan for a queue, or all its problems.
fn queue(
    below: &QueueLayer,
    worker: &str,
    file: &ConfigFile,
    flags: &ListenFlags,
) -> Result<Queue, Vec<anyhow::Error>> {
    let (merged, layers) = merge(&flags.layer(), below).map_err(|fault| vec![fault.into()])?;
    let (mut config, mut faults) = merged.draft(worker);
    let grace = flags.scale.grace.or(file.listener.grace.map(|g| g.0));
    config.grace = grace.unwrap_or(config.grace);
    faults.extend(config.faults());
    let mut faults: Vec<anyhow::Error> = faults.into_iter().map(Into::into).collect();
    faults.extend(trigger_faults(&merged, &config));
    // `draft` has already reported invalid partitions.
    let partitions = merged.partitions.settings(&config.queue).ok().flatten();
    match handler(&merged.handler) {
        Ok(handler) if faults.is_empty() => Ok(Queue {
            partitions,
            handler,
            config,
            merged,
            layers,
        }),
        Ok(_) => Err(faults),
        Err(fault) => {
            faults.push(fault);
            Err(faults)
        }
    }
}

fn trigger_faults(merged: &QueueLayer, config: &ListenerConfig) -> Vec<anyhow::Error> {
    let mut faults = Vec::new();
    if let Some(trigger) = &merged.trigger.queue {
        if let Err(fault) = Topic::check("trigger.queue", trigger) {
            faults.push(fault.into());
        } else if *trigger == config.queue || *trigger == config.poison_queue() {
            faults.push(anyhow::anyhow!(
                "trigger.queue: must differ from the queue and its poison queue"
            ));
        }
    }
    let every = merged.trigger.every.map_or(TRIGGER_EVERY, |every| every.0);
    if every < TRIGGER_EVERY_MIN {
        faults.push(anyhow::anyhow!("trigger.every: must be at least 100ms"));
    }
    faults
}

fn worker(file: &ConfigFile, flags: &ListenFlags) -> String {
    let named = flags.scale.worker_id.clone();
    named
        .or_else(|| file.listener.worker.clone())
        .unwrap_or_else(|| {
            let host = std::env::var("HOSTNAME").unwrap_or_else(|_| "listener".to_owned());
            format!("{host}-{}", std::process::id())
        })
}
