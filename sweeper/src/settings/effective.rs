//! The configuration as it counts, value by value, and where each value comes from.

use std::collections::BTreeMap;

use smalt_sleeve::port::DeleteSnapshots;
use smalt_worker::access::Access;
use smalt_worker::secret::Secret;
use smalt_worker::settings::{Setting, Source};
use smalt_worker::span;
use toml::{Table, Value};

use super::{Settings, SettingsError, layers};
use crate::config::{Collision, StateBackend, SweeperConfig, TagPolicy};
use crate::decide::Rule;

/// Gathers as [`super::gather`] does, and says where each value comes from.
///
/// # Errors
/// As [`super::gather`].
pub fn effective(
    file: Option<&str>,
    env: impl IntoIterator<Item = (String, String)>,
    flags: impl IntoIterator<Item = (&'static str, Value)>,
) -> Result<(Settings, Vec<Setting>), SettingsError> {
    let layers = layers(file, env, flags);
    let mut sources: BTreeMap<String, Source> = BTreeMap::new();
    note(&layers.file, "", &Source::File, &mut sources);
    for (path, variable, _) in &layers.env {
        let source = Source::Environment(variable.clone());
        sources.insert((*path).to_owned(), source.clone());
        sources.extend(account_of(path).map(|account| (account, source)));
    }
    for (path, _) in &layers.flags {
        sources.insert((*path).to_owned(), Source::Flag);
        sources.extend(account_of(path).map(|account| (account, Source::Flag)));
    }
    let settings = layers.read()?;
    let values = listed(&settings).into_iter().map(|(key, value)| {
        let whole = account_of(&key).and_then(|account| sources.get(&account));
        let source = whole.or_else(|| sources.get(&key));
        Setting {
            source: source.cloned().unwrap_or(Source::Default),
            key,
            value,
        }
    });
    let values = values.collect();
    Ok((settings, values))
}

/// An account is never mixed from two sources: the one that counts is that of the whole.
fn account_of(path: &str) -> Option<String> {
    let name = path.strip_prefix("account.")?.split('.').next()?;
    Some(format!("account.{name}"))
}

fn note(table: &Table, at: &str, source: &Source, sources: &mut BTreeMap<String, Source>) {
    for (name, value) in table {
        let path = match at {
            "" => name.clone(),
            _ => format!("{at}.{name}"),
        };
        if let Value::Table(inner) = value {
            note(inner, &path, source, sources);
        }
        sources.insert(path, source.clone());
    }
}

/// Every value by its path.
fn listed(settings: &Settings) -> Vec<(String, String)> {
    let mut values: Vec<(String, String)> = Vec::new();
    for (name, account) in &settings.accounts {
        let fields = account_fields(account).into_iter();
        values.extend(fields.map(|(field, value)| (format!("account.{name}.{field}"), value)));
    }
    let or_none = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".to_owned());
    let connect_to = settings.connect_to.map(|address| address.to_string());
    let rest = [
        ("connection.ca_file", or_none(&settings.ca_file)),
        ("connection.connect_to", or_none(&connect_to)),
        ("sweeper.health", or_none(&settings.health)),
        ("sweeper.metrics", or_none(&settings.metrics)),
        (
            "sweeper.seed",
            settings
                .seed
                .map_or_else(|| "drawn".to_owned(), |seed| seed.to_string()),
        ),
        (
            "sweeper.prices.per_10k_transactions",
            settings.prices.per_10k_transactions.to_string(),
        ),
        (
            "sweeper.prices.per_gib_month",
            settings.prices.per_gib_month.to_string(),
        ),
    ];
    let rest = rest
        .into_iter()
        .chain(worker(&settings.sweeper))
        .chain(policy(&settings.sweeper));
    values.extend(rest.map(|(key, value)| (key.to_owned(), value)));
    values
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

fn worker(config: &SweeperConfig) -> Vec<(&'static str, String)> {
    let schedule = &config.schedule;
    let containers = config.containers.iter().map(|swept| {
        let account = match swept.account.as_str() {
            "default" => String::new(),
            other => format!("{other}:"),
        };
        format!("{account}{}/{}", swept.container, swept.prefix)
    });
    let backend = match config.backend {
        StateBackend::Lease => "lease",
        StateBackend::Etag => "etag",
    };
    let state = format!("{}/{}", config.state_blob.container, config.state_blob.name);
    let worker = config
        .worker_id
        .clone()
        .unwrap_or_else(|| "drawn".to_owned());
    vec![
        (
            "sweeper.containers",
            containers.collect::<Vec<_>>().join(", "),
        ),
        ("sweeper.worker_id", worker),
        ("sweeper.state", state),
        ("sweeper.state_account", config.state_account.clone()),
        ("sweeper.state_backend", backend.to_owned()),
        (
            "sweeper.state_patience",
            span::format(config.state_patience),
        ),
        ("sweeper.create_state", config.create_state.to_string()),
        ("sweeper.lease", format!("{}s", config.lease_s)),
        ("sweeper.every", span::format(schedule.every)),
        ("sweeper.align", schedule.align.to_string()),
        ("sweeper.jitter", span::format(schedule.jitter)),
        ("sweeper.page_size", config.page_size.to_string()),
        ("sweeper.parallelism", config.parallelism.to_string()),
        ("sweeper.page_deadline", span::format(config.page_deadline)),
        ("sweeper.rate", config.rate_per_s.to_string()),
        ("sweeper.retries", config.retries.to_string()),
        ("sweeper.stop_grace", span::format(config.stop_grace)),
    ]
}

fn policy(config: &SweeperConfig) -> Vec<(&'static str, String)> {
    let (policy, dead, guard) = (&config.policy, &config.dead, &config.guard);
    let formats = policy.ttl_formats.iter().map(ToString::to_string);
    let or_none = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".to_owned());
    let on_collision = match dead.on_collision {
        Collision::Fail => "fail",
        Collision::Suffix => "suffix",
        Collision::Overwrite => "overwrite",
    };
    let tags = match dead.index_tags {
        TagPolicy::Keep => "keep",
        TagPolicy::Try => "try",
        TagPolicy::Drop => "drop",
    };
    let snapshots = match config.snapshots {
        DeleteSnapshots::Refuse => "refuse",
        DeleteSnapshots::Include => "include",
    };
    let rules: Vec<_> = policy.rules.iter().map(shown_rule).collect();
    vec![
        ("sweeper.ttl_key", policy.ttl_key.clone()),
        ("sweeper.dbc_key", policy.dbc_key.clone()),
        (
            "sweeper.ttl_formats",
            formats.collect::<Vec<_>>().join(", "),
        ),
        ("sweeper.grace", span::format(policy.grace)),
        ("sweeper.rule", rules.join("; ")),
        ("sweeper.dead.account", or_none(&dead.account)),
        ("sweeper.dead.container", or_none(&policy.dead)),
        ("sweeper.dead.allow", policy.allow.join(", ")),
        ("sweeper.dead.on_collision", on_collision.to_owned()),
        (
            "sweeper.dead.create_container",
            dead.create_container.to_string(),
        ),
        ("sweeper.dead.add_metadata", dead.add_metadata.to_string()),
        ("sweeper.dead.index_tags", tags.to_owned()),
        (
            "sweeper.dead.copy_deadline",
            span::format(dead.copy_deadline),
        ),
        (
            "sweeper.dead.allow_swept",
            policy.allow_swept_destination.to_string(),
        ),
        ("sweeper.delete.snapshots", snapshots.to_owned()),
        (
            "sweeper.guard.max_per_cycle",
            guard.max_per_cycle.to_string(),
        ),
        ("sweeper.guard.max_fraction", guard.max_fraction.to_string()),
        (
            "sweeper.guard.max_cost_per_day",
            config
                .budget
                .map_or(0.0, |b| b.max_cost_per_day)
                .to_string(),
        ),
        ("sweeper.guard.min_age", span::format(policy.min_age)),
        ("sweeper.guard.protect", policy.protect.join(", ")),
    ]
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
