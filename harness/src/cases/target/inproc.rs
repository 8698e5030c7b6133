//! The emulator in this process: no socket, a clock that only scenarios move.

use async_trait::async_trait;
use http_body_util::BodyExt as _;
use smalt::faults::Rule;
use smalt::{AccountSettings, Clock, Config, Emulator, OAuth};
use smalt_protocol::Timestamp;
use smalt_protocol::connection_string::{EMULATOR_ACCOUNT_KEY, EMULATOR_ACCOUNT_NAME};
use smalt_protocol::signing::AccountKey;

use super::{About, Target, TargetError};
use crate::cases::auth::Account;
use crate::cases::case::Ability;
use crate::replay::wire::{Headers, Request, Response};

/// The time at which it starts: 15 January 2027, 08:00.
const START_UNIX_S: u64 = 1_800_000_000;
/// Ids need not differ between runs.
const SEED: u64 = 1;

/// An emulator in memory, asked as Azure is: by https, at the account's host names.
pub struct InProcess {
    about: About,
    emulator: Emulator,
}

impl InProcess {
    /// Opens one.
    ///
    /// # Errors
    /// When the emulator cannot be opened.
    pub fn open() -> Result<InProcess, TargetError> {
        let control = |error: &dyn std::fmt::Display| TargetError::Control(error.to_string());
        let key = AccountKey::parse(EMULATOR_ACCOUNT_KEY);
        let key = key.ok_or_else(|| control(&"the emulator's account has no key"))?;
        let config = Config {
            oauth: OAuth::Basic,
            host_style: true,
            ..Config::default()
        };
        let clock = Clock::manual(Timestamp::from_unix_s(START_UNIX_S));
        let builder = Emulator::builder().config(config).clock(clock).seed(SEED);
        let emulator = builder.open().map_err(|error| control(&error))?;
        let base =
            |service: &str| format!("https://{EMULATOR_ACCOUNT_NAME}.{service}.core.windows.net");
        let abilities = [
            Ability::Clock,
            Ability::Settings,
            Ability::ServiceProperties,
            Ability::Https,
            Ability::Tokens,
            Ability::Faults,
            Ability::WholeAccount,
        ];
        let about = About {
            name: "smalt in process".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            account: Account {
                name: EMULATOR_ACCOUNT_NAME.to_owned(),
                key,
            },
            blob: base("blob"),
            queue: base("queue"),
            table: base("table"),
            abilities: abilities.into_iter().collect(),
        };
        Ok(InProcess { about, emulator })
    }
}

#[async_trait]
impl Target for InProcess {
    fn about(&self) -> &About {
        &self.about
    }

    async fn call(&self, request: Request) -> Result<Response, TargetError> {
        let wire = super::server::wire(&request, &request.url)?
            .body(smalt::body::full(request.body.clone()))
            .map_err(|error| TargetError::Request(error.to_string()))?;
        let call = |error: &dyn std::fmt::Display| TargetError::Call(error.to_string());
        let answer = self.emulator.call(wire).await.map_err(|e| call(&e))?;
        let (head, body) = answer.into_parts();
        let body = body.collect().await.map_err(|e| call(&e))?.to_bytes();
        let text =
            |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let headers = head.headers.iter();
        Ok(Response {
            status: head.status.as_u16(),
            headers: headers
                .map(|(name, value)| (name.as_str(), text(value)))
                .collect::<Headers>(),
            body,
        })
    }

    fn now(&self) -> Timestamp {
        self.emulator.now()
    }

    async fn advance(&self, seconds: u64) -> Result<(), TargetError> {
        let span = std::time::Duration::from_secs(seconds);
        self.emulator.clock().advance(span);
        Ok(())
    }

    async fn configure(&self, settings: &serde_json::Value) -> Result<(), TargetError> {
        let control = |error: serde_json::Error| TargetError::Control(error.to_string());
        let mut all = serde_json::to_value(AccountSettings::default()).map_err(control)?;
        if let (Some(all), Some(given)) = (all.as_object_mut(), settings.as_object()) {
            all.extend(given.clone());
        }
        let settings: AccountSettings = serde_json::from_value(all).map_err(control)?;
        self.emulator
            .change_settings(EMULATOR_ACCOUNT_NAME, settings);
        Ok(())
    }

    async fn plan(&self, rule: &Rule) -> Result<(), TargetError> {
        self.emulator.faults().add(rule.clone());
        Ok(())
    }

    async fn fired(&self) -> Result<u64, TargetError> {
        let account = self.emulator.faults().account();
        self.emulator.faults().clear();
        Ok(account.iter().map(|rule| rule.fired).sum())
    }
}
