//! Options of every command, the table of settings that they become, and what all commands begin
//! with: the log and the worker.

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

/// Options of every command. A secret may be given as env:NAME or file:/path.
#[derive(Debug, Args)]
pub(crate) struct Common {
    /// TOML file with the settings.
    #[arg(long, value_name = "FILE", env = "SWEEPER_CONFIG")]
    pub(crate) config: Option<String>,
    /// Connection string of the account; UseDevelopmentStorage=true for a local emulator.
    #[arg(long, value_name = "TEXT", help_heading = "Account")]
    connection_string: Option<String>,
    /// Account name.
    #[arg(long, value_name = "NAME", help_heading = "Account")]
    account: Option<String>,
    /// Shared key of the account.
    #[arg(
        long,
        value_name = "BASE64",
        help_heading = "Account",
        conflicts_with = "sas"
    )]
    account_key: Option<String>,
    /// Shared access signature: read, list, delete; for the dead-blob account read, create, write.
    #[arg(long, value_name = "TEXT", help_heading = "Account")]
    sas: Option<String>,
    /// Open the account by a token of Entra ID, over https.
    #[arg(
        long,
        value_enum,
        help_heading = "Account",
        conflicts_with_all = ["account_key", "sas", "connection_string"]
    )]
    auth: Option<Auth>,
    /// Blob endpoint, for example http://127.0.0.1:10000/devstoreaccount1.
    #[arg(long, value_name = "URL", help_heading = "Account")]
    endpoint: Option<String>,
    /// Trust these certificates, too (PEM).
    #[arg(long, value_name = "FILE", help_heading = "Account")]
    ca_file: Option<String>,
    /// Connect here instead of to the endpoint's own address; names and certificates stay.
    #[arg(long, value_name = "HOST:PORT", help_heading = "Account")]
    connect_to: Option<String>,

    /// Sweep this container, or names with a prefix in it. May be repeated. Refused when the state
    /// document sweeps others.
    #[arg(
        long = "container",
        value_name = "NAME[/PREFIX]",
        help_heading = "Sweep"
    )]
    containers: Vec<String>,
    /// Move due blobs there that name no place themselves, instead of deleting them.
    #[arg(long, value_name = "NAME[/PREFIX/]", help_heading = "Sweep")]
    dead_container: Option<String>,
    /// Account for dead blobs; `default` is the one that is swept.
    #[arg(long, value_name = "NAME", help_heading = "Sweep")]
    dead_account: Option<String>,
    /// Let blobs name this container of the account for dead blobs as their destination, or those
    /// that fit a pattern such as archive-*. May be repeated. Without it blobs may name the
    /// configured dead container alone; never one whose name begins with $, nor that of the state
    /// document.
    #[arg(long, value_name = "NAME", help_heading = "Sweep")]
    dead_allow: Vec<String>,
    /// Connection string of another account for dead blobs.
    #[arg(long, value_name = "TEXT", help_heading = "Sweep")]
    dead_connection_string: Option<String>,
    /// When another blob stands where a dead one goes: fail, suffix or overwrite.
    #[arg(long, value_name = "POLICY", help_heading = "Sweep")]
    on_collision: Option<String>,
    /// Blobs go this long after their time, for example 1h.
    #[arg(long, value_name = "SPAN", help_heading = "Sweep")]
    ttl_grace: Option<String>,
    /// Lift the circuit breaker's limits (guard.max_per_cycle, guard.max_fraction) for this run.
    /// The fraction is judged once 100 blobs of a container were seen.
    #[arg(long, help_heading = "Sweep")]
    approve: bool,

    /// The state document, CONTAINER/BLOB.
    #[arg(long, value_name = "PLACE", help_heading = "Worker")]
    state: Option<String>,
    /// How workers share the state: lease or etag.
    #[arg(long, value_name = "KIND", help_heading = "Worker")]
    state_backend: Option<String>,
    /// Time from mark to mark, for example 10m.
    #[arg(long, value_name = "SPAN", help_heading = "Worker")]
    every: Option<String>,
    /// Blobs per page, 1 to 5000.
    #[arg(long, value_name = "N", help_heading = "Worker")]
    page_size: Option<u32>,
    /// Blobs handled at a time.
    #[arg(long, value_name = "N", help_heading = "Worker")]
    parallelism: Option<u32>,
    /// Others may take a page after this long without a sign of life.
    #[arg(long, value_name = "SPAN", help_heading = "Worker")]
    page_deadline: Option<String>,
    /// Most storage calls per second.
    #[arg(long, value_name = "N", help_heading = "Worker")]
    rate: Option<f64>,
    /// Start nothing more on a day whose charged calls would cost more; go on the next day (UTC).
    #[arg(long, value_name = "MONEY", help_heading = "Worker")]
    max_cost_per_day: Option<f64>,
    /// How long a stop may take.
    #[arg(long, value_name = "SPAN", help_heading = "Worker")]
    grace: Option<String>,
    /// Name of this worker in state and log.
    #[arg(long, value_name = "ID", help_heading = "Worker")]
    worker_id: Option<String>,
    /// Seed of everything random, to repeat a run.
    #[arg(long, value_name = "N", help_heading = "Worker")]
    seed: Option<u32>,

    /// Answer /livez, /readyz and /status there while `run` works, for example 127.0.0.1:9100.
    #[arg(long, value_name = "ADDRESS:PORT", help_heading = "Worker")]
    health: Option<String>,
    /// Answer /metrics there while `run` works, for Prometheus.
    #[arg(long, value_name = "ADDRESS:PORT", help_heading = "Worker")]
    metrics: Option<String>,
    /// Where defaults come from: default, or compat for pages of 100, moves that overwrite, and
    /// blobs that choose any container as their destination (--dead-allow narrows that).
    #[arg(long, value_name = "NAME", help_heading = "Worker")]
    profile: Option<String>,

    /// Log to stderr as text or JSON lines.
    #[arg(
        long,
        value_enum,
        default_value = "text",
        env = "SWEEPER_LOG",
        help_heading = "Log"
    )]
    pub(crate) log: log::Format,
    /// error, warn, info, debug or trace; or a filter such as smalt_sweeper=debug.
    #[arg(
        long,
        default_value = "info",
        env = "SWEEPER_LOG_LEVEL",
        help_heading = "Log"
    )]
    pub(crate) log_level: String,
}

impl Common {
    /// The flag `--on-collision`, when it was given.
    pub(crate) fn on_collision(&self) -> Option<&str> {
        self.on_collision.as_deref()
    }

    /// The flags that were given, by their paths in the file.
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
        if self.approve {
            flags.push(("sweeper.guard.approve", Value::Boolean(true)));
        }
        flags
    }
}

/// The worker of this run and its settings, the log begun.
pub(crate) fn sweeper(common: &Common) -> Result<(Sweeper, Settings)> {
    log(common)?;
    let settings = connect::settings(common.config.as_deref(), common.flags())?;
    Ok((connect::sweeper(&settings)?, settings))
}

/// Prints a document as JSON. A stranger's text in it steers no terminal either.
pub(crate) fn print_json(document: &impl Serialize) -> Result<()> {
    let text = serde_json::to_string_pretty(document)?;
    println!("{}", terminal::json(&text));
    Ok(())
}

/// Begins the log.
pub(crate) fn log(common: &Common) -> Result<()> {
    Ok(log::start(common.log, &common.log_level)?)
}
