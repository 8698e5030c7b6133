//! What checks ask: anything that answers HTTP requests as a storage service, and what it can do
//! besides.
//!
//! # Layout
//! - [`Target`]: the one trait; [`About`]: where a target is and what it can do; [`Setup`]: the
//!   state that it begins with.
//! - [`in_process`]: the emulator in this process; [`server`]: any server over sockets, with
//!   smalt's [`control`] endpoint or [`emptied`] by requests; [`bent`]: wrong answers on purpose.
//! - [`start`]: targets as command lines name them.
//!
//! A target that answers from a recording is [`crate::replay::mirror`]; one that writes down what
//! another answers is [`crate::traces::capture`].

pub mod bent;
pub mod control;
pub mod emptied;
pub mod in_process;
pub mod server;
pub mod start;

use std::collections::BTreeSet;

use async_trait::async_trait;
use futures_util::future::join_all;
use serde::Deserialize;
use smalt::faults::Rule;
use smalt::{AccountSettings, Clock};
use smalt_protocol::{Service, Timestamp};

use crate::cases::raw::Then;
use crate::servers::ServerError;
use crate::wire::access::Account;
use crate::wire::url::Url;
use crate::wire::{Answer, Headers, Request, WireError};

/// The domain of Azure's accounts.
pub const DOMAIN: &str = ".core.windows.net";

/// Something that a target can do, and a check may need.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ability {
    /// Its clock can be moved.
    Clock,
    /// What Azure keeps in its management plane can be set for the account.
    Settings,
    /// The properties of its services may be changed.
    ServiceProperties,
    /// It is asked by https.
    Https,
    /// It takes bearer tokens that nobody signed.
    Tokens,
    /// It fails on request.
    Faults,
    /// Nobody else uses the account.
    WholeAccount,
    /// It takes any bytes on a connection of their own.
    Bytes,
}

impl Ability {
    /// Why a check is left out that needs this ability.
    pub const fn lacking(self) -> &'static str {
        match self {
            Ability::Clock => "takes time, and the clock of this target cannot be moved",
            Ability::Settings => "needs settings of the account that this target cannot be given",
            Ability::ServiceProperties => {
                "changes properties of the service, which --allow-service-properties permits"
            }
            Ability::Https => "is asked by https only, and this target listens for http",
            Ability::Tokens => "needs a token that this target takes",
            Ability::Faults => "needs faults on request",
            Ability::WholeAccount => "needs an account that nobody else uses",
            Ability::Bytes => "is sent on a bare connection, which this target does not have",
        }
    }
}

/// Where a target is and what it can do.
#[derive(Clone)]
pub struct About {
    /// What reports call it.
    pub name: String,
    /// Its version, as far as it tells.
    pub version: String,
    /// The account that is used unless a [`Setup`] names others.
    pub account: Account,
    /// Base URL of the blob service, without a slash at its end; the account may stand in it.
    pub blob: String,
    /// The same of the queue service.
    pub queue: String,
    /// The same of the table service.
    pub table: String,
    /// What it can do.
    pub abilities: BTreeSet<Ability>,
}

impl About {
    /// The emulator's account, asked as Azure is: by https, at host names of its own.
    pub fn by_host(name: &str) -> About {
        let account = Account::emulator();
        let base = |service: Service| {
            let service = service.as_str();
            format!("https://{}.{service}{DOMAIN}", account.name)
        };
        let [blob, queue, table] = Service::ALL.map(base);
        About {
            name: name.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            account,
            blob,
            queue,
            table,
            abilities: BTreeSet::new(),
        }
    }

    /// The emulator's account, in the path below `scheme://authority` of blob, queue and table.
    pub fn by_path(name: &str, scheme: &str, authorities: [String; 3]) -> About {
        let by_host = About::by_host(name);
        let account = &by_host.account.name;
        let base = |authority: String| format!("{scheme}://{authority}/{account}");
        let [blob, queue, table] = authorities.map(base);
        About {
            blob,
            queue,
            table,
            version: "unknown".to_owned(),
            ..by_host
        }
    }

