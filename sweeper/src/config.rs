//! The typed configuration of the library.
//!
//! [`crate::settings`] gathers it from file, environment and flags.

use std::time::Duration;

use serde::Deserialize;
use smalt_sleeve::port::{BlobId, DeleteSnapshots};
use smalt_worker::budget::Budget;

use crate::decide::Policy;
use crate::guard::Guard;
use crate::schedule::Schedule;

/// Azure's bounds for the lease duration in seconds (Lease Blob).
pub const LEASE_S: std::ops::RangeInclusive<u32> = 15..=60;
/// Azure's bounds for `maxresults` (List Blobs).
pub const PAGE_SIZE: std::ops::RangeInclusive<u32> = 1..=5_000;
/// Maximum number of blobs that one worker processes at a time; the original design uses 15 (S26).
pub const PARALLELISM_MAX: usize = 256;
/// Minimum page deadline; leaves time for a state write under a contended lease.
pub const PAGE_DEADLINE_MIN: Duration = Duration::from_secs(20);

/// Configuration of a sweeper, except for the accounts.
#[derive(Clone, Debug)]
pub struct SweeperConfig {
    /// Name of this worker; derived from the seed if `None`.
    pub worker_id: Option<String>,
    /// Account that holds the state document, by its name in [`crate::Accounts`].
    pub state_account: String,
    /// Location of the state document.
    pub state_blob: BlobId,
    /// Whether a missing state document is created from `containers`.
    pub create_state: bool,
    /// Containers that a new state document lists.
    pub containers: Vec<SweptContainer>,
    /// How workers coordinate writes to the state document.
    pub backend: StateBackend,
    /// Lease duration in seconds, within [`LEASE_S`].
    pub lease_s: u32,
    /// When cycles start.
    pub schedule: Schedule,
    /// Blobs per page, within [`PAGE_SIZE`].
    pub page_size: u32,
    /// Blobs processed at a time, 1 to [`PARALLELISM_MAX`].
    pub parallelism: usize,
    /// Time after its claim when other workers may take over a page; extended while work continues.
    pub page_deadline: Duration,
    /// Rules that decide which blobs are removed.
    pub policy: Policy,
    /// Where and how dead blobs are moved.
    pub dead: DeadConfig,
    /// What happens to a blob with snapshots.
    pub snapshots: DeleteSnapshots,
    /// Limits of the circuit breaker.
    pub guard: Guard,
    /// Limit on the cost of one day; unlimited if `None`.
    pub budget: Option<Budget>,
    /// Limit on storage calls per second; 0 means no limit.
    pub rate_per_s: f64,
    /// Whether to sweep although this machine's clock differs from the service's by more than ten
    /// minutes, as after moving an emulator's clock.
    pub trust_service_clock: bool,
    /// Retries after a transient failure, in addition to those of the storage client.
    pub retries: u32,
    /// Time allowed for a clean stop.
    pub stop_grace: Duration,
    /// How long the state document may be unreachable before the worker gives up.
    pub state_patience: Duration,
}

/// A container to sweep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SweptContainer {
    /// Account, by its name in [`crate::Accounts`].
    pub account: String,
    /// Container name.
    pub container: String,
    /// Sweeps only blobs whose names start with this prefix; empty for the whole container.
    pub prefix: String,
}

/// How workers coordinate writes to the state document. Safety depends on neither variant: every
/// write is conditional on the ETag that was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StateBackend {
    /// Holds a lease from read to write, so that no worker's listing is wasted (S24).
    #[default]
    Lease,
    /// Uses ETags only: cheaper for few workers, and works with services that lack leases.
    Etag,
}

/// Where and how dead blobs are moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadConfig {
    /// Account, by its name in [`crate::Accounts`]; if `None`, no blob is moved (DS4).
    pub account: Option<String>,
    /// What happens when another blob exists at the destination (DS7).
    pub on_collision: Collision,
    /// Whether a missing destination container is created (S11).
    pub create_container: bool,
    /// Whether the copy's metadata also record when the source was last modified, when it was due,
    /// and which sweep moved it.
    pub add_metadata: bool,
    /// What happens to the source's index tags, which Copy Blob does not copy by itself.
    pub index_tags: TagPolicy,
    /// How long a copy may stay pending before the blob is left to the next cycle.
    pub copy_deadline: Duration,
}

