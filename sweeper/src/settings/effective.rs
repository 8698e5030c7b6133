//! The effective configuration, value by value, with the source of each value.

use smalt_worker::access::Access;
use smalt_worker::secret::Secret;
use smalt_worker::settings::{Setting, Source};
use smalt_worker::span;
use toml::Value;

use super::{Settings, SettingsError, layers, read};
use crate::config::SweeperConfig;
use crate::decide::Rule;

/// Path of the account that `sweeper.state` names by a URI.
const STATE_ACCESS: &str = "account.state.";

/// Gathers the settings as [`super::gather`] does, and returns every value with its source.
///
/// # Errors
/// As [`super::gather`].
pub fn effective(
    file: Option<&str>,
    env: impl IntoIterator<Item = (String, String)>,
    flags: impl IntoIterator<Item = (&'static str, Value)>,
) -> Result<(Settings, Vec<Setting>), SettingsError> {
    let (layers, faults) = layers(file, env, flags);
    let settings = read(&layers, faults)?;
    let values = listed(&settings).into_iter().map(|(key, value)| {
        let by = match key.starts_with(STATE_ACCESS) && layers.source(&key) == Source::Default {
            true => "sweeper.state",
            false => &key,
        };
        Setting {
            source: layers.source(by),
            key,
            value,
        }
    });
    let values = values.collect();
    Ok((settings, values))
}

macro_rules! rows {
    ($($path:literal: $value:expr;)*) => { [$(($path, $value.to_string())),*] };
}

fn listed(settings: &Settings) -> Vec<(String, String)> {
    let accounts = settings.accounts.iter().flat_map(|(name, account)| {
        let fields = account_fields(account).into_iter();
        fields.map(move |(field, value)| (format!("account.{name}.{field}"), value))
    });
    let connect_to = settings.connect_to.map(|address| address.to_string());
    let seed = settings.seed.map(|seed| seed.to_string());
    let prices = &settings.prices;
    let rest = rows! {
        "connection.ca_file": or("-", &settings.ca_file);
        "connection.connect_to": or("-", &connect_to);
        "sweeper.health": or("-", &settings.health);
        "sweeper.metrics": or("-", &settings.metrics);
        "sweeper.seed": or("drawn", &seed);
        "sweeper.prices.per_10k_transactions": prices.per_10k_transactions;
        "sweeper.prices.per_gib_month": prices.per_gib_month;
    };
    let config = &settings.sweeper;
    let rest = rest.into_iter().chain(worker(config)).chain(policy(config));
    let rest = rest.map(|(path, value)| (path.to_owned(), value));
    accounts.chain(rest).collect()
}

fn or<'a>(absent: &'a str, value: &'a Option<String>) -> &'a str {
    value.as_deref().unwrap_or(absent)
}

/// Returns the name of an enum variant as the file spells it.
fn word(value: &impl std::fmt::Debug) -> String {
    format!("{value:?}").to_ascii_lowercase()
}

fn account_fields(account: &Access) -> Vec<(&'static str, String)> {
    let secret = |value: &Option<Secret>| value.as_ref().map(Secret::shown);
    let fields = [
        ("connection_string", secret(&account.connection_string)),
        ("name", account.name.clone()),
        ("key", secret(&account.key)),
        ("sas", secret(&account.sas)),
        ("auth", account.auth.map(|auth| auth.name().to_owned())),
        ("endpoint", account.endpoint.clone()),
    ];
    let given = fields.into_iter();
    given
        .filter_map(|(field, value)| Some((field, value?)))
        .collect()
}

fn worker(config: &SweeperConfig) -> impl IntoIterator<Item = (&'static str, String)> {
    let schedule = &config.schedule;
    let containers = config.containers.iter().map(|swept| {
        let account = match swept.account.as_str() {
            "default" => String::new(),
            other => format!("{other}:"),
        };
        format!("{account}{}/{}", swept.container, swept.prefix)
    });
    rows! {
        "sweeper.containers": containers.collect::<Vec<_>>().join(", ");
        "sweeper.worker_id": or("drawn", &config.worker_id);
        "sweeper.state": format!("{}/{}", config.state_blob.container, config.state_blob.name);
        "sweeper.state_account": config.state_account;
        "sweeper.state_backend": word(&config.backend);
        "sweeper.state_patience": span::format(config.state_patience);
        "sweeper.create_state": config.create_state;
        "sweeper.lease": format!("{}s", config.lease_s);
        "sweeper.every": span::format(schedule.every);
        "sweeper.align": schedule.align;
        "sweeper.jitter": span::format(schedule.jitter);
        "sweeper.page_size": config.page_size;
        "sweeper.parallelism": config.parallelism;
        "sweeper.page_deadline": span::format(config.page_deadline);
        "sweeper.rate": config.rate_per_s;
        "sweeper.retries": config.retries;
        "sweeper.trust_service_clock": config.trust_service_clock;
        "sweeper.stop_grace": span::format(config.stop_grace);
    }
}

fn policy(config: &SweeperConfig) -> impl IntoIterator<Item = (&'static str, String)> {
    let (policy, dead, guard) = (&config.policy, &config.dead, &config.guard);
    let formats = policy.ttl_formats.iter().map(ToString::to_string);
    let rules = policy.rules.iter().map(shown_rule);
    rows! {
        "sweeper.ttl_key": policy.ttl_key;
        "sweeper.dbc_key": policy.dbc_key;
        "sweeper.ttl_formats": formats.collect::<Vec<_>>().join(", ");
        "sweeper.grace": span::format(policy.grace);
        "sweeper.rule": rules.collect::<Vec<_>>().join("; ");
        "sweeper.dead.account": or("-", &dead.account);
        "sweeper.dead.container": or("-", &policy.dead);
        "sweeper.dead.allow": policy.allow.join(", ");
        "sweeper.dead.on_collision": word(&dead.on_collision);
        "sweeper.dead.create_container": dead.create_container;
        "sweeper.dead.add_metadata": dead.add_metadata;
        "sweeper.dead.index_tags": word(&dead.index_tags);
        "sweeper.dead.copy_deadline": span::format(dead.copy_deadline);
        "sweeper.dead.allow_swept": policy.allow_swept_destination;
        "sweeper.delete.snapshots": word(&config.snapshots);
        "sweeper.guard.max_per_cycle": guard.max_per_cycle;
        "sweeper.guard.max_fraction": guard.max_fraction;
        "sweeper.guard.max_cost_per_day": config.budget.map_or(0.0, |b| b.max_cost_per_day);
        "sweeper.guard.min_age": span::format(policy.min_age);
        "sweeper.guard.protect": policy.protect.join(", ");
    }
}

fn shown_rule(rule: &Rule) -> String {
    let exclude: String = rule
        .exclude
        .iter()
        .map(|p| format!(" except {p}"))
        .collect();
    let dead = rule.dead.iter().map(|dead| format!(" to {dead}"));
    let dead: String = dead.collect();
    format!("{rule}{exclude}{dead}")
}
