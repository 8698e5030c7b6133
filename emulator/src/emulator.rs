//! The emulator as a library: build one, hand it requests.

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

/// Settings of an emulator to be opened.
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
    observer: Observer,
    #[cfg(feature = "schedule")]
    stepped: bool,
}

impl Emulator {
    /// An emulator with Azurite's account, in memory, on the system's clock.
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
            observer: Observer::default(),
            #[cfg(feature = "schedule")]
            stepped: false,
        }
    }

    /// Serves a request in process. The host and port of its URI say which service it is for, as
    /// they do on the wire: `http://127.0.0.1:10000/devstoreaccount1/...` or
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

    /// Serves a request that came in by a socket.
    ///
    /// # Errors
    /// [`ConnectionLost`] when a fault rule cuts the connection.
    pub async fn call_on(
        &self,
        request: Request<Body>,
        socket: Socket,
    ) -> Result<Response<Body>, ConnectionLost> {
        pipeline::serve(&self.0, request, socket).await
    }

    /// The clock.
    pub fn clock(&self) -> &Clock {
        &self.0.clock
    }

    /// The time that requests are served at.
    pub fn now(&self) -> Timestamp {
        self.0.store.now()
    }

    /// Changes the settings of an account for the requests to come, as Azure's management plane
    /// would. Whether there is such an account.
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

    /// The fault rules, with an account of which fired.
    pub fn faults(&self) -> &Faults {
        &self.0.faults
    }

    /// Why the store takes no more writes, when one has failed: they are refused until it is opened
    /// again, and so are [some reads](crate::store::CUT_OFF) if the cause says so.
    pub fn store_failure(&self) -> Option<&str> {
        self.0.store.failure()
    }

    /// What keeps the store from taking writes, or its time from going on, at this moment.
    pub fn troubles(&self) -> Vec<Trouble> {
        self.0.store.troubles()
    }

    /// Does background work in at most `budget` steps: removes what is left of deleted containers
    /// and queues and what ran out, then gives its bytes back to the disk. It blocks meanwhile.
    /// What is [wrong](Emulator::troubles) is noticed here and logged once.
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

    /// Lets an emulator that was built [`stepped`](Builder::stepped) take one step in its commit
    /// path: the point that it has reached, `None` when no commit waits. A group that is formed now
    /// has at most so many commits.
    #[cfg(feature = "schedule")]
    pub fn step(&self, most: usize) -> Option<Point> {
        self.0.store.step(most)
    }

    /// Whether the store agrees with itself: for tests, since it reads every record.
    ///
    /// # Errors
    /// When a record cannot be read.
    #[doc(hidden)]
    pub fn audit(&self) -> StoreResult<Audit> {
        self.0.store.read(audit::audit)
    }

    /// Forgets everything: state, contents, the highest time that was used.
    ///
    /// # Errors
    /// When the store takes no writes.
    pub fn reset(&self) -> StoreResult<()> {
        self.0.reset()
    }

    /// Takes no more writes; what was acknowledged is on disk.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn close(&self) -> StoreResult<()> {
        self.0.store.close()
    }

    pub(crate) fn of(core: Core) -> Self {
        Emulator(Arc::new(core))
    }

    /// The parts, for the control endpoint.
    pub(crate) fn core(&self) -> &Core {
        &self.0
    }
}

impl Builder {
    /// Settings in place of the defaults.
    #[must_use]
    pub fn config(mut self, config: Config) -> Self {
        self.config = config;
        self
    }

    /// One more account, with its key.
    #[must_use]
    pub fn account(mut self, name: impl Into<String>, key: AccountKey) -> Self {
        self.config
            .accounts
            .insert(name.into(), Account::with_key(key));
        self
    }

    /// Takes bearer tokens of Microsoft Entra ID, or none. They come over `https://` only.
    #[must_use]
    pub fn oauth(mut self, oauth: OAuth) -> Self {
        self.config.oauth = oauth;
        self
    }

    /// The clock in place of the system's.
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Ids from this seed: the same requests get the same ids. A store that is opened again after
    /// commits goes on with others, so that none is given twice.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.ids = Some(seed);
        self
    }

    /// Keeps everything in this directory. Durable: nothing is acknowledged before it is on disk.
    #[must_use]
    pub fn durable(mut self, dir: impl Into<PathBuf>) -> Self {
        self.mode = Mode::Durable;
        self.dir = Some(dir.into());
        self
    }

    /// Keeps everything in this directory; a crash may lose the last moments, never more.
    #[must_use]
    pub fn fast(mut self, dir: impl Into<PathBuf>) -> Self {
        self.mode = Mode::Fast;
        self.dir = Some(dir.into());
        self
    }

    /// Closes a file of payloads at this size, in place of [`StoreConfig::segment_bytes`]'s
    /// default: small ones show in a test what large ones do in a year.
    #[must_use]
    pub fn segment_bytes(mut self, bytes: u64) -> Self {
        self.segment_bytes = Some(bytes);
        self
    }

    /// Refuses uploads that would take more bytes of memory for contents than this, as a full disk
    /// would, when everything is in memory. Contents of up to 16 KiB are not counted.
    #[must_use]
    pub fn memory_limit(mut self, bytes: u64) -> Self {
        self.memory_limit = Some(bytes);
        self
    }

    /// Fetches copy sources that are neither this emulator's nor its accounts' with this: a client,
    /// or any function from request to response. Without one there are no such sources.
    #[must_use]
    pub fn fetch_sources_by(mut self, fetch: impl Fetch) -> Self {
        self.fetcher = Fetcher::new(fetch);
        self
    }

    /// Commits go on only when [`Emulator::step`] is called: whoever tests what happens at once
    /// chooses what happens next.
    #[cfg(feature = "schedule")]
    #[must_use]
    pub fn stepped(mut self) -> Self {
        self.stepped = true;
        self
    }

    /// Tells this function of every exchange as the service sees it, lost answers included.
    #[must_use]
    pub fn observe(mut self, tell: impl Fn(Exchange) + Send + Sync + 'static) -> Self {
        self.observer = Observer::new(tell);
        self
    }

    /// Opens it.
    ///
    /// # Errors
    /// What is wrong with the directory, and what to do about it.
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
        core.observer = self.observer;
        Ok(Emulator(Arc::new(core)))
    }
}