/// What happens when another blob exists at the destination.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Collision {
    /// The source stays and is reported. A copy of an earlier version of the same source is not a
    /// collision: the new version is written beside it, as under [`Collision::Suffix`].
    #[default]
    Fail,
    /// The dead blob is written beside it; its name ends in `~` and the source's ETag.
    Suffix,
    /// The dead blob overwrites it, as in the original design (S13).
    Overwrite,
}

/// What happens to index tags. Reading and writing them need their own permission (`t` of a SAS, or
/// Storage Blob Data Owner); changing them does not change the ETag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TagPolicy {
    /// Copies the tags; a blob whose tags cannot be read stays and is reported.
    #[default]
    Keep,
    /// Copies the tags if they can be read.
    Try,
    /// Does not copy the tags.
    Drop,
}

impl Default for DeadConfig {
    fn default() -> Self {
        DeadConfig {
            account: None,
            on_collision: Collision::Fail,
            create_container: true,
            add_metadata: true,
            index_tags: TagPolicy::Keep,
            copy_deadline: Duration::from_secs(600),
        }
    }
}

impl Default for SweeperConfig {
    fn default() -> Self {
        SweeperConfig {
            worker_id: None,
            state_account: "default".to_owned(),
            state_blob: BlobId::new("smalt-sweeper", "TimeToLiveBlobs"),
            create_state: true,
            containers: Vec::new(),
            backend: StateBackend::Lease,
            lease_s: 30,
            schedule: Schedule::default(),
            page_size: 1_000,
            parallelism: 15,
            page_deadline: Duration::from_secs(120),
            policy: Policy::default(),
            dead: DeadConfig::default(),
            snapshots: DeleteSnapshots::Refuse,
            guard: Guard::default(),
            budget: None,
            rate_per_s: 0.0,
            trust_service_clock: false,
            retries: 1,
            stop_grace: Duration::from_secs(30),
            state_patience: Duration::from_secs(60),
        }
    }
}

impl SweeperConfig {
    /// Returns the first fault of [`SweeperConfig`] as text for the operator.
    pub fn check(&self) -> Result<(), String> {
        match self.faults().first() {
            Some(reason) => Err((*reason).to_owned()),
            None => Ok(()),
        }
    }

    /// Returns a message for every invalid value.
    pub(crate) fn faults(&self) -> Vec<&'static str> {
        let every = self.schedule.every;
        let fraction = self.guard.max_fraction;
        let is_money = |money: f64| money.is_finite() && money >= 0.0;
        let is_budget = |b: Budget| is_money(b.max_cost_per_day) && is_money(b.price_per_10k);
        let checks = [
            (!LEASE_S.contains(&self.lease_s), "lease must be 15s to 60s"),
            (
                !PAGE_SIZE.contains(&self.page_size),
                "page_size must be 1 to 5000",
            ),
            (
                !(1..=PARALLELISM_MAX).contains(&self.parallelism),
                "parallelism must be 1 to 256",
            ),
            (
                self.page_deadline < PAGE_DEADLINE_MIN,
                "page_deadline must be at least 20s",
            ),
            (every < Duration::from_secs(1), "every must be at least 1s"),
            (
                !(0.0..=1.0).contains(&fraction),
                "guard.max_fraction must be 0.0 to 1.0",
            ),
            (
                !self.budget.is_none_or(is_budget),
                "guard.max_cost_per_day and the price must be 0 or more",
            ),
            (
                !self.rate_per_s.is_finite() || self.rate_per_s < 0.0,
                "rate must be 0 or more",
            ),
            (
                self.policy.ttl_key.is_empty() || self.policy.dbc_key.is_empty(),
                "ttl_key and dbc_key must not be empty",
            ),
        ];
        let wrong = checks.into_iter().filter(|(wrong, _)| *wrong);
        wrong.map(|(_, reason)| reason).collect()
    }
}
