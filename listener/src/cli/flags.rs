//! The flags of `run`, `once` and `validate` that configure the listeners.

use std::time::Duration;

use clap::Args;
use smalt_listener::config::file::{
    HandlerLayer, IdleLayer, PoisonLayer, QueueLayer, TasksLayer, TriggerLayer,
};
use smalt_listener::config::idle_tasks::IdleTasks;
use smalt_listener::config::profile::Profile;
use smalt_listener::config::{Encoding, Policy};
use smalt_listener::handler::exec::CommandLine;
use smalt_worker::span;

#[derive(Args, Clone)]
pub(crate) struct WorkFlags {
    #[command(flatten)]
    pub(crate) listen: ListenFlags,
    /// Check each queue and print the pool that would process it; receive no messages.
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Args, Clone)]
pub(crate) struct ListenFlags {
    /// Queue to process. With a --config file, process only this queue of the file. May be
    /// repeated.
    #[arg(long, value_name = "NAME")]
    #[arg(env = "LISTENER_QUEUE", value_delimiter = ',')]
    pub(crate) queue: Vec<String>,
    /// Named set of defaults: default, seed (the source article's listener), low-latency,
    /// throughput or frugal. Every explicit setting overrides it.
    #[arg(long, value_name = "NAME", env = "LISTENER_PROFILE")]
    profile: Option<Profile>,
    /// Shell command to run for each message, for example 'jq .id'. It reads the body from standard
    /// input and the message's properties from MSG_* variables. Exit status 0 means ok, 65 reject;
    /// 126 and 127 stop the listener; any other means retry.
    #[arg(long, value_name = "COMMAND")]
    #[arg(env = "LISTENER_EXEC", conflicts_with = "http")]
    exec: Option<String>,
    /// Environment variables to pass to the command in addition to PATH, HOME, USER, LOGNAME,
    /// SHELL, TERM, TMPDIR, TZ, LANG and LC_*. The command inherits no other variable, so that it
    /// gets no credentials.
    #[arg(long, value_name = "NAME")]
    #[arg(env = "LISTENER_EXEC_ENV", value_delimiter = ',')]
    exec_env: Option<Vec<String>>,
    /// URL to post each message to. Status 2xx means ok, 409 and 422 reject, 429 and 503 retry.
    #[arg(long, value_name = "URL", env = "LISTENER_HTTP")]
    http: Option<String>,
    /// Longest run time of the handler for one message, for example 10m. Default: 5m.
    #[arg(long, value_name = "TIME", env = "LISTENER_TIMEOUT", value_parser = span::parse)]
    timeout: Option<Duration>,
    /// Visibility timeout of received messages, in whole seconds from 1s to 7d; renewed after half
    /// of it. Default: 60s.
    #[arg(long, value_name = "TIME", env = "LISTENER_VISIBILITY", value_parser = span::parse)]
    visibility: Option<Duration>,
    /// Attempts, from 1, before a message goes to the poison queue. Default: 5.
    #[arg(long, value_name = "N", env = "LISTENER_MAX_DEQUEUE")]
    max_dequeue: Option<u32>,
    /// Delays before the second and later attempts, each up to 7d; the last one repeats. Default:
    /// 1s,10s,1m,10m.
    #[arg(long, value_name = "TIMES")]
    #[arg(env = "LISTENER_RETRY", value_delimiter = ',')]
    #[arg(value_parser = span::parse)]
    retry: Option<Vec<Duration>>,
    /// Queue for messages that failed. Default: the queue's name followed by -poison.
    #[arg(long, value_name = "NAME", env = "LISTENER_POISON_QUEUE")]
    poison_queue: Option<String>,
    /// Encoding of the bodies in the messages. Default: text.
    #[arg(long, env = "LISTENER_ENCODING")]
    encoding: Option<Encoding>,
    /// Create the queue if it does not exist. Default: false.
    #[arg(long, env = "LISTENER_CREATE_QUEUE", num_args = 0..=1, default_missing_value = "true")]
    create_queue: Option<bool>,
    #[command(flatten)]
    pub(crate) scale: ScaleFlags,
    #[command(flatten)]
    pub(crate) look: LookFlags,
}

