//! A scripted service that answers from a list and records its requests.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use smalt_protocol::Timestamp;
use tokio::time::Instant;

use crate::port::{BlobId, CallContext};
use crate::{Account, AzureStorage, Credential, FnTransport, Settings, TokioClock};

/// The service's `Date` in every response, unless the script sets another.
pub(super) const DATE: &str = "Sat, 21 Nov 2026 10:00:00 GMT";
pub(super) const KEY: &str = "c21hbHQ=";
/// Headers that tests do not compare: they are the same in every request, or tested separately.
const UNIFORM: [&str; 7] = [
    "accept",
    "authorization",
    "host",
    "user-agent",
    "x-ms-client-request-id",
    "x-ms-date",
    "x-ms-version",
];

pub(super) fn date() -> Timestamp {
    Timestamp::parse_rfc1123(DATE).unwrap()
}

pub(super) struct Seen {
    pub(super) request: http::Request<Bytes>,
    pub(super) at: Instant,
}

impl Seen {
    /// Formats method and URL, then its own headers in order, then the body.
    pub(super) fn text(&self) -> String {
        let mut lines: Vec<String> = (self.request.headers().iter())
            .filter(|(name, _)| !UNIFORM.contains(&name.as_str()))
            .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
            .collect();
        lines.sort();
        lines.insert(
            0,
            format!("{} {}", self.request.method(), self.request.uri()),
        );
        if !self.request.body().is_empty() {
            lines.push(String::from_utf8_lossy(self.request.body()).into_owned());
        }
        lines.join("\n")
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.request
            .headers()
            .get(name)
            .map(|value| value.to_str().unwrap())
    }
}

type Answer = io::Result<http::Response<Bytes>>;

/// The scripted service. Answers an unexpected request with 418.
#[derive(Clone)]
pub(super) struct Service {
    script: Arc<Mutex<VecDeque<Answer>>>,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Service {
    pub(super) fn with(script: impl IntoIterator<Item = Answer>) -> Self {
        Service {
            script: Arc::new(Mutex::new(script.into_iter().collect())),
            seen: Arc::default(),
        }
    }

    /// Opens the account `acct` at this service, path style, with a key.
    pub(super) fn storage(&self) -> AzureStorage {
        self.storage_by(Credential::key(KEY).unwrap())
    }

    pub(super) fn storage_by(&self, credential: Credential) -> AzureStorage {
        let endpoint = Some("http://127.0.0.1:10000/acct");
        self.open(Account::new("acct", endpoint, endpoint, credential).unwrap())
    }

    pub(super) fn open(&self, account: Account) -> AzureStorage {
        let settings = Settings {
            clock: Arc::new(TokioClock::starting_at(date())),
            seed: Some(7),
            ..Settings::default()
        };
        AzureStorage::open(account, Arc::new(self.transport()), settings).unwrap()
    }

    pub(super) fn transport(&self) -> FnTransport {
        let service = self.clone();
        FnTransport::new(move |request| {
            let at = Instant::now();
            service.seen.lock().unwrap().push(Seen { request, at });
            let answer = service.script.lock().unwrap().pop_front();
            async move { answer.unwrap_or_else(|| reply(418, &[], "")) }
        })
    }

    /// Returns the requests since the last call.
    pub(super) fn seen(&self) -> Vec<Seen> {
        std::mem::take(&mut *self.seen.lock().unwrap())
    }

    /// Returns the texts of the requests since the last call.
    pub(super) fn texts(&self) -> Vec<String> {
        self.seen().iter().map(Seen::text).collect()
    }

    /// Returns the delays between the requests since the last call.
    pub(super) fn waits(&self) -> Vec<Duration> {
        let seen = self.seen();
        seen.windows(2)
            .map(|pair| pair[1].at - pair[0].at)
            .collect()
    }
}

pub(super) fn reply(status: u16, headers: &[(&str, &str)], body: &str) -> Answer {
    let mut response = http::Response::builder()
        .status(status)
        .header("Date", DATE);
    for (name, value) in headers {
        response = response.header(*name, *value);
    }
    Ok(response.body(Bytes::from(body.to_owned())).unwrap())
}

pub(super) fn refuse(status: u16, code: &str) -> Answer {
    let body =
        format!("<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>No.</Message></Error>");
    reply(status, &[("x-ms-error-code", code)], &body)
}

/// A connection that breaks after the request was sent.
pub(super) fn cut() -> Answer {
    Err(io::Error::new(io::ErrorKind::ConnectionReset, "cut"))
}

pub(super) fn refused() -> Answer {
    Err(io::Error::new(io::ErrorKind::ConnectionRefused, "refused"))
}

pub(super) fn cx() -> CallContext {
    CallContext::default()
}

pub(super) fn blob() -> BlobId {
    BlobId::new("cont", "b.txt")
}
