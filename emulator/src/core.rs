//! The shared parts of an emulator: configuration, clock, ids, store, faults, metrics.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use smalt_protocol::ApiVersion;

use crate::analytics::waiting::Waiting;
use crate::auth::Proofs;
use crate::auth::issuer::Issuer;
use crate::clock::Clock;
use crate::config::{AccountSettings, Config};
use crate::events::wake::Wake;
use crate::faults::Faults;
use crate::fetch::Fetcher;
use crate::ids::Ids;
use crate::lane::{Lane, Rooms};
use crate::metrics::Metrics;
use crate::observe::Observer;
use crate::reap::Reaper;
use crate::service_properties::PropertiesCache;
use crate::store::{Store, StoreResult};

/// The shared parts of one emulator.
pub struct Core {
    /// Configuration, including the accounts.
    pub config: Config,
    /// Source of time.
    pub clock: Clock,
    /// Source of ids.
    pub ids: Ids,
    /// The stored state.
    pub store: Store,
    /// Fault rules of the control endpoint and of tests.
    pub faults: Faults,
    /// Delivery of events.
    pub events: Wake,
    /// Client for copy sources outside this emulator.
    pub fetcher: Fetcher,
    /// Client for webhooks.
    pub hooks: Fetcher,
    /// Observer of every exchange.
    pub observer: Observer,
    /// Lane for long work of requests from sockets.
    pub lane: Lane,
    /// Rooms for responses that need much memory.
    pub rooms: Rooms,
    /// Counters of served requests.
    pub metrics: Metrics,
    /// Lines of Storage Analytics logging that wait to be written.
    pub analytics: Waiting,
    /// Background removal of deleted and expired records.
    pub reaper: Reaper,
    /// Cache of decoded service properties.
    pub properties: PropertiesCache,
    /// Signatures that were verified before.
    pub proofs: Proofs,
    /// Signs the tokens of managed identities and of applications.
    pub issuer: Arc<Issuer>,
    /// Account settings that were changed since the start.
    changed: RwLock<BTreeMap<String, Arc<AccountSettings>>>,
    /// Unknown newer versions that were logged already.
    newer_versions: Mutex<BTreeSet<String>>,
}

/// Most versions in `newer_versions`.
const NEWER_VERSIONS_MAX: usize = 64;

impl Core {
    /// Creates the parts of an emulator.
    pub fn new(config: Config, clock: Clock, ids: Ids, store: Store) -> Self {
        Core {
            config,
            clock,
            ids,
            store,
            faults: Faults::default(),
            events: Wake::default(),
            fetcher: Fetcher::default(),
            hooks: Fetcher::default(),
            observer: Observer::default(),
            lane: Lane::new(),
            rooms: Rooms::default(),
            metrics: Metrics::default(),
            analytics: Waiting::default(),
            reaper: Reaper::default(),
            properties: PropertiesCache::default(),
            proofs: Proofs::default(),
            issuer: Arc::default(),
            changed: RwLock::default(),
            newer_versions: Mutex::default(),
        }
    }

    /// Returns an independent core with the same settings and the next ids.
    #[must_use]
    pub fn fork(&self, clock: Clock, store: Store) -> Self {
        let fork = Core::new(self.config.clone(), clock, self.ids.fork(), store);
        *fork.changed.write() = self.changed.read().clone();
        Core {
            fetcher: self.fetcher.clone(),
            hooks: self.hooks.clone(),
            issuer: Arc::clone(&self.issuer),
            ..fork
        }
    }

    /// Returns the current settings of an account, or the default ones when it does not exist.
    pub fn settings(&self, account: &str) -> Arc<AccountSettings> {
        if let Some(changed) = self.changed.read().get(account) {
            return Arc::clone(changed);
        }
        let configured = self.config.account(account);
        configured.map_or_else(Arc::default, |account| Arc::clone(&account.settings))
    }

    /// Changes the settings of an account for future requests. Returns whether the account exists.
    pub fn change_settings(&self, account: &str, settings: AccountSettings) -> bool {
        let is_known = self.config.account(account).is_some();
        if is_known {
            let settings = Arc::new(settings);
            self.changed.write().insert(account.to_owned(), settings);
        }
        is_known
    }

    /// Deletes all state, payloads and the last time, so that the clock may go back.
    ///
    /// # Errors
    /// When the store accepts no writes.
    pub fn reset(&self) -> StoreResult<()> {
        self.store.reset()
    }

    /// Logs once for each unknown newer version that the newest known one is served.
    pub fn note_newer_version(&self, asked: &str, served: ApiVersion) {
        let mut noted = self.newer_versions.lock();
        if noted.len() < NEWER_VERSIONS_MAX && noted.insert(asked.to_owned()) {
            tracing::warn!(asked, %served, "unknown newer x-ms-version: serving the newest known");
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
