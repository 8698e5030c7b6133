//! What recordings are replayed against.

pub mod http;
pub mod inproc;
pub mod live;
pub mod mirror;
pub mod restarted;
pub mod verify;

use async_trait::async_trait;
use smalt::Clock;
use smalt_protocol::Timestamp;

use super::hosts::Addressing;
use super::settings::AccountSettings;
use super::wire::{Headers, Request, Response};

/// How long Azure keeps a deleted container unless told otherwise, in days.
const RETENTION_DAYS: u32 = 7;

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

/// A storage service whose state can be set, and its clock unless it has one of its own.
#[async_trait]
pub trait Target: Send + Sync {
    /// How it names accounts.
    fn addressing(&self) -> Addressing;

    /// Forgets everything and starts with these accounts and settings at this time.
    async fn reset(&self, settings: &AccountSettings, start: Timestamp) -> Result<(), TargetError>;

    /// The clock that it goes by, where nobody can set that: recordings are moved to its time.
    fn own_clock(&self) -> Option<Clock> {
        None
    }

    /// What it cannot be given of these settings, if anything: recordings that need it prove
    /// nothing.
    fn lacks(&self, _: &AccountSettings) -> Option<&'static str> {
        None
    }

    /// Sets its clock, or waits until that has come so far; never called with an earlier time than
    /// before.
    async fn set_clock(&self, now: Timestamp) -> Result<(), TargetError>;

    /// Told before each interaction of the recording, and before none of the set-up.
    async fn begin(&self) {}

    /// Sends one request and reads the whole answer.
    async fn call(&self, request: Request) -> Result<Response, TargetError>;
}

/// The answer as plain values.
fn answer(status: u16, headers: &::http::HeaderMap, body: bytes::Bytes) -> Response {
    let text = |value: &::http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let headers = headers
        .iter()
        .map(|(n, v)| (n.as_str(), text(v)))
        .collect::<Headers>();
    Response {
        status,
        headers,
        body,
    }
}

/// The parts of a request for the `http` crate.
fn builder(request: &Request, uri: &str) -> Result<::http::request::Builder, TargetError> {
    let fail = |e: &dyn std::fmt::Display| TargetError::Request(format!("{e}: {}", request.url));
    let uri: ::http::Uri = uri.parse().map_err(|e| fail(&e))?;
    let method: ::http::Method = request.method.parse().map_err(|e| fail(&e))?;
    let mut builder = ::http::Request::builder().method(method).uri(uri);
    for (name, value) in request.headers.iter() {
        let value = ::http::HeaderValue::from_bytes(value.as_bytes()).map_err(|e| fail(&e))?;
        builder = builder.header(name, value);
    }
    Ok(builder)
}
