//! What `run`, `once` and `validate` can be told about the work itself.

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

/// Flags of `run` and `once`.
#[derive(Args, Clone)]
pub(crate) struct WorkFlags {
    #[command(flatten)]
    pub(crate) listen: ListenFlags,
    /// Look at each queue and say what the pool on it would be; take nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// What they and `validate` share.
#[derive(Args, Clone)]
pub(crate) struct ListenFlags {
    /// Queue to process; with a file, only this one of its queues. May be repeated.
    #[arg(
        long,
        value_name = "NAME",
        env = "LISTENER_QUEUE",
        value_delimiter = ','
    )]
    pub(crate) queue: Vec<String>,
    /// What stands in the place of the defaults: default, seed (the source article's listener),
    /// low-latency, throughput or frugal. Every other setting wins over it.
    #[arg(long, value_name = "NAME", env = "LISTENER_PROFILE")]
    profile: Option<Profile>,
    /// Command per message: body on standard input, facts in MSG_*; exit 0 ok, 65 reject, 126
    /// and 127 stop the listener, else retry.
    #[arg(
        long,
        value_name = "COMMAND",
        env = "LISTENER_EXEC",
        conflicts_with = "http"
    )]
    exec: Option<String>,
    /// Variables that the command gets of this environment, besides PATH, HOME, USER, LOGNAME,
    /// SHELL, TERM, TMPDIR, TZ, LANG and LC_*. Nothing else is passed on: credentials stay here.
    #[arg(
        long,
        value_name = "NAME",
        env = "LISTENER_EXEC_ENV",
        value_delimiter = ','
    )]
    exec_env: Option<Vec<String>>,
    /// URL to post each message to: 2xx ok, 409 and 422 reject, 429 and 503 retry.
    #[arg(long, value_name = "URL", env = "LISTENER_HTTP")]
    http: Option<String>,
    /// Most time for one message.
    #[arg(long, value_name = "TIME", env = "LISTENER_TIMEOUT", value_parser = span::parse)]
    timeout: Option<Duration>,
    /// How long a taken message is hidden at a time; renewed at half.
    #[arg(long, value_name = "TIME", env = "LISTENER_VISIBILITY", value_parser = span::parse)]
    visibility: Option<Duration>,
    /// Attempts before a message goes to the poison queue.
    #[arg(long, value_name = "N", env = "LISTENER_MAX_DEQUEUE")]
    max_dequeue: Option<u32>,
    /// Delays before further attempts, like 1s,10s,1m.
    #[arg(
        long,
        value_name = "TIMES",
        env = "LISTENER_RETRY",
        value_delimiter = ','
    )]
    #[arg(value_parser = span::parse)]
    retry: Option<Vec<Duration>>,
    /// Poison queue; by default the queue's name with -poison.
    #[arg(long, value_name = "NAME", env = "LISTENER_POISON_QUEUE")]
    poison_queue: Option<String>,
    /// How bodies are written into messages.
    #[arg(long, env = "LISTENER_ENCODING")]
    encoding: Option<Encoding>,
    /// Create the queue when it is missing.
    #[arg(long, env = "LISTENER_CREATE_QUEUE", num_args = 0..=1, default_missing_value = "true")]
    create_queue: Option<bool>,
    #[command(flatten)]
    pub(crate) scale: ScaleFlags,
    #[command(flatten)]
    pub(crate) look: LookFlags,
}

#[derive(Args, Clone)]
#[command(next_help_heading = "Scale")]
pub(crate) struct ScaleFlags {
    /// Fewest dequeue tasks while there is work.
    #[arg(long, value_name = "N", env = "LISTENER_TASKS_MIN")]
    tasks_min: Option<u32>,
    /// Most dequeue tasks.
    #[arg(long, value_name = "N", env = "LISTENER_TASKS_MAX")]
    tasks_max: Option<u32>,
    /// Messages that one task handles at once (1 to 32).
    #[arg(long, value_name = "N", env = "LISTENER_SLOTS")]
    slots: Option<u32>,
    /// Tasks that go on polling while idle; 0 leaves only the watchdog, `sentinel` one poller for
    /// the whole fleet.
    #[arg(long, value_name = "N", env = "LISTENER_IDLE_TASKS")]
    idle_tasks: Option<IdleTasks>,
    /// Longest idle interval.
    #[arg(long, value_name = "TIME", env = "LISTENER_IDLE_MAX", value_parser = span::parse)]
    idle_max: Option<Duration>,
    /// How the number of tasks is chosen.
    #[arg(long, env = "LISTENER_POLICY")]
    policy: Option<Policy>,
    /// Most requests per second to the queue.
    #[arg(long, value_name = "N", env = "LISTENER_RATE")]
    rate: Option<u32>,
    /// Take no more messages on a day whose requests would cost more; go on the next day (UTC).
    #[arg(long, value_name = "MONEY", env = "LISTENER_MAX_COST_PER_DAY")]
    pub(crate) max_cost_per_day: Option<f64>,
    /// Price of 10,000 requests. For --max-cost-per-day the default is that of `cost`: an example.
    #[arg(long, value_name = "MONEY", env = "LISTENER_PRICE")]
    pub(crate) price: Option<f64>,
    /// Most time for running handlers after the order to stop.
    #[arg(long, value_name = "TIME", env = "LISTENER_GRACE", value_parser = span::parse)]
    pub(crate) grace: Option<Duration>,
    /// Name of this worker in logs and requests.
    #[arg(long, value_name = "NAME", env = "LISTENER_WORKER_ID")]
    pub(crate) worker_id: Option<String>,
    /// Seed of all randomness.
    #[arg(long, value_name = "N", env = "LISTENER_SEED")]
    pub(crate) seed: Option<u64>,
}

#[derive(Args, Clone)]
#[command(next_help_heading = "Looking in")]
pub(crate) struct LookFlags {
    /// Answer /livez, /readyz, /status and POST /notify here.
    #[arg(long, value_name = "HOST:PORT", env = "LISTENER_HEALTH")]
    pub(crate) health: Option<String>,
    /// Answer /metrics here, in Prometheus' text form; may be the same address.
    #[arg(long, value_name = "HOST:PORT", env = "LISTENER_METRICS")]
    pub(crate) metrics: Option<String>,
    /// Queue whose messages wake the listener (see `notify`).
    #[arg(long, value_name = "NAME", env = "LISTENER_TRIGGER_QUEUE")]
    trigger_queue: Option<String>,
}

impl ListenFlags {
    /// The flags as a layer over the file.
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
