//! Gathers the configuration. Flags override the environment, which overrides the TOML file, which
//! overrides the defaults.
//!
//! Each source becomes a table of the same shape. The tables are merged and parsed once, strictly:
//! an unknown name is an error. The settings of one account always come from a single source.

mod effective;
mod fault;
mod rules;
mod schema;
mod sound;
mod structure;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::net::SocketAddr;

use smalt_worker::access::Access;
use smalt_worker::secret::Secret;
use smalt_worker::settings::{Layers, Source};
use toml::{Table, Value};

use crate::config::SweeperConfig;
use crate::plan::Prices;

pub use effective::effective;
pub use fault::SettingsError;
use fault::{first_line, wrong};
pub use sound::findings;

/// Prefix of the environment variables.
pub const ENV_PREFIX: &str = "SWEEPER_";
/// Environment variable that Azure's own tools also read.
pub const ENV_CONNECTION_STRING: &str = "AZURE_STORAGE_CONNECTION_STRING";

/// All settings of the binary.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Accounts by name.
    pub accounts: BTreeMap<String, Access>,
    /// Configuration of the library.
    pub sweeper: SweeperConfig,
    /// Seed for all random choices; taken from the system if `None`.
    pub seed: Option<u64>,
    /// Prices for plans and cost estimates.
    pub prices: Prices,
    /// PEM file with additional certificate authorities.
    pub ca_file: Option<String>,
    /// `ADDRESS:PORT` that serves health and status.
    pub health: Option<String>,
    /// `ADDRESS:PORT` that serves metrics.
    pub metrics: Option<String>,
    /// Address to connect to instead of the endpoints' own addresses.
    pub connect_to: Option<SocketAddr>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Number,
    Flag,
    List,
}

/// Environment variables: name after the prefix, path in the file, type.
const OPTIONS: [(&str, &str, Kind); 34] = [
    (
        "CONNECTION_STRING",
        "account.default.connection_string",
        Kind::Text,
    ),
    (
        "DEAD_CONNECTION_STRING",
        "account.dead.connection_string",
        Kind::Text,
    ),
    ("CA_FILE", "connection.ca_file", Kind::Text),
    ("CONNECT_TO", "connection.connect_to", Kind::Text),
    ("CONTAINERS", "sweeper.containers", Kind::List),
    ("STATE", "sweeper.state", Kind::Text),
    ("STATE_ACCOUNT", "sweeper.state_account", Kind::Text),
    ("STATE_BACKEND", "sweeper.state_backend", Kind::Text),
    ("EVERY", "sweeper.every", Kind::Text),
    ("JITTER", "sweeper.jitter", Kind::Text),
    ("PAGE_SIZE", "sweeper.page_size", Kind::Number),
    ("PARALLELISM", "sweeper.parallelism", Kind::Number),
    ("LEASE", "sweeper.lease", Kind::Text),
    ("PAGE_DEADLINE", "sweeper.page_deadline", Kind::Text),
    ("TTL_GRACE", "sweeper.grace", Kind::Text),
    ("STOP_GRACE", "sweeper.stop_grace", Kind::Text),
    ("TTL_KEY", "sweeper.ttl_key", Kind::Text),
    ("DBC_KEY", "sweeper.dbc_key", Kind::Text),
    ("RATE", "sweeper.rate", Kind::Number),
    (
        "TRUST_SERVICE_CLOCK",
        "sweeper.trust_service_clock",
        Kind::Flag,
    ),
    ("WORKER_ID", "sweeper.worker_id", Kind::Text),
    ("SEED", "sweeper.seed", Kind::Number),
    ("DEAD_ACCOUNT", "sweeper.dead.account", Kind::Text),
    ("DEAD_CONTAINER", "sweeper.dead.container", Kind::Text),
    ("DEAD_ALLOW", "sweeper.dead.allow", Kind::List),
    ("ON_COLLISION", "sweeper.dead.on_collision", Kind::Text),
    ("PROFILE", "sweeper.profile", Kind::Text),
    ("HEALTH", "sweeper.health", Kind::Text),
    ("METRICS", "sweeper.metrics", Kind::Text),
    ("INDEX_TAGS", "sweeper.dead.index_tags", Kind::Text),
    ("SNAPSHOTS", "sweeper.delete.snapshots", Kind::Text),
    ("MAX_PER_CYCLE", "sweeper.guard.max_per_cycle", Kind::Number),
    (
        "MAX_COST_PER_DAY",
        "sweeper.guard.max_cost_per_day",
        Kind::Number,
    ),
    ("APPROVE", "sweeper.guard.approve", Kind::Flag),
];

