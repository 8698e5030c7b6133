//! What every request is served from: configuration, ids, store, faults, metrics.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use smalt_protocol::ApiVersion;

use crate::clock::Clock;
use crate::config::{AccountSettings, Config};
use crate::faults::Faults;
use crate::fetch::Fetcher;
use crate::ids::Ids;
use crate::lane::{Lane, Rooms};
use crate::metrics::Metrics;
use crate::observe::Observer;
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
    /// Who is told of every exchange.
    pub observer: Observer,
    /// Where long work of requests from sockets runs.
    pub lane: Lane,
    /// Rooms for answers that hold much.
    pub rooms: Rooms,
    /// Counters.
    pub metrics: Metrics,
    /// Removal of what was deleted or ran out.
    pub reaper: Reaper,
    /// Properties of the services, decoded.
    pub properties: PropertiesCache,
    /// Settings of accounts that were changed since the start.
    changed: RwLock<BTreeMap<String, Arc<AccountSettings>>>,
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
            observer: Observer::default(),
            lane: Lane::new(),
            rooms: Rooms::default(),
            metrics: Metrics::default(),
            reaper: Reaper::default(),
            properties: PropertiesCache::default(),
            changed: RwLock::default(),
            newer_versions: Mutex::default(),
        }
    }

    /// Another one that begins with the same settings and ids.
    #[must_use]
    pub fn fork(&self, clock: Clock, store: Store) -> Self {
        let fork = Core::new(self.config.clone(), clock, self.ids.fork(), store);
        *fork.changed.write() = self.changed.read().clone();
        Core {
            fetcher: self.fetcher.clone(),
            ..fork
        }
    }

    /// Settings of an account as they are now; those of a new one where there is no such account.
    pub fn settings(&self, account: &str) -> Arc<AccountSettings> {
        if let Some(changed) = self.changed.read().get(account) {
            return Arc::clone(changed);
        }
        let configured = self.config.account(account);
        configured.map_or_else(Arc::default, |account| Arc::clone(&account.settings))
    }

    /// Changes the settings of an account for the requests to come. Whether there is such an
    /// account.
    pub fn change_settings(&self, account: &str, settings: AccountSettings) -> bool {
        let is_known = self.config.account(account).is_some();
        if is_known {
            let settings = Arc::new(settings);
            self.changed.write().insert(account.to_owned(), settings);
        }
        is_known
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
