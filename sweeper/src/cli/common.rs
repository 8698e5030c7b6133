//! Options that all commands share, their conversion to settings, and the start of the log and the
//! worker.

use anyhow::Result;
use clap::Args;
use serde::Serialize;
use smalt_protocol::terminal;
use smalt_sleeve::Identity;
use smalt_sweeper::Sweeper;
use smalt_sweeper::settings::Settings;
use smalt_worker::access::Auth;
use smalt_worker::log;
use toml::Value;

use crate::connect;

/// Options of every command. Pass secrets indirectly, as `env:NAME` or `file:/path`.
#[derive(Debug, Args)]
pub(crate) struct Common {
    /// Read settings from this TOML file.
    #[arg(long, value_name = "FILE", env = "SWEEPER_CONFIG")]
    pub(crate) config: Option<String>,
    /// Connection string of the storage account; UseDevelopmentStorage=true selects a local
    /// emulator.
    #[arg(long, value_name = "TEXT", help_heading = "Account")]
    connection_string: Option<String>,
    /// Name of the storage account.
    #[arg(long, value_name = "NAME", help_heading = "Account")]
    account: Option<String>,
    /// Shared key of the storage account.
    #[arg(long, value_name = "BASE64", help_heading = "Account")]
    #[arg(conflicts_with = "sas")]
    account_key: Option<String>,
    /// Shared access signature. It needs read, list and delete; for the account of dead blobs read,
    /// create and write.
    #[arg(long, value_name = "TEXT", help_heading = "Account")]
    sas: Option<String>,
    /// Authenticate with Entra ID tokens instead of a key or SAS; requires https.
    #[arg(long, help_heading = "Account")]
    #[arg(conflicts_with_all = ["account_key", "sas", "connection_string"])]
    auth: Option<Auth>,
    /// Blob endpoint, for example http://127.0.0.1:10000/devstoreaccount1.
    #[arg(long, value_name = "URL", help_heading = "Account")]
    endpoint: Option<String>,
    /// Trust the certificate authorities in this PEM file in addition to the public ones.
    #[arg(long, value_name = "FILE", help_heading = "Account")]
    ca_file: Option<String>,
    /// Connect to this address instead of the endpoint's own; host names and certificate checks do
    /// not change.
    #[arg(long, value_name = "HOST:PORT", help_heading = "Account")]
    connect_to: Option<String>,

    /// Sweep this container, or only the blobs in it whose names start with PREFIX. Repeat for
    /// several. Fails if the state document lists other containers.
    #[arg(
        long = "container",
        value_name = "NAME[/PREFIX]",
        help_heading = "Sweep"
    )]
    containers: Vec<String>,
    /// Move due blobs to this container instead of deleting them, unless a blob names its own
    /// destination. Example: archive/events/.
    #[arg(long, value_name = "NAME[/PREFIX/]", help_heading = "Sweep")]
    dead_container: Option<String>,
    /// Configured account that receives dead blobs; `default` is the swept account.
    #[arg(long, value_name = "NAME", help_heading = "Sweep")]
    dead_account: Option<String>,
    /// Allow blobs to choose this container as their destination; patterns such as archive-* work.
    /// Repeat for several. Without this option, blobs may choose only the configured dead
    /// container. Containers whose names begin with $ and the container of the state document are
    /// never allowed.
    #[arg(long, value_name = "NAME", help_heading = "Sweep")]
    dead_allow: Vec<String>,
    /// Connection string of a separate account for dead blobs.
    #[arg(long, value_name = "TEXT", help_heading = "Sweep")]
    dead_connection_string: Option<String>,
    /// What to do if another blob exists at the destination: fail (default), suffix or overwrite.
    #[arg(long, value_name = "POLICY", help_heading = "Sweep")]
    on_collision: Option<String>,
    /// Wait this long after a blob is due before removing it, for example 1h.
    #[arg(long, value_name = "SPAN", help_heading = "Sweep")]
    ttl_grace: Option<String>,
    /// Ignore the circuit breaker's limits (guard.max_per_cycle, guard.max_fraction) for this run.
    /// The fraction applies only after 100 blobs of a container have been listed.
    #[arg(long, help_heading = "Sweep")]
    approve: bool,

    /// Location of the state document, as CONTAINER/BLOB [default: smalt-sweeper/TimeToLiveBlobs],
    /// or as the URI of the blob with its SAS; SWEEPER_STATE keeps that off the command line.
    #[arg(long, value_name = "PLACE", help_heading = "Worker")]
    state: Option<String>,
    /// How workers coordinate writes to the state document: lease (default) or etag.
    #[arg(long, value_name = "KIND", help_heading = "Worker")]
    state_backend: Option<String>,
    /// Interval between the starts of cycles, for example 10m (default).
    #[arg(long, value_name = "SPAN", help_heading = "Worker")]
    every: Option<String>,
    /// Blobs per page, 1 to 5000 [default: 1000].
    #[arg(long, value_name = "N", help_heading = "Worker")]
    page_size: Option<u32>,
    /// Blobs that one worker processes at a time, 1 to 256 [default: 15].
    #[arg(long, value_name = "N", help_heading = "Worker")]
    parallelism: Option<u32>,
    /// Let other workers take over a page that has shown no progress for this long, at least 20s
    /// [default: 2m].
    #[arg(long, value_name = "SPAN", help_heading = "Worker")]
    page_deadline: Option<String>,
    /// Limit on storage calls per second; 0 means no limit (default).
    #[arg(long, value_name = "N", help_heading = "Worker")]
    rate: Option<f64>,
    /// Stop for the day (UTC) when further charged calls would exceed this cost; continue the next
    /// day.
    #[arg(long, value_name = "MONEY", help_heading = "Worker")]
    max_cost_per_day: Option<f64>,
    /// Sweep although the service's clock differs from this machine's by more than ten minutes, as
    /// after moving an emulator's clock.
    #[arg(long, help_heading = "Worker")]
    trust_service_clock: bool,
    /// Time allowed for a clean stop [default: 30s].
    #[arg(long, value_name = "SPAN", help_heading = "Worker")]
    grace: Option<String>,
    /// Name of this worker in the state document and the log.
    #[arg(long, value_name = "ID", help_heading = "Worker")]
    worker_id: Option<String>,
    /// Seed for all random choices, to reproduce a run.
    #[arg(long, value_name = "N", help_heading = "Worker")]
    seed: Option<u32>,

    /// Serve /livez, /readyz and /status at this address during `run`, for example 127.0.0.1:9100.
    #[arg(long, value_name = "ADDRESS:PORT", help_heading = "Worker")]
    health: Option<String>,
    /// Serve /metrics for Prometheus at this address during `run`.
    #[arg(long, value_name = "ADDRESS:PORT", help_heading = "Worker")]
    metrics: Option<String>,
    /// Set of defaults: default, or compat for the original design (pages of 100, moves overwrite,
    /// blobs may choose any container; restrict that with --dead-allow).
    #[arg(long, value_name = "NAME", help_heading = "Worker")]
    profile: Option<String>,

    /// Format of the log on stderr.
    #[arg(long, help_heading = "Log")]
    #[arg(default_value = "text", env = "SWEEPER_LOG")]
    pub(crate) log: log::Format,
    /// Log level (error, warn, info, debug, trace) or a filter such as smalt_sweeper=debug.
    #[arg(long, help_heading = "Log")]
    #[arg(default_value = "info", env = "SWEEPER_LOG_LEVEL")]
    pub(crate) log_level: String,
}