    /// With these abilities besides.
    #[must_use]
    pub fn able(mut self, abilities: impl IntoIterator<Item = Ability>) -> About {
        self.abilities.extend(abilities);
        self
    }

    /// The base URL of a service.
    pub fn base(&self, service: Service) -> &str {
        match service {
            Service::Blob => &self.blob,
            Service::Queue => &self.queue,
            Service::Table => &self.table,
        }
    }

    /// What stands in the path in front of the container: `/account` or nothing.
    pub fn prefix(&self, service: Service) -> &str {
        let base = self.base(service);
        let after = base.find("://").map_or(base, |at| &base[at + 3..]);
        after.find('/').map_or("", |at| &after[at..])
    }

    /// Host and port of a service; `None` where each account has a host name of its own.
    pub fn authority(&self, service: Service) -> Option<String> {
        let url = Url::parse(self.base(service))?;
        (!url.path.is_empty()).then_some(url.authority)
    }

    /// The URL of a path in any account.
    pub fn url(&self, account: &str, service: Service, path_and_query: &str) -> String {
        match Url::parse(self.base(service)).filter(|url| !url.path.is_empty()) {
            Some(url) => format!(
                "{}://{}/{account}{path_and_query}",
                url.scheme, url.authority
            ),
            None => format!(
                "https://{account}.{}{DOMAIN}{path_and_query}",
                service.as_str()
            ),
        }
    }

    /// Whether it can do this.
    pub fn can(&self, ability: Ability) -> bool {
        self.abilities.contains(&ability)
    }

    /// The first of these abilities that it lacks.
    pub fn lacks(&self, needs: &[Ability]) -> Option<Ability> {
        needs.iter().copied().find(|need| !self.can(*need))
    }
}

/// The state that a target begins with: these accounts, with nothing in them.
#[derive(Clone)]
pub struct Setup {
    /// The accounts, all with the same settings.
    pub accounts: Vec<Account>,
    /// What Azure keeps of them in its management plane.
    pub settings: AccountSettings,
    /// How long the name of a deleted container stays taken, in seconds.
    pub being_deleted_s: u64,
    /// The time.
    pub now: Timestamp,
}

impl Setup {
    /// What a target cannot be given of these settings that has no control endpoint.
    pub fn unusual(&self) -> Option<&'static str> {
        let usual = AccountSettings::default();
        let AccountSettings {
            public_access,
            default_tier,
            versioning,
            container_retention_days,
            last_access_tracking,
            version_immutability,
            blob_expiry,
            sku,
            encryption_scopes,
        } = &self.settings;
        let is_kind_chosen =
            *blob_expiry || *default_tier != usual.default_tier || *sku != usual.sku;
        let needs = [
            (*versioning, "versioning cannot be switched on"),
            (
                container_retention_days.is_some(),
                "soft deletion of containers cannot be switched on",
            ),
            (!public_access, "public access cannot be forbidden"),
            (
                *last_access_tracking,
                "tracking of access cannot be switched on",
            ),
            (
                *version_immutability,
                "immutability of versions cannot be switched on",
            ),
            (is_kind_chosen, "the kind of account cannot be chosen"),
            (
                encryption_scopes
                    .as_ref()
                    .is_some_and(|all| !all.is_empty()),
                "encryption scopes cannot be made",
            ),
        ];
        let found = needs.into_iter().find(|(is_needed, _)| *is_needed);
        found.map(|(_, why)| why)
    }
}

/// Why a target did not answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// The request could not be put on the wire.
    #[error("not a request: {0}")]
    Request(String),
    /// No answer came, or a broken one.
    #[error("no answer: {0}")]
    Call(String),
    /// The clock, the state, settings or faults could not be set.
    #[error("control: {0}")]
    Control(String),
    /// The clock cannot be set, and is not waited for so long.
    #[error("control: the next request lies {ahead_s} s ahead, too long to wait")]
    TooFarAhead {
        /// How far, in seconds.
        ahead_s: u64,
    },
}

