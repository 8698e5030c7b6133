//! The structure of the configuration file, and its conversion to settings.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use serde::Deserialize;
use smalt_sleeve::port::{BlobId, DeleteSnapshots};
use smalt_worker::access::Access;
use smalt_worker::budget::Budget;
use smalt_worker::span::Span;

use super::fault::{SettingsError, wrong};
use super::rules::RuleEntry;
use super::{Settings, sound};
use crate::config::{
    Collision, DeadConfig, StateBackend, SweeperConfig, SweptContainer, TagPolicy,
};
use crate::decide::Policy;
use crate::destination;
use crate::glob::PATTERN_CHARS_MAX;
use crate::guard::Guard;
use crate::plan::Prices;
use crate::schedule::Schedule;
use crate::ttl::TtlFormat;

/// Page size of the original design (S21).
const COMPAT_PAGE_SIZE: u32 = 100;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct File {
    allow_inline_secrets: bool,
    account: BTreeMap<String, Access>,
    connection: Connection,
    sweeper: Sweeper,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Connection {
    ca_file: Option<String>,
    connect_to: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Sweeper {
    every: Option<Span>,
    align: Option<bool>,
    jitter: Option<Span>,
    page_size: Option<u32>,
    parallelism: Option<usize>,
    lease: Option<Span>,
    page_deadline: Option<Span>,
    grace: Option<Span>,
    stop_grace: Option<Span>,
    state: Option<String>,
    state_account: Option<String>,
    state_backend: Option<StateBackend>,
    state_patience: Option<Span>,
    create_state: Option<bool>,
    ttl_key: Option<String>,
    dbc_key: Option<String>,
    ttl_formats: Option<Vec<String>>,
    rate: Option<f64>,
    retries: Option<u32>,
    worker_id: Option<String>,
    seed: Option<u64>,
    containers: Vec<String>,
    container: Vec<ContainerEntry>,
    dead: Dead,
    delete: Delete,
    guard: GuardEntry,
    rule: Vec<RuleEntry>,
    prices: PricesEntry,
    profile: Option<Profile>,
    health: Option<String>,
    metrics: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ContainerEntry {
    name: String,
    #[serde(default)]
    account: Option<String>,
    #[serde(default)]
    prefix: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Dead {
    account: Option<String>,
    container: Option<String>,
    allow: Option<Vec<String>>,
    on_collision: Option<Collision>,
    create_container: Option<bool>,
    add_metadata: Option<bool>,
    index_tags: Option<TagPolicy>,
    copy_deadline: Option<Span>,
    allow_swept: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Delete {
    snapshots: Option<DeleteSnapshots>,
    leased: Option<Leased>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct GuardEntry {
    max_per_cycle: Option<u64>,
    max_fraction: Option<f64>,
    max_cost_per_day: Option<f64>,
    min_age: Option<Span>,
    protect: Vec<String>,
    approve: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct PricesEntry {
    per_10k_transactions: Option<f64>,
    per_gib_month: Option<f64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Profile {
    #[default]
    Default,
    /// Defaults of the original design: pages of 100 (S21), moves overwrite (S13), and blobs may
    /// choose any container.
    Compat,
}

/// The only accepted value is `skip`: the leases of other clients are never broken.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Leased {
    Skip,
}

fn or(span: Option<Span>, default: Duration) -> Duration {
    span.map_or(default, |span| span.0)
}

impl File {
    pub(super) fn settings(self) -> Result<Settings, SettingsError> {
        let _ = self.allow_inline_secrets;
        let mut faults = SettingsError::default();
        let prices = self.sweeper.prices.prices();
        let connect_to = self.connection.connect_to.as_deref();
        let connect_to = connect_to.and_then(|text| faults.take(address(text)));
        let seed = self.sweeper.seed;
        let (health, metrics) = (self.sweeper.health.clone(), self.sweeper.metrics.clone());
        let allows = self.sweeper.dead.allow.is_some();
        let mut sweeper = self.sweeper.config(&mut faults);
        // Without `dead.account`, use the account `dead` if it exists, or `default` if a
        // destination is configured.
        if sweeper.dead.account.is_none() && self.account.contains_key("dead") {
            sweeper.dead.account = Some("dead".to_owned());
        } else if sweeper.dead.account.is_none() && (sweeper.policy.dead.is_some() || allows) {
            sweeper.dead.account = Some("default".to_owned());
        }
        let unsound = sweeper.faults().into_iter().map(str::to_owned);
        faults.faults.extend(unsound);
        for (key, text) in [("health", &health), ("metrics", &metrics)] {
            let wrong = text
                .iter()
                .filter_map(|text| sound::address(key, text).err());
            faults.faults.extend(wrong);
        }
        faults.faults.extend(sound::refused(&sweeper));
        faults.or(Settings {
            accounts: self.account,
            sweeper,
            seed,
            prices,
            health,
            metrics,
            ca_file: self.connection.ca_file,
            connect_to,
        })
    }
}

fn address(text: &str) -> Result<SocketAddr, SettingsError> {
    let local = text.replacen("localhost", "127.0.0.1", 1);
    local
        .parse()
        .map_err(|_| wrong(format!("connect_to: `{text}` is not ADDRESS:PORT")))
}

impl Profile {
    fn config(self) -> SweeperConfig {
        let base = SweeperConfig::default();
        match self {
            Profile::Default => base,
            Profile::Compat => SweeperConfig {
                page_size: COMPAT_PAGE_SIZE,
                dead: DeadConfig {
                    on_collision: Collision::Overwrite,
                    ..base.dead
                },
                policy: Policy {
                    allow: vec!["*".to_owned()],
                    ..base.policy
                },
                ..base
            },
        }
    }
}

impl Sweeper {
    /// Converts the section to a configuration, using defaults in place of invalid values.
    fn config(self, faults: &mut SettingsError) -> SweeperConfig {
        let profile = self.profile.unwrap_or_default();
        let base = profile.config();
        let state_account = self
            .state_account
            .clone()
            .unwrap_or(base.state_account.clone());
        let containers = self.swept(faults);
        let policy = self.policy(&base.policy, faults);
        let guard = self.guard.guard();
        let budget = self.budget();
        let state_blob = self.state.as_deref().map(state_place);
        let state_blob = state_blob.and_then(|place| faults.take(place));
        let state_blob = state_blob.unwrap_or(base.state_blob.clone());
        SweeperConfig {
            worker_id: self.worker_id,
            state_account,
            state_blob,
            create_state: self.create_state.unwrap_or(!containers.is_empty()),
            containers,
            backend: self.state_backend.unwrap_or_default(),
            lease_s: u32::try_from(or(self.lease, Duration::from_secs(30)).as_secs())
                .unwrap_or(u32::MAX),
            schedule: Schedule {
                every: or(self.every, base.schedule.every),
                align: self.align.unwrap_or(base.schedule.align),
                jitter: or(self.jitter, base.schedule.jitter),
            },
            page_size: self.page_size.unwrap_or(base.page_size),
            parallelism: self.parallelism.unwrap_or(base.parallelism),
            page_deadline: or(self.page_deadline, base.page_deadline),
            policy,
            dead: self.dead.config(&base.dead),
            snapshots: self.delete.snapshots.unwrap_or_default(),
            guard,
            budget,
            rate_per_s: self.rate.unwrap_or(base.rate_per_s),
            retries: self.retries.unwrap_or(base.retries),
            stop_grace: or(self.stop_grace, base.stop_grace),
            state_patience: or(self.state_patience, base.state_patience),
        }
    }

    /// Returns the budget; 0 means no budget.
    fn budget(&self) -> Option<Budget> {
        let max_cost_per_day = self.guard.max_cost_per_day.filter(|max| *max != 0.0)?;
        Some(Budget {
            max_cost_per_day,
            price_per_10k: self.prices.prices().per_10k_transactions,
        })
    }

    /// Returns the containers of both forms: `containers = ["events", "logs/app/"]` and
    /// `[[sweeper.container]]`.
    fn swept(&self, faults: &mut SettingsError) -> Vec<SweptContainer> {
        let short = self.containers.iter().map(|text| {
            let (name, prefix) = text.split_once('/').unwrap_or((text, ""));
            (None, name, prefix)
        });
        let long = self.container.iter();
        let long = long.map(|c| (c.account.as_deref(), c.name.as_str(), c.prefix.as_str()));
        let swept = short.chain(long).map(|(account, name, prefix)| {
            if !destination::is_container_name(name) {
                return Err(wrong(format!("`{name}` is not a container name")));
            }
            Ok(SweptContainer {
                account: account.unwrap_or("default").to_owned(),
                container: name.to_owned(),
                prefix: prefix.to_owned(),
            })
        });
        swept.filter_map(|swept| faults.take(swept)).collect()
    }

    fn policy(&self, base: &Policy, faults: &mut SettingsError) -> Policy {
        let formats = match &self.ttl_formats {
            Some(names) => {
                let read = |name: &String| -> Result<TtlFormat, SettingsError> {
                    name.parse().map_err(|e| wrong(format!("ttl_formats: {e}")))
                };
                let formats = names.iter().filter_map(|name| faults.take(read(name)));
                formats.collect()
            }
            None => base.ttl_formats.clone(),
        };
        let rules = self.rule.iter().map(RuleEntry::rule);
        let policy = Policy {
            ttl_key: self.ttl_key.as_ref().unwrap_or(&base.ttl_key).clone(),
            dbc_key: self.dbc_key.as_ref().unwrap_or(&base.dbc_key).clone(),
            ttl_formats: formats,
            grace: or(self.grace, base.grace),
            min_age: or(self.guard.min_age, base.min_age),
            protect: self.guard.protect.clone(),
            rules: rules.filter_map(|rule| faults.take(rule)).collect(),
            dead: self.dead.container.clone(),
            allow: self.dead.allow.as_ref().unwrap_or(&base.allow).clone(),
            allow_swept_destination: self.dead.allow_swept,
        };
        let excluded = policy.rules.iter().flat_map(|rule| &rule.exclude);
        let mut patterns = policy.protect.iter().chain(excluded).chain(&policy.allow);
        if patterns.any(|p| p.chars().count() > PATTERN_CHARS_MAX) {
            let long = format!("a pattern has more than {PATTERN_CHARS_MAX} characters");
            faults.faults.push(long);
        }
        policy
    }
}

impl Dead {
    fn config(&self, base: &DeadConfig) -> DeadConfig {
        DeadConfig {
            account: self.account.clone(),
            on_collision: self.on_collision.unwrap_or(base.on_collision),
            index_tags: self.index_tags.unwrap_or(base.index_tags),
            create_container: self.create_container.unwrap_or(base.create_container),
            add_metadata: self.add_metadata.unwrap_or(base.add_metadata),
            copy_deadline: or(self.copy_deadline, base.copy_deadline),
        }
    }
}

impl PricesEntry {
    fn prices(&self) -> Prices {
        let base = Prices::default();
        let per_10k = self.per_10k_transactions;
        Prices {
            per_10k_transactions: per_10k.unwrap_or(base.per_10k_transactions),
            per_gib_month: self.per_gib_month.unwrap_or(base.per_gib_month),
        }
    }
}

impl GuardEntry {
    /// Returns the limits. `approve` lifts them for this run, but not the `protect` patterns.
    fn guard(&self) -> Guard {
        let base = Guard::default();
        if self.approve {
            return base;
        }
        Guard {
            max_per_cycle: self.max_per_cycle.unwrap_or(base.max_per_cycle),
            max_fraction: self.max_fraction.unwrap_or(base.max_fraction),
        }
    }
}

fn state_place(text: &str) -> Result<BlobId, SettingsError> {
    let place = text.split_once('/').filter(|(container, blob)| {
        destination::is_container_name(container) && destination::is_blob_name(blob)
    });
    place
        .map(|(container, blob)| BlobId::new(container, blob))
        .ok_or_else(|| wrong(format!("state: `{text}` is not CONTAINER/BLOB")))
}
