//! What is tested: anything that answers HTTP requests, and what it can do besides.

pub mod bent;
pub mod inproc;
pub mod server;
pub mod start;

use std::collections::BTreeSet;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::future::join_all;
use smalt::Clock;
use smalt::faults::Rule;
use smalt_protocol::{Service, Timestamp};

use super::auth::Account;
use super::case::Ability;
use super::raw::Then;
pub use crate::replay::target::TargetError;
use crate::replay::wire::{Headers, Request, Response};

/// Where a target is and what it can do.
#[derive(Clone)]
pub struct About {
    /// What reports call it.
    pub name: String,
    /// Its version, as far as it tells.
    pub version: String,
    /// The account that is used.
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

    /// Host and port of a service.
    pub fn authority(&self, service: Service) -> &str {
        let base = self.base(service);
        let after = base.split_once("://").map_or(base, |(_, after)| after);
        after.split('/').next().unwrap_or_default()
    }

    /// The first thing that it cannot do of those needed.
    pub fn lacks(&self, needs: &[Ability]) -> Option<Ability> {
        let lacking = needs.iter().find(|need| !self.abilities.contains(need));
        lacking.copied()
    }
}

/// A storage service under test.
#[async_trait]
pub trait Target: Send + Sync {
    /// Where it is and what it can do.
    fn about(&self) -> &About;

    /// Sends one request and reads the whole answer.
    async fn call(&self, request: Request) -> Result<Response, TargetError>;

    /// Sends bytes on a connection of their own and reads the first answer; status 0 when the
    /// connection ends without one ([`Ability::Bytes`]).
    async fn exchange(
        &self,
        _service: Service,
        _bytes: Vec<u8>,
        _then: Then,
    ) -> Result<Response, TargetError> {
        Err(cannot(Ability::Bytes))
    }

    /// The time that requests are dated with.
    fn now(&self) -> Timestamp {
        Clock::system().now()
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
}

fn cannot(ability: Ability) -> TargetError {
    TargetError::Control(ability.lacking().to_owned())
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
            body: Bytes::new(),
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