impl TargetError {
    /// What could not be controlled.
    pub fn control(error: impl std::fmt::Display) -> Self {
        TargetError::Control(error.to_string())
    }
}

impl From<WireError> for TargetError {
    fn from(error: WireError) -> Self {
        match error {
            WireError::Address(why) | WireError::Request(why) => TargetError::Request(why),
            WireError::Call(why) => TargetError::Call(why),
            WireError::Silent(limit) => TargetError::Call(format!("none within {limit:?}")),
        }
    }
}

impl From<TargetError> for ServerError {
    fn from(error: TargetError) -> Self {
        ServerError::call(error)
    }
}

/// A storage service that can be asked. What it can do besides is among its abilities.
#[async_trait]
pub trait Target: Send + Sync {
    /// Where it is and what it can do.
    fn about(&self) -> &About;

    /// Sends one request and reads the whole answer.
    async fn call(&self, request: Request) -> Result<Answer, TargetError>;

    /// Sends bytes on a connection of their own and reads the first answer; status 0 when the
    /// connection ends without one ([`Ability::Bytes`]).
    async fn exchange(
        &self,
        _service: Service,
        _bytes: Vec<u8>,
        _then: Then,
    ) -> Result<Answer, TargetError> {
        Err(cannot(Ability::Bytes))
    }

    /// Forgets everything and starts with this state. A target without [`Ability::Clock`] keeps
    /// its time, one without [`Ability::Settings`] its settings.
    async fn reset(&self, _setup: &Setup) -> Result<(), TargetError> {
        Err(TargetError::control("this target cannot be emptied"))
    }

    /// The time that requests are dated with.
    fn now(&self) -> Timestamp {
        Clock::system().now()
    }

    /// Sets its clock or, without [`Ability::Clock`], waits until that has come so far; the time
    /// never lies before an earlier one.
    async fn set_clock(&self, _now: Timestamp) -> Result<(), TargetError> {
        Err(cannot(Ability::Clock))
    }

    /// Lets time pass ([`Ability::Clock`]).
    async fn advance(&self, _seconds: u64) -> Result<(), TargetError> {
        Err(cannot(Ability::Clock))
    }

    /// Sets what the account's management plane says; `null` for the defaults
    /// ([`Ability::Settings`]).
    async fn configure(&self, _settings: &serde_json::Value) -> Result<(), TargetError> {
        Err(cannot(Ability::Settings))
    }

    /// Plans a fault ([`Ability::Faults`]).
    async fn plan(&self, _rule: &Rule) -> Result<(), TargetError> {
        Err(cannot(Ability::Faults))
    }

    /// Removes every fault, and tells how often they fired ([`Ability::Faults`]).
    async fn fired(&self) -> Result<u64, TargetError> {
        Err(cannot(Ability::Faults))
    }

    /// The next call is of the recording that is played, not of what sets it up.
    async fn begin(&self) {}
}

fn cannot(ability: Ability) -> TargetError {
    TargetError::control(ability.lacking())
}

/// Whether every service answers, no matter what.
///
/// # Errors
/// The addresses that do not answer, and why.
pub async fn probe(target: &dyn Target) -> Result<(), String> {
    let asked = Service::ALL.map(|service| async move {
        let base = target.about().base(service);
        let request = Request {
            method: "GET".to_owned(),
            url: format!("{base}/?comp=list"),
            headers: Headers::default(),
            body: bytes::Bytes::new(),
        };
        let error = target.call(request).await.err()?;
        Some(format!("{} at {base}: {error}", service.as_str()))
    });
    let silent: Vec<String> = join_all(asked).await.into_iter().flatten().collect();
    if silent.is_empty() {
        return Ok(());
    }
    Err(format!("nothing was tested: {}", silent.join("; ")))
}