/// Merges flags (paths and values), environment and file, and parses the result.
pub fn gather(
    file: Option<&str>,
    env: impl IntoIterator<Item = (String, String)>,
    flags: impl IntoIterator<Item = (&'static str, Value)>,
) -> Result<Settings, SettingsError> {
    let (layers, faults) = layers(file, env, flags);
    read(&layers, faults)
}

/// Merges the values, and records the faults of the file and the environment.
fn layers(
    file: Option<&str>,
    env: impl IntoIterator<Item = (String, String)>,
    flags: impl IntoIterator<Item = (&'static str, Value)>,
) -> (Layers, SettingsError) {
    let mut wrong = SettingsError::default();
    let mut layers = Layers::with_whole("account");
    let file = file.map_or_else(Table::new, |text| read_file(text, &mut wrong));
    layers.add_table(file, &Source::File);
    let env = read_env(env, &mut wrong).into_iter();
    layers.add(env.map(|(path, variable, value)| (path, Source::Environment(variable), value)));
    let flags = flags.into_iter();
    layers.add(flags.map(|(path, value)| (path, Source::Flag, value)));
    (layers, wrong)
}

fn read(layers: &Layers, mut faults: SettingsError) -> Result<Settings, SettingsError> {
    let sound = structure::sift(layers.table().clone(), &mut faults);
    let file: Result<schema::File, _> = sound.try_into();
    let file = file.map_err(|error| wrong(first_line(&error)));
    let settings = faults.take(file.and_then(schema::File::settings));
    // Settings are always present if there is no fault.
    faults.or(())?;
    settings.ok_or_else(|| wrong("the configuration cannot be read"))
}

fn read_file(text: &str, faults: &mut SettingsError) -> Table {
    let table: Result<Table, toml::de::Error> = text.parse();
    let table = table.map_err(|error| {
        let line = error
            .span()
            .map_or(1, |span| text[..span.start].lines().count().max(1));
        wrong(format!("line {line}: {}", first_line(&error)))
    });
    let table = faults.take(table).unwrap_or_default();
    let allowed = table.get("allow_inline_secrets").and_then(Value::as_bool);
    if allowed != Some(true) {
        faults.faults.extend(inline_secrets(&table));
    }
    table
}

/// Rejects inline secrets, because configuration files are shared; secrets belong in separate files
/// or in the environment.
fn inline_secrets(table: &Table) -> Vec<String> {
    let accounts = table.get("account").and_then(Value::as_table);
    let mut found = Vec::new();
    let sweeper = table.get("sweeper").and_then(Value::as_table);
    let state = sweeper.and_then(|sweeper| sweeper.get("state")?.as_str());
    if state.is_some_and(|state| state.contains("sig=")) {
        let to_do = "set SWEEPER_STATE instead, or allow_inline_secrets = true";
        found.push(format!("sweeper.state holds a secret; {to_do}"));
    }
    for (name, account) in accounts.into_iter().flatten() {
        for field in ["connection_string", "key", "sas"] {
            let value = account.get(field).and_then(Value::as_str);
            if Secret::parse(value.unwrap_or_default()).is_inline_secret() {
                found.push(format!(
                    "account.{name}.{field} holds a secret; write env:NAME or file:/path, \
                     or set allow_inline_secrets = true"
                ));
            }
        }
    }
    found
}

fn read_env(
    env: impl IntoIterator<Item = (String, String)>,
    faults: &mut SettingsError,
) -> Vec<(&'static str, String, Value)> {
    let mut read = Vec::new();
    let mut own = Vec::new();
    for (name, value) in env {
        if name == ENV_CONNECTION_STRING && !value.is_empty() {
            let path = "account.default.connection_string";
            read.push((path, name, Value::String(value)));
        } else if let Some(option) = name.strip_prefix(ENV_PREFIX) {
            own.push((option.to_owned(), value));
        }
    }
    // Our own variables override Azure's. Unknown ones are ignored, because an orchestrator may set
    // them.
    for (name, value) in own {
        if let Some((_, path, kind)) = OPTIONS.iter().find(|(option, _, _)| *option == name) {
            let value = faults.take(typed(&name, &value, *kind));
            read.extend(value.map(|value| (*path, format!("{ENV_PREFIX}{name}"), value)));
        }
    }
    read
}

fn typed(name: &str, value: &str, kind: Kind) -> Result<Value, SettingsError> {
    let bad = |what: &str| wrong(format!("{ENV_PREFIX}{name} must be {what}"));
    match kind {
        Kind::Text => Ok(Value::String(value.to_owned())),
        Kind::Flag => value
            .parse()
            .map(Value::Boolean)
            .map_err(|_| bad("true or false")),
        Kind::Number => match value.parse::<i64>() {
            Ok(whole) => Ok(Value::Integer(whole)),
            Err(_) => value.parse().map(Value::Float).map_err(|_| bad("a number")),
        },
        Kind::List => {
            let items = value
                .split(',')
                .map(str::trim)
                .filter(|item| !item.is_empty());
            Ok(Value::Array(
                items.map(|item| Value::String(item.to_owned())).collect(),
            ))
        }
    }
}
