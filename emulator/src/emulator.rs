//! The library's entry point: builds an emulator and serves requests.

use std::path::PathBuf;
use std::sync::Arc;

use http::{Request, Response};
use smalt_protocol::Timestamp;
use smalt_protocol::signing::AccountKey;

use crate::arrival::Socket;
use crate::audit::{self, Audit};
use crate::body::Body;
use crate::clock::Clock;
use crate::config::{Account, AccountSettings, Config, OAuth};
use crate::core::Core;
use crate::faults::{ConnectionLost, Faults};
use crate::fetch::{Fetch, Fetcher};
use crate::ids::Ids;
use crate::observe::{Exchange, Observer};
use crate::pipeline;
#[cfg(feature = "schedule")]
use crate::store::Point;
use crate::store::{MaintainReport, Mode, OpenError, Store, StoreConfig, StoreResult, Trouble};
use crate::website;

/// A running emulator. Clones share it; the last one closes the store.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// use smalt::{Clock, Emulator, Timestamp, body};
///
/// let clock = Clock::manual(Timestamp::from_unix_s(1_700_000_000));
/// let emulator = Emulator::builder().clock(clock).seed(1).open()?;
/// let request = http::Request::get("http://127.0.0.1:10000/devstoreaccount1/c/b")
///     .body(body::empty())?;
/// let response = emulator.call(request).await?;
/// // Nobody signed it, and there is no public container of that name.
/// assert_eq!(response.status(), 404);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct Emulator(Arc<Core>);

/// The options of an emulator before it is opened.
#[derive(Debug)]
pub struct Builder {
    config: Config,
    clock: Clock,
    ids: Option<u64>,
    mode: Mode,
    dir: Option<PathBuf>,
    segment_bytes: Option<u64>,
    memory_limit: Option<u64>,
    fetcher: Fetcher,
    hooks: Fetcher,
    observer: Observer,
    #[cfg(feature = "schedule")]
    stepped: bool,
}

impl Emulator {
    /// Returns a builder with Azurite's account, state in memory, and the system's clock.
    pub fn builder() -> Builder {
        Builder {
            config: Config::default(),
            clock: Clock::system(),
            ids: None,
            mode: Mode::Memory,
            dir: None,
            segment_bytes: None,
            memory_limit: None,
            fetcher: Fetcher::default(),
            hooks: Fetcher::default(),
            observer: Observer::default(),
            #[cfg(feature = "schedule")]
            stepped: false,
        }
    }

    /// Serves a request in process. Host and port of its URI name the service, as they do on the
    /// wire: `http://127.0.0.1:10000/devstoreaccount1/...` or
    /// `https://devstoreaccount1.blob.core.windows.net/...`.
    ///
    /// # Errors
    /// [`ConnectionLost`] when a fault rule cuts the connection.
    pub async fn call(&self, request: Request<Body>) -> Result<Response<Body>, ConnectionLost> {
        let secure = request.uri().scheme_str() == Some("https");
        self.call_on(
            request,
            Socket {
                secure,
                ..Socket::default()
            },
        )
        .await
    }

    /// Serves a request from a socket.
    ///
    /// # Errors
    /// [`ConnectionLost`] when a fault rule cuts the connection.
    pub async fn call_on(
        &self,
        request: Request<Body>,
        socket: Socket,
    ) -> Result<Response<Body>, ConnectionLost> {
        let (head, body) = request.into_parts();
        if let Some(account) = website::account(&self.0, &head, &socket) {
            return Box::pin(website::serve(&self.0, &account, &head)).await;
        }
        // The future takes ten kilobytes, and whoever holds it moves it several times.
        Box::pin(pipeline::serve(
            &self.0,
            Request::from_parts(head, body),
            socket,
        ))
        .await
    }

    /// Returns the clock.
    pub fn clock(&self) -> &Clock {
        &self.0.clock
    }

    /// Returns the time at which a request would be served now.
    pub fn now(&self) -> Timestamp {
        self.0.store.now()
    }

    /// Changes the settings of an account for future requests, as Azure's management plane does.
    /// Returns whether the account exists.
    ///
    /// ```
    /// # use smalt::{AccountSettings, Emulator};
    /// let emulator = Emulator::builder().open()?;
    /// let settings = AccountSettings { versioning: true, ..AccountSettings::default() };
    /// assert!(emulator.change_settings("devstoreaccount1", settings));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn change_settings(&self, account: &str, settings: AccountSettings) -> bool {
        self.0.change_settings(account, settings)
    }

    /// Returns the fault rules, with counts of the calls for which they fired.
    pub fn faults(&self) -> &Faults {
        &self.0.faults
    }

    /// Returns why the store accepts no writes after one has failed; `None` while it does. It
    /// refuses writes until it is opened again, and [some reads](crate::store::CUT_OFF) if the
    /// cause says so.
    pub fn store_failure(&self) -> Option<&str> {
        self.0.store.failure()
    }

    /// Returns the current conditions that keep the store from accepting writes or its time from
    /// advancing.
    pub fn troubles(&self) -> Vec<Trouble> {
        self.0.store.troubles()
    }

    /// Runs at most `budget` steps of background work and blocks meanwhile: removes the rest of
    /// deleted containers, queues and tables and expired records, then returns their space to the
    /// disk. Logs new [troubles](Emulator::troubles) once.
    ///
    /// # Errors
    /// When the store's disk fails.
    pub fn maintain(&self, budget: usize) -> StoreResult<MaintainReport> {
        drop(self.troubles());
        let reaped = self.0.reaper.run(&self.0.store, budget)?;
        let mut report = self.0.store.maintain(budget - reaped.records)?;
        report.records_reaped = reaped.records;
        report.more |= reaped.more;
        Ok(report)
    }

    /// Lets an emulator that was built as [`stepped`](Builder::stepped) take one step in its commit
    /// path. Returns the point that it reached, or `None` when no commit waits. A group that forms
    /// in this step has at most `most` commits.
    #[cfg(feature = "schedule")]
    pub fn step(&self, most: usize) -> Option<Point> {
        self.0.store.step(most)
    }

    /// Checks the store's consistency. Reads every record, so it is for tests.
    ///
    /// # Errors
    /// When a record cannot be read.
    #[doc(hidden)]
    pub fn audit(&self) -> StoreResult<Audit> {
        self.0.store.read(audit::audit)
    }

    /// Deletes all state, contents, and the highest time used.
    ///
    /// # Errors
    /// When the store accepts no writes.
    pub fn reset(&self) -> StoreResult<()> {
        self.0.reset()
    }

    /// Stops accepting writes; acknowledged ones are on disk.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn close(&self) -> StoreResult<()> {
        self.0.store.close()
    }

    pub(crate) fn of(core: Core) -> Self {
        Emulator(Arc::new(core))
    }

    pub(crate) fn core(&self) -> &Core {
        &self.0
    }
}