#[derive(Args, Clone)]
#[command(next_help_heading = "Scaling")]
pub(crate) struct ScaleFlags {
    /// Smallest number of dequeue tasks while there is work, from 1 to 1000. Default: 1.
    #[arg(long, value_name = "N", env = "LISTENER_TASKS_MIN")]
    tasks_min: Option<u32>,
    /// Largest number of dequeue tasks, from 1 to 1000. Default: 8.
    #[arg(long, value_name = "N", env = "LISTENER_TASKS_MAX")]
    tasks_max: Option<u32>,
    /// Messages that one task receives with one get and handles at once, from 1 to 32. Default: 8.
    #[arg(long, value_name = "N", env = "LISTENER_SLOTS")]
    slots: Option<u32>,
    /// Tasks that poll while the queue is empty; 0 leaves only the watchdog, `sentinel` one poller
    /// for the whole fleet. Default: 1.
    #[arg(long, value_name = "N", env = "LISTENER_IDLE_TASKS")]
    idle_tasks: Option<IdleTasks>,
    /// Longest interval between two polls of an idle task, from 1ms to 1d. Default: 30s.
    #[arg(long, value_name = "TIME", env = "LISTENER_IDLE_MAX", value_parser = span::parse)]
    idle_max: Option<Duration>,
    /// Policy that sets the number of tasks. Default: little.
    #[arg(long, env = "LISTENER_POLICY")]
    policy: Option<Policy>,
    /// Largest number of requests per second to one queue, from 1. Default: 500.
    #[arg(long, value_name = "N", env = "LISTENER_RATE")]
    rate: Option<u32>,
    /// Stop receiving messages when the day's requests have cost this much, until the next day
    /// (UTC); 0 sets no limit. Default: 0.
    #[arg(long, value_name = "MONEY", env = "LISTENER_MAX_COST_PER_DAY")]
    pub(crate) max_cost_per_day: Option<f64>,
    /// Price of 10,000 requests. With --max-cost-per-day it defaults to the example price that
    /// `cost` prints.
    #[arg(long, value_name = "MONEY", env = "LISTENER_PRICE")]
    pub(crate) price: Option<f64>,
    /// Longest time that running handlers get to finish after a stop signal. Default: 30s.
    #[arg(long, value_name = "TIME", env = "LISTENER_GRACE", value_parser = span::parse)]
    pub(crate) grace: Option<Duration>,
    /// Name of this worker in logs and requests. Default: host name and process id.
    #[arg(long, value_name = "NAME", env = "LISTENER_WORKER_ID")]
    pub(crate) worker_id: Option<String>,
    /// Seed for all random choices, to repeat a run. Default: a random seed.
    #[arg(long, value_name = "N", env = "LISTENER_SEED")]
    pub(crate) seed: Option<u64>,
}

#[derive(Args, Clone)]
#[command(next_help_heading = "Monitoring")]
pub(crate) struct LookFlags {
    /// Address that serves /livez, /readyz, /status and POST /notify, for example 127.0.0.1:9100.
    #[arg(long, value_name = "HOST:PORT", env = "LISTENER_HEALTH")]
    pub(crate) health: Option<String>,
    /// Address that serves /metrics in the Prometheus text format; may be the same as --health.
    #[arg(long, value_name = "HOST:PORT", env = "LISTENER_METRICS")]
    pub(crate) metrics: Option<String>,
    /// Topic whose events wake the listener: `send --notify-to queue:NAME` and `notify --to
    /// queue:NAME` publish them. The process reads them from a queue of its own.
    #[arg(long, value_name = "NAME", env = "LISTENER_TRIGGER_QUEUE")]
    trigger_queue: Option<String>,
}

impl ListenFlags {
    /// Returns the flags as a layer over the file.
    pub(crate) fn layer(&self) -> QueueLayer {
        let human = |d: Option<Duration>| d.map(span::Span);
        let s = &self.scale;
        QueueLayer {
            profile: self.profile,
            visibility: human(self.visibility),
            max_dequeue: self.max_dequeue,
            retry: self
                .retry
                .as_ref()
                .map(|delays| delays.iter().copied().map(span::Span).collect()),
            idle: IdleLayer {
                min: None,
                max: human(s.idle_max),
            },
            tasks: TasksLayer {
                min: s.tasks_min,
                max: s.tasks_max,
            },
            slots: s.slots,
            idle_tasks: s.idle_tasks,
            policy: s.policy,
            rate: s.rate,
            poison: PoisonLayer {
                queue: self.poison_queue.clone(),
            },
            encoding: self.encoding,
            create_queue: self.create_queue,
            trigger: TriggerLayer {
                queue: self.look.trigger_queue.clone(),
                every: None,
            },
            handler: HandlerLayer {
                exec: self.exec.clone().map(CommandLine::Shell),
                env: self.exec_env.clone(),
                http: self.http.clone(),
                timeout: human(self.timeout),
                ..HandlerLayer::default()
            },
            ..QueueLayer::default()
        }
    }
}