impl Common {
    pub(crate) fn on_collision(&self) -> Option<&str> {
        self.on_collision.as_deref()
    }

    /// Returns the given flags as pairs of configuration path and value.
    pub(crate) fn flags(&self) -> Vec<(&'static str, Value)> {
        let texts = [
            ("account.default.connection_string", &self.connection_string),
            ("account.default.name", &self.account),
            ("account.default.key", &self.account_key),
            ("account.default.sas", &self.sas),
            ("account.default.endpoint", &self.endpoint),
            (
                "account.dead.connection_string",
                &self.dead_connection_string,
            ),
            ("connection.ca_file", &self.ca_file),
            ("connection.connect_to", &self.connect_to),
            ("sweeper.dead.container", &self.dead_container),
            ("sweeper.dead.account", &self.dead_account),
            ("sweeper.dead.on_collision", &self.on_collision),
            ("sweeper.grace", &self.ttl_grace),
            ("sweeper.state", &self.state),
            ("sweeper.state_backend", &self.state_backend),
            ("sweeper.every", &self.every),
            ("sweeper.page_deadline", &self.page_deadline),
            ("sweeper.stop_grace", &self.grace),
            ("sweeper.worker_id", &self.worker_id),
            ("sweeper.health", &self.health),
            ("sweeper.metrics", &self.metrics),
            ("sweeper.profile", &self.profile),
        ];
        let numbers = [
            ("sweeper.page_size", self.page_size),
            ("sweeper.parallelism", self.parallelism),
            ("sweeper.seed", self.seed),
        ];
        let text = |value: &String| Value::String(value.clone());
        let mut flags: Vec<(&'static str, Value)> = Vec::new();
        flags.extend(
            texts
                .iter()
                .filter_map(|(p, v)| v.as_ref().map(|v| (*p, text(v)))),
        );
        flags.extend(
            numbers
                .iter()
                .filter_map(|(p, v)| v.map(|v| (*p, Value::from(v)))),
        );
        flags.extend(self.rate.map(|rate| ("sweeper.rate", Value::Float(rate))));
        let auth = self.auth.map(|auth| Identity::from(auth).name().to_owned());
        flags.extend(auth.map(|auth| ("account.default.auth", Value::String(auth))));
        let budget = self.max_cost_per_day;
        flags.extend(budget.map(|max| ("sweeper.guard.max_cost_per_day", Value::Float(max))));
        let lists = [
            ("sweeper.containers", &self.containers),
            ("sweeper.dead.allow", &self.dead_allow),
        ];
        let given = lists.into_iter().filter(|(_, list)| !list.is_empty());
        flags.extend(given.map(|(path, list)| {
            let list = list.iter().map(text).collect();
            (path, Value::Array(list))
        }));
        for (path, is_set) in [
            ("sweeper.guard.approve", self.approve),
            ("sweeper.trust_service_clock", self.trust_service_clock),
        ] {
            flags.extend(is_set.then_some((path, Value::Boolean(true))));
        }
        flags
    }
}

/// Starts the log and returns the worker with its settings.
pub(crate) fn sweeper(common: &Common) -> Result<(Sweeper, Settings)> {
    log(common)?;
    let settings = connect::settings(common.config.as_deref(), common.flags())?;
    Ok((connect::sweeper(&settings)?, settings))
}

/// Prints a document as JSON, with terminal control characters escaped.
pub(crate) fn print_json(document: &impl Serialize) -> Result<()> {
    let text = serde_json::to_string_pretty(document)?;
    println!("{}", terminal::json(&text));
    Ok(())
}

pub(crate) fn log(common: &Common) -> Result<()> {
    Ok(log::start(common.log, &common.log_level)?)
}
