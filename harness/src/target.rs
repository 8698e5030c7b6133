//! Targets: anything that answers HTTP requests as a storage service, and its abilities beyond
//! that.
//!
//! # Layout
//! - [`Target`]: the trait; [`About`]: addresses and abilities of a target; [`Setup`]: its
//!   initial state.
//! - [`in_process`]: the emulator in this process; [`server`]: any server over sockets, with
//!   smalt's [`control`] endpoint or [`emptied`] by requests; [`bent`]: wrong answers on
//!   purpose.
//! - [`start`]: starts targets from their names on the command line.
//!
//! [`crate::replay::mirror`] is a target that answers from a recording; [`crate::traces::capture`]
//! is one that records the answers of another.

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

/// The domain of Azure's storage accounts.
pub const DOMAIN: &str = ".core.windows.net";

/// An ability of a target that a check may require.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ability {
    /// Its clock can be moved.
    Clock,
    /// The account's settings can be changed, which Azure has in its management plane.
    Settings,
    /// The service properties may be changed.
    ServiceProperties,
    /// It serves HTTPS.
    Https,
    /// It accepts unsigned bearer tokens.
    Tokens,
    /// It can be told to fail.
    Faults,
    /// Nobody else uses the account.
    WholeAccount,
    /// It accepts arbitrary bytes on a separate connection.
    Bytes,
}

impl Ability {
    /// Returns why a check that needs this ability is skipped.
    pub const fn lacking(self) -> &'static str {
        match self {
            Ability::Clock => "needs time to pass, and the clock of this target cannot be moved",
            Ability::Settings => "needs account settings that this target cannot change",
            Ability::ServiceProperties => {
                "changes service properties, which needs --allow-service-properties"
            }
            Ability::Https => "needs HTTPS, and this target serves HTTP only",
            Ability::Tokens => "needs a bearer token that this target accepts",
            Ability::Faults => "needs planned faults, which this target does not support",
            Ability::WholeAccount => "needs an account that nobody else uses",
            Ability::Bytes => "needs a raw connection, which this target does not offer",
        }
    }
}

/// Addresses and abilities of a target.
#[derive(Clone)]
pub struct About {
    /// Name in reports.
    pub name: String,
    /// Version, or `unknown`.
    pub version: String,
    /// Account to use unless a [`Setup`] names others.
    pub account: Account,
    /// Base URL of the blob service, without a trailing slash; may include the account in its path.
    pub blob: String,
    /// Base URL of the queue service.
    pub queue: String,
    /// Base URL of the table service.
    pub table: String,
    /// What checks can do with the target beyond plain requests.
    pub abilities: BTreeSet<Ability>,
}

impl About {
    /// Describes the emulator's account with Azure's addresses: HTTPS, one host name per service.
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

    /// Describes the emulator's account in path style: `scheme://authority/account`, with the
    /// authorities of blob, queue and table.
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

    /// Adds abilities.
    #[must_use]
    pub fn able(mut self, abilities: impl IntoIterator<Item = Ability>) -> About {
        self.abilities.extend(abilities);
        self
    }

    /// Returns the base URL of a service.
    pub fn base(&self, service: Service) -> &str {
        match service {
            Service::Blob => &self.blob,
            Service::Queue => &self.queue,
            Service::Table => &self.table,
        }
    }

    /// Returns the path in front of the container: `/account` or nothing.
    pub fn prefix(&self, service: Service) -> &str {
        let base = self.base(service);
        let after = base.find("://").map_or(base, |at| &base[at + 3..]);
        after.find('/').map_or("", |at| &after[at..])
    }

    /// Returns host and port of a service; `None` where each account has its own host name.
    pub fn authority(&self, service: Service) -> Option<String> {
        let url = Url::parse(self.base(service))?;
        (!url.path.is_empty()).then_some(url.authority)
    }

    /// Returns the URL of a path in any account.
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

    /// Whether the target has this ability.
    pub fn can(&self, ability: Ability) -> bool {
        self.abilities.contains(&ability)
    }

    /// Returns the first of these abilities that the target lacks.
    pub fn lacks(&self, needs: &[Ability]) -> Option<Ability> {
        needs.iter().copied().find(|need| !self.can(*need))
    }
}

