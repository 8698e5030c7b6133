//! The emulator in this process: no socket, and a clock that only moves on request.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use async_trait::async_trait;
use smalt::fetch::FetchError;
use smalt::header_case::HeaderCase;
use smalt::{Account, AccountSettings, Body, Clock, Config, Emulator, OAuth};
use smalt_protocol::Timestamp;

use super::{Ability, About, Setup, Target, TargetError};
use crate::wire::url::Url;
use crate::wire::{Answer, Request, WireError};

/// Initial time unless a [`Setup`] gives another: 15 January 2027, 08:00.
const START_UNIX_S: u64 = 1_800_000_000;
/// A fixed seed: ids only have to differ within one run.
const SEED: u64 = 1;
/// A host outside Azure, as a source of copies. The query of its URLs says what they answer:
/// `length`, and content headers by name.
pub const ELSEWHERE: &str = "elsewhere.invalid";

/// An emulator in memory with Azure's addresses: HTTPS, at the account's host names.
pub struct InProcess {
    about: About,
    emulator: RwLock<Option<Emulator>>,
}

impl Default for InProcess {
    /// Returns a target that starts with its first [`Setup`].
    fn default() -> Self {
        let about = About::by_host("smalt in process").able([
            Ability::Clock,
            Ability::Settings,
            Ability::ServiceProperties,
            Ability::Https,
            Ability::Tokens,
            Ability::Faults,
            Ability::WholeAccount,
        ]);
        let emulator = RwLock::default();
        InProcess { about, emulator }
    }
}

impl InProcess {
    /// Returns a target that already has its account.
    pub fn open() -> Result<InProcess, TargetError> {
        let target = InProcess::default();
        target.begin_with(Config::default(), Timestamp::from_unix_s(START_UNIX_S))?;
        Ok(target)
    }

    fn begin_with(&self, config: Config, now: Timestamp) -> Result<(), TargetError> {
        let config = Config {
            host_style: true,
            oauth: OAuth::Basic,
            ..config
        };
        let opened = Emulator::builder()
            .config(config)
            .clock(Clock::manual(now))
            .seed(SEED)
            .fetch_sources_by(
                |request: http::Request<bytes::Bytes>| async move { page(request.uri()) },
            )
            .open();
        let emulator = opened.map_err(TargetError::control)?;
        let mut running = self
            .emulator
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        *running = Some(emulator);
        Ok(())
    }

    /// Returns a clone of the running emulator, so that a call that hangs holds no lock.
    fn emulator(&self) -> Result<Emulator, TargetError> {
        let running = self.emulator.read().unwrap_or_else(PoisonError::into_inner);
        let running = running.clone();
        running.ok_or_else(|| TargetError::control("called before the first reset"))
    }
}

/// Returns the page that the URL describes.
fn page(uri: &http::Uri) -> Result<http::Response<Body>, FetchError> {
    let unreachable = || FetchError::Unreachable(uri.to_string());
    let url = Url::parse(&uri.to_string()).ok_or_else(unreachable)?;
    let length = url.param("length").and_then(|length| length.parse().ok());
    let length: usize = length
        .filter(|_| url.authority == ELSEWHERE)
        .ok_or_else(unreachable)?;
    let mut page = http::Response::builder();
    for (name, value) in url.decoded_query() {
        if name != "length" {
            page = page.header(name, value);
        }
    }
    page.body(smalt::body::full(vec![0; length]))
        .map_err(|error| FetchError::Malformed(error.to_string()))
}

#[async_trait]
impl Target for InProcess {
    fn about(&self) -> &About {
        &self.about
    }

    async fn call(&self, request: Request) -> Result<Answer, TargetError> {
        let wire = request
            .builder(&request.url)?
            .extension(HeaderCase::of(request.headers.with_capitals()))
            .body(smalt::body::full(request.body.clone()))
            .map_err(WireError::request)?;
        let answer = self.emulator()?.call(wire).await.map_err(WireError::call)?;
        Ok(Answer::read(answer).await?)
    }

    async fn reset(&self, setup: &Setup) -> Result<(), TargetError> {
        let settings = Arc::new(setup.settings.clone());
        let accounts = setup.accounts.iter().map(|account| {
            let mut held = Account::with_key(account.key.clone());
            held.settings = Arc::clone(&settings);
            (account.name.clone(), held)
        });
        let config = Config {
            accounts: accounts.collect(),
            strict_api_version: true,
            strict_skew: true,
            being_deleted_s: setup.being_deleted_s,
            ..Config::default()
        };
        self.begin_with(config, setup.now)
    }

    fn now(&self) -> Timestamp {
        let emulator = self.emulator();
        emulator.map_or_else(|_| Clock::system().now(), |emulator| emulator.now())
    }

    async fn set_clock(&self, now: Timestamp) -> Result<(), TargetError> {
        self.emulator()?.clock().set(now);
        Ok(())
    }

    async fn advance(&self, seconds: u64) -> Result<(), TargetError> {
        let span = Duration::from_secs(seconds);
        self.emulator()?.clock().advance(span);
        Ok(())
    }

    async fn configure(&self, settings: &serde_json::Value) -> Result<(), TargetError> {
        let settings = match settings {
            serde_json::Value::Null => AccountSettings::default(),
            given => serde_json::from_value(given.clone()).map_err(TargetError::control)?,
        };
        let account = &self.about.account.name;
        self.emulator()?.change_settings(account, settings);
        Ok(())
    }

    async fn plan(&self, rule: &smalt::faults::Rule) -> Result<(), TargetError> {
        self.emulator()?.faults().add(rule.clone());
        Ok(())
    }

    async fn fired(&self) -> Result<u64, TargetError> {
        let emulator = self.emulator()?;
        let rules = emulator.faults().account();
        emulator.faults().clear();
        Ok(rules.iter().map(|rule| rule.fired).sum())
    }
}
