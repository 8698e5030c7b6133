//! The emulator under test, in this process, on a clock that only moves on request.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use smalt::{AccountSettings, Clock, Config, Emulator};
use smalt_model::Model;
use smalt_protocol::signing::shared_key::Scheme;
use smalt_protocol::{ApiVersion, Service, Timestamp};
use tempfile::TempDir;

use super::render::{Credential, Request};
use crate::bursts::schedule::pause;
use crate::traces::scrub::Seen;
use crate::wire::access::{ACCOUNT, Access, Account};
use crate::wire::in_process::base;
use crate::wire::{self, Answer, Headers};

/// Start time of every history, in seconds of the Unix epoch.
pub const START_S: u64 = 1_700_000_000;
/// The clock is always this far into a second.
const PAST_THE_SECOND: Duration = Duration::from_millis(400);
/// A fixed seed: ids only have to differ within one history.
const SEED: u64 = 1;
/// `x-ms-version` of every request.
pub(super) const VERSION: ApiVersion = ApiVersion::V2021_12_02;

/// The exchanges, in the order of the answers.
pub type Log = Arc<Mutex<Vec<Seen>>>;

/// An emulator with its state.
pub struct Server {
    emulator: Emulator,
    clock: Clock,
    access: Access,
    dir: Option<Home>,
    /// Whether its account has a hierarchical namespace.
    lake: bool,
    /// Where exchanges are recorded, if they are.
    log: Option<Log>,
    /// Whether commits only proceed in [`Server::step`].
    is_stepped: bool,
}

/// Where the state is stored, and when writes are answered.
struct Home {
    dir: TempDir,
    durable: bool,
}

impl Server {
    /// Opens a fresh server in memory.
    pub fn in_memory() -> Result<Self, String> {
        Self::open(None, false)
    }

    /// Opens a fresh server that can be restarted; with `durable`, answers wait for the disk.
    ///
    /// # Errors
    /// When its directory cannot be created or it does not open.
    pub fn on_disk(durable: bool) -> Result<Self, String> {
        let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
        Self::open(Some(Home { dir, durable }), false)
    }

    /// Returns the same server, still empty, with a hierarchical namespace.
    pub fn lake(self) -> Result<Self, String> {
        self.emulator.close().map_err(|error| error.to_string())?;
        Self::open(self.dir, true)
    }

    /// Returns the state of the model before the first request.
    pub fn model(&self) -> Model {
        match self.lake {
            true => Model::hierarchical(START_S),
            false => Model::new(START_S),
        }
    }

    /// Opens a fresh server in memory whose commits only proceed in [`Server::step`].
    pub fn stepped(access: Access) -> Result<Self, String> {
        Self::stepped_as(access, Config::default())
    }

    /// Like [`Server::stepped`], with a given configuration.
    pub fn stepped_as(access: Access, config: Config) -> Result<Self, String> {
        let clock = Clock::manual(moment(START_S));
        let builder = Emulator::builder().config(config).clock(clock.clone());
        let opened = builder.seed(SEED).stepped().open();
        Ok(Server {
            emulator: opened.map_err(|error| error.to_string())?,
            clock,
            access,
            dir: None,
            lake: false,
            is_stepped: true,
            log: None,
        })
    }

    fn open(dir: Option<Home>, lake: bool) -> Result<Self, String> {
        let clock = Clock::manual(moment(START_S));
        Ok(Server {
            emulator: emulator(&clock, dir.as_ref(), lake)?,
            lake,
            clock,
            access: Access::full(VERSION),
            dir,
            log: None,
            is_stepped: false,
        })
    }

    /// Records every exchange from now on, for a trace.
    pub fn keep(&mut self) -> Log {
        self.log.get_or_insert_default().clone()
    }

    /// Returns the signature of all requests. Computed once, because signing takes longer than most
    /// bursts.
    pub fn access() -> Access {
        Access::full(VERSION)
    }

    /// Lets the commit path take one step; a new group has at most `most` commits. Returns false
    /// when no commit waits.
    pub fn step(&self, most: usize) -> bool {
        self.emulator.step(most).is_some()
    }

    /// Checks that the store counts the references to every payload correctly.
    ///
    /// # Errors
    /// The first difference.
    pub fn audit(&self) -> Result<(), String> {
        let audit = self.emulator.audit().map_err(|error| error.to_string())?;
        let first = audit.differences.into_iter().next();
        first.map_or(Ok(()), Err)
    }

    /// Sets the time, in seconds of the Unix epoch.
    pub fn set_time(&self, now_s: u64) {
        self.clock.set(moment(now_s));
    }

