//! What every request is served from: configuration, ids, store, faults, metrics.

use parking_lot::Mutex;
use smalt_protocol::ApiVersion;
use std::collections::BTreeSet;

use crate::clock::Clock;
use crate::config::Config;
use crate::faults::Faults;
use crate::fetch::Fetcher;
use crate::ids::Ids;
use crate::metrics::Metrics;
use crate::reap::Reaper;
use crate::service_properties::PropertiesCache;
use crate::store::{Store, StoreResult};

/// The parts of one emulator.
pub struct Core {
    /// Settings, accounts among them.
    pub config: Config,
    /// Time.
    pub clock: Clock,
    /// Ids.
    pub ids: Ids,
    /// State.
    pub store: Store,
    /// Fault rules.
    pub faults: Faults,
    /// What copy sources that are elsewhere are fetched with.
    pub fetcher: Fetcher,
    /// Counters.
    pub metrics: Metrics,
    /// Removal of what was deleted or ran out.
    pub reaper: Reaper,
    /// Properties of the services, decoded.
    pub properties: PropertiesCache,
    /// Versions newer than any known that were logged already.
    newer_versions: Mutex<BTreeSet<String>>,
}

/// Most distinct versions that are remembered as logged.
const NEWER_VERSIONS_MAX: usize = 64;

impl Core {
    /// Puts the parts together.
    pub fn new(config: Config, clock: Clock, ids: Ids, store: Store) -> Self {
        Core {
            config,
            clock,
            ids,
            store,
            faults: Faults::default(),
            fetcher: Fetcher::default(),
            metrics: Metrics::default(),
            reaper: Reaper::default(),
            properties: PropertiesCache::default(),
            newer_versions: Mutex::default(),
        }
    }

    /// Forgets everything: state, payloads, time. The clock may go back afterwards.
    ///
    /// # Errors
    /// When the store takes no writes.
    pub fn reset(&self) -> StoreResult<()> {
        self.store.reset()
    }

    /// Logs once that a version newer than any known is served as the newest known.
    pub fn note_newer_version(&self, asked: &str, served: ApiVersion) {
        let mut noted = self.newer_versions.lock();
        if noted.len() < NEWER_VERSIONS_MAX && noted.insert(asked.to_owned()) {
            tracing::warn!(asked, %served, "x-ms-version is newer than any known: newest served");
        }
    }
}

impl std::fmt::Debug for Core {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Core")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}
