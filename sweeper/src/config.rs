//! What a sweeper is told: the typed configuration that the library takes.
//!
//! How it is gathered from file, environment and flags is [`crate::settings`].

use std::time::Duration;

use serde::Deserialize;
use smalt_sleeve::port::{BlobId, DeleteSnapshots};
use smalt_worker::budget::Budget;

use crate::decide::Policy;
use crate::guard::Guard;
use crate::schedule::Schedule;

/// Azure's bounds of a lease in seconds (Lease Blob).
pub const LEASE_S: std::ops::RangeInclusive<u32> = 15..=60;
/// Azure's bounds of `maxresults` (List Blobs).
pub const PAGE_SIZE: std::ops::RangeInclusive<u32> = 1..=5_000;
/// Most blobs that one worker handles at a time; the original design has 15 (S26).
pub const PARALLELISM_MAX: usize = 256;
/// Shortest page deadline: room for a state write under a busy lease.
pub const PAGE_DEADLINE_MIN: Duration = Duration::from_secs(20);

/// Everything that a sweeper needs to know besides the accounts.
#[derive(Clone, Debug)]
pub struct SweeperConfig {
    /// Name of this worker; made from the seed when absent.
    pub worker_id: Option<String>,
    /// Account name of the state document, as in [`crate::Accounts`].
    pub state_account: String,
    /// The state document.
    pub state_blob: BlobId,
    /// Whether a missing state document is created from `containers`.
    pub create_state: bool,
    /// What a new state document says is swept.
    pub containers: Vec<SweptContainer>,
    /// How writers of the state document keep out of each other's way.
    pub backend: StateBackend,
    /// Length of the lease, in [`LEASE_S`].
    pub lease_s: u32,
    /// When cycles start.
    pub schedule: Schedule,
    /// Blobs per page, in [`PAGE_SIZE`].
    pub page_size: u32,
    /// Blobs handled at a time, 1 to [`PARALLELISM_MAX`].
    pub parallelism: usize,
    /// A page is free for others this long after its claim; extended while work goes on.
    pub page_deadline: Duration,
    /// What may go.
    pub policy: Policy,
    /// Where dead blobs go.
    pub dead: DeadConfig,
    /// What happens to a blob with snapshots.
    pub snapshots: DeleteSnapshots,
    /// The circuit breaker.
    pub guard: Guard,
    /// What a day may cost; no limit when absent.
    pub budget: Option<Budget>,
    /// Most storage calls per second; 0 for no limit.
    pub rate_per_s: f64,
    /// Repeats of a call that failed for a passing reason, after the client's own.
    pub retries: u32,
    /// How long a stop may take.
    pub stop_grace: Duration,
    /// How long the state document may be out of reach before the worker gives up.
    pub state_patience: Duration,
}

/// A container to sweep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SweptContainer {
    /// Account name, as in [`crate::Accounts`].
    pub account: String,
    /// Container name.
    pub container: String,
    /// Only names with this prefix.
    pub prefix: String,
}

/// How writers of the state document keep out of each other's way. Safety needs neither: every
/// write is conditional on the ETag that was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StateBackend {
    /// A lease is held from reading to writing: no work is done in vain (S24).
    #[default]
    Lease,
    /// ETags alone: cheaper for few workers, and for services without leases.
    Etag,
}

/// Where dead blobs go and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadConfig {
    /// Account name, as in [`crate::Accounts`]; without one no blob is moved (DS4).
    pub account: Option<String>,
    /// What happens when another blob stands at the destination (DS7).
    pub on_collision: Collision,
    /// Whether a missing container is created (S11).
    pub create_container: bool,
    /// Whether the copy also says when its source was changed, was due, and by whom it was swept.
    pub add_metadata: bool,
    /// What happens to the source's index tags, which no copy takes along by itself.
    pub index_tags: TagPolicy,
    /// How long a copy may stay pending before the blob is left for the next cycle.
    pub copy_deadline: Duration,
}

/// What happens when another blob stands at the destination.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Collision {
    /// The source stays and is reported. An earlier version of the same source counts as another
    /// blob only by its name: the new version goes beside it, as under [`Collision::Suffix`].
    #[default]
    Fail,
    /// The dead blob goes beside it, its name ending in `~` and the source's ETag.
    Suffix,
    /// The dead blob takes its place, as the original design did (S13).
    Overwrite,
}

/// What happens to index tags. Reading them needs a permission of its own (`t` of a SAS, or Storage
/// Blob Data Owner), so does writing them; they change without a change of the ETag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TagPolicy {
    /// They go along; a blob whose tags may not be read stays, and is reported.
    #[default]
    Keep,
    /// They go along where they may be read.
    Try,
    /// They are left behind.
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
            retries: 1,
            stop_grace: Duration::from_secs(30),
            state_patience: Duration::from_secs(60),
        }
    }
}

impl SweeperConfig {
    /// Refuses values that cannot work, in words for the operator.
    pub fn check(&self) -> Result<(), String> {
        match self.faults().first() {
            Some(reason) => Err((*reason).to_owned()),
            None => Ok(()),
        }
    }

    /// Every value that cannot work.
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
                "ttl_key and dbc_key must be names",
            ),
        ];
        let wrong = checks.into_iter().filter(|(wrong, _)| *wrong);
        wrong.map(|(_, reason)| reason).collect()
    }
}