/// The initial state of a target: these accounts, all empty.
#[derive(Clone)]
pub struct Setup {
    /// The accounts, all with the same settings.
    pub accounts: Vec<Account>,
    /// The accounts' settings, which Azure has in its management plane.
    pub settings: AccountSettings,
    /// How long the name of a deleted container stays reserved, in seconds.
    pub being_deleted_s: u64,
    /// Initial time of the clock.
    pub now: Timestamp,
}

impl Setup {
    /// Returns why a target without a control endpoint cannot have these settings, if they are not
    /// the defaults.
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
            hierarchical_namespace,
            sku,
            role_assignments,
            encryption_scopes,
        } = &self.settings;
        let is_kind_chosen = *blob_expiry
            || *hierarchical_namespace
            || *default_tier != usual.default_tier
            || *sku != usual.sku;
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
            (role_assignments.is_some(), "roles cannot be assigned"),
            (is_kind_chosen, "the kind of account cannot be chosen"),
            (
                encryption_scopes
                    .as_ref()
                    .is_some_and(|all| !all.is_empty()),
                "encryption scopes cannot be created",
            ),
        ];
        let found = needs.into_iter().find(|(is_needed, _)| *is_needed);
        found.map(|(_, why)| why)
    }
}

/// Why a target did not answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// The request could not be sent because it is malformed.
    #[error("not a request: {0}")]
    Request(String),
    /// No answer came, or it was broken off.
    #[error("no answer: {0}")]
    Call(String),
    /// The clock, the state, settings or faults could not be set.
    #[error("control: {0}")]
    Control(String),
    /// The clock cannot be set, and the time is too far ahead to wait for.
    #[error("control: the next request is {ahead_s} s ahead, too long to wait")]
    TooFarAhead {
        /// Distance to that time, in seconds.
        ahead_s: u64,
    },
}

impl TargetError {
    /// Wraps the error of a control request.
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

/// A storage service. Methods beyond `call` need the ability that they name.
#[async_trait]
pub trait Target: Send + Sync {
    /// Returns addresses and abilities.
    fn about(&self) -> &About;

    /// Sends one request and reads the whole answer.
    async fn call(&self, request: Request) -> Result<Answer, TargetError>;

    /// Sends bytes on a separate connection and reads the first answer; the status is 0 when the
    /// connection ends without one. Needs [`Ability::Bytes`].
    async fn exchange(
        &self,
        _service: Service,
        _bytes: Vec<u8>,
        _then: Then,
    ) -> Result<Answer, TargetError> {
        Err(cannot(Ability::Bytes))
    }

    /// Discards all state and starts with this setup. A target without [`Ability::Clock`] keeps its
    /// time; one without [`Ability::Settings`] keeps its settings.
    async fn reset(&self, _setup: &Setup) -> Result<(), TargetError> {
        Err(TargetError::control("this target cannot be emptied"))
    }

    /// Returns the time for dating requests.
    fn now(&self) -> Timestamp {
        Clock::system().now()
    }

    /// Sets the clock or, without [`Ability::Clock`], waits until that time. The time never goes
    /// back.
    async fn set_clock(&self, _now: Timestamp) -> Result<(), TargetError> {
        Err(cannot(Ability::Clock))
    }

    /// Advances the clock. Needs [`Ability::Clock`].
    async fn advance(&self, _seconds: u64) -> Result<(), TargetError> {
        Err(cannot(Ability::Clock))
    }

    /// Changes the account's settings; `null` restores the defaults. Needs [`Ability::Settings`].
    async fn configure(&self, _settings: &serde_json::Value) -> Result<(), TargetError> {
        Err(cannot(Ability::Settings))
    }

    /// Plans a fault. Needs [`Ability::Faults`].
    async fn plan(&self, _rule: &Rule) -> Result<(), TargetError> {
        Err(cannot(Ability::Faults))
    }

    /// Removes all faults and returns how often they fired. Needs [`Ability::Faults`].
    async fn fired(&self) -> Result<u64, TargetError> {
        Err(cannot(Ability::Faults))
    }

    /// Marks the end of the setup: the next call belongs to the recording being played.
    async fn begin(&self) {}
}

fn cannot(ability: Ability) -> TargetError {
    TargetError::control(ability.lacking())
}

/// Checks that every service answers, with any status.
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