impl Builder {
    /// Sets the configuration.
    #[must_use]
    pub fn config(mut self, config: Config) -> Self {
        self.config = config;
        self
    }

    /// Adds an account with its key.
    #[must_use]
    pub fn account(mut self, name: impl Into<String>, key: AccountKey) -> Self {
        self.config
            .accounts
            .insert(name.into(), Account::with_key(key));
        self
    }

    /// Sets whether bearer tokens of Microsoft Entra ID are accepted, over `https://` only.
    #[must_use]
    pub fn oauth(mut self, oauth: OAuth) -> Self {
        self.config.oauth = oauth;
        self
    }

    /// Sets the clock; the default is the system's.
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Sets the seed of the ids: the same requests get the same ids. A store that is reopened after
    /// commits continues with other ids, so that none is used twice.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.ids = Some(seed);
        self
    }

    /// Keeps the state in this directory. Durable: writes are acknowledged after they are on disk.
    #[must_use]
    pub fn durable(mut self, dir: impl Into<PathBuf>) -> Self {
        self.mode = Mode::Durable;
        self.dir = Some(dir.into());
        self
    }

    /// Keeps the state in this directory; a loss of power may take the most recent writes.
    #[must_use]
    pub fn fast(mut self, dir: impl Into<PathBuf>) -> Self {
        self.mode = Mode::Fast;
        self.dir = Some(dir.into());
        self
    }

    /// Sets the size in bytes at which a payload file is closed, instead of the default of
    /// [`StoreConfig::segment_bytes`]; tests use small files to reach many of them.
    #[must_use]
    pub fn segment_bytes(mut self, bytes: u64) -> Self {
        self.segment_bytes = Some(bytes);
        self
    }

    /// Limits the memory for contents to this many bytes when the state is in memory. Uploads
    /// beyond it are refused as on a full disk. Contents of up to 16 KiB are not counted.
    #[must_use]
    pub fn memory_limit(mut self, bytes: u64) -> Self {
        self.memory_limit = Some(bytes);
        self
    }

    /// Sets the client, or a function from request to response, that fetches copy sources outside
    /// this emulator. Without one, such sources are refused.
    #[must_use]
    pub fn fetch_sources_by(mut self, fetch: impl Fetch) -> Self {
        self.fetcher = Fetcher::new(fetch);
        self
    }

    /// Sets the client, or a function from request to response, that sends events to webhooks.
    /// Without one, subscriptions of webhooks are refused.
    #[must_use]
    pub fn send_webhooks_by(mut self, fetch: impl Fetch) -> Self {
        self.hooks = Fetcher::new(fetch);
        self
    }

    /// Makes each commit wait for [`Emulator::step`], so that a concurrency test chooses the order.
    #[cfg(feature = "schedule")]
    #[must_use]
    pub fn stepped(mut self) -> Self {
        self.stepped = true;
        self
    }

    /// Sets a function that receives every exchange as the service sees it, including lost
    /// responses.
    #[must_use]
    pub fn observe(mut self, tell: impl Fn(Exchange) + Send + Sync + 'static) -> Self {
        self.observer = Observer::new(tell);
        self
    }

    /// Opens the emulator.
    ///
    /// # Errors
    /// When the directory cannot be opened; the error says what to do about it.
    pub fn open(self) -> Result<Emulator, OpenError> {
        let mut store = match (self.mode, self.dir) {
            (Mode::Durable, Some(dir)) => StoreConfig::durable(dir, self.clock.clone()),
            (Mode::Fast, Some(dir)) => StoreConfig::fast(dir, self.clock.clone()),
            _ => StoreConfig::memory(self.clock.clone()),
        };
        store.segment_bytes = self.segment_bytes.unwrap_or(store.segment_bytes);
        store.memory_limit = self.memory_limit;
        #[cfg(feature = "schedule")]
        {
            store.stepped = self.stepped;
        }
        let store = Store::open(store)?;
        let ids = match self.ids {
            Some(seed) => Ids::seeded(seed, store.opened_after()),
            None => Ids::from_system(),
        };
        let mut core = Core::new(self.config, self.clock, ids, store);
        core.fetcher = self.fetcher;
        core.hooks = self.hooks;
        core.observer = self.observer;
        Ok(Emulator(Arc::new(core)))
    }
}