    /// Restarts the service on the same state. A server in memory cannot be restarted.
    ///
    /// # Errors
    /// When it does not close or open.
    pub fn restart(&mut self) -> Result<(), String> {
        if self.dir.is_some() {
            self.emulator.close().map_err(|error| error.to_string())?;
            self.emulator = emulator(&self.clock, self.dir.as_ref(), self.lake)?;
        }
        Ok(())
    }

    /// Returns the request with its signature, if it needs one by the account's key.
    pub fn signed(&self, request: &Request) -> Option<Request> {
        (request.credential == Credential::Key).then_some(())?;
        let own = Request {
            credential: Credential::Own,
            ..request.clone()
        };
        let signed = own
            .with("x-ms-version", VERSION.to_string())
            .with("x-ms-date", self.clock.now().rfc1123());
        let length = ("content-length".to_owned(), request.body.len().to_string());
        let headers = signed.headers.iter().cloned().chain([length]);
        let mut wire = wire::Request {
            method: request.method.to_string(),
            url: format!("{}/{ACCOUNT}/{}", base(request.service), request.path),
            headers: headers.collect(),
            body: Bytes::new(),
        };
        Account::emulator().sign(Scheme::SharedKey, request.service, VERSION, &mut wire);
        let signature = wire.headers.get("authorization").unwrap_or_default();
        Some(signed.with("authorization", signature))
    }

    /// Sends a request, which holds its signature if it needs the account's key.
    pub async fn send(&self, request: &Request) -> Result<Answer, String> {
        let path = match request.credential {
            Credential::Account => self.access.path(&request.path),
            Credential::Key | Credential::Own => format!("/{ACCOUNT}/{}", request.path),
        };
        let mut wire = http::Request::builder()
            .method(request.method.clone())
            .uri(format!("{}{path}", base(request.service)))
            .header("content-length", request.body.len());
        if !request
            .headers
            .iter()
            .any(|(name, _)| name == "x-ms-version")
        {
            wire = wire.header("x-ms-version", VERSION.to_string());
        }
        for (name, value) in &request.headers {
            // A copy source is a URL with its own signature.
            let value = match name.as_str() {
                "x-ms-copy-source" => format!("{}{}", base(Service::Blob), self.access.path(value)),
                _ => value.clone(),
            };
            wire = wire.header(name, value);
        }
        let body = smalt::body::full(Bytes::from(request.body.clone()));
        let wire = wire.body(body).map_err(|error| error.to_string())?;
        let sent = self.log.is_some().then(|| {
            let (method, uri) = (wire.method().clone(), wire.uri().clone());
            (method, uri, wire.headers().clone())
        });
        if self.is_stepped {
            // Other clients may run while the request is on its way.
            pause().await;
        }
        let response = self.emulator.call(wire).await;
        if self.is_stepped {
            // Other clients may run while the answer is on its way.
            pause().await;
        }
        let response = response.map_err(|error| error.to_string())?;
        let answer = Answer::read(response).await.map_err(|e| e.to_string())?;
        if let (Some(log), Some((method, uri, headers))) = (&self.log, sent) {
            let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
            let now_s = self.clock.now().unix_s();
            log.push(Seen {
                t: (now_s - START_S) * 1_000,
                host: uri.authority().map(ToString::to_string).unwrap_or_default(),
                method: method.to_string(),
                target: uri
                    .path_and_query()
                    .map(ToString::to_string)
                    .unwrap_or_default(),
                request_headers: Headers::from(&headers).pairs(),
                request_body: Bytes::from(request.body.clone()),
                status: answer.status,
                response_headers: answer.headers.pairs(),
                response_body: answer.body.clone(),
            });
        }
        Ok(answer)
    }
}

/// Returns the usual configuration, with or without a hierarchical namespace.
pub fn config(lake: bool) -> Config {
    let mut config = Config::default();
    for account in config.accounts.values_mut() {
        account.settings = Arc::new(AccountSettings {
            hierarchical_namespace: lake,
            ..AccountSettings::default()
        });
    }
    config
}

/// Returns a time within a second of the model. The service shows whole seconds, but its clock
/// never has one, so that a comparison without rounding is found.
pub(super) fn moment(now_s: u64) -> Timestamp {
    Timestamp::from_unix_s(now_s).plus(PAST_THE_SECOND)
}

fn emulator(clock: &Clock, home: Option<&Home>, lake: bool) -> Result<Emulator, String> {
    let builder = Emulator::builder()
        .config(config(lake))
        .clock(clock.clone())
        .seed(SEED);
    let builder = match home {
        Some(home) if home.durable => builder.durable(home.dir.path()),
        Some(home) => builder.fast(home.dir.path()),
        None => builder,
    };
    builder.open().map_err(|error| error.to_string())
}
