//! A client of the Queue service that signs its requests, with a clock that the test moves.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use smalt::{Clock, Config, Emulator, Service, Timestamp};
use smalt_protocol::ApiVersion;
use smalt_protocol::connection_string::{EMULATOR_ACCOUNT_KEY, EMULATOR_ACCOUNT_NAME};
use smalt_protocol::signing::AccountKey;

use crate::support::{exchange, signature};

pub(crate) const ACCOUNT: &str = EMULATOR_ACCOUNT_NAME;
pub(crate) const START: Timestamp = Timestamp::from_unix_s(1_700_000_000);

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) fn outcome(&self) -> String {
        let code = self.header("x-ms-error-code");
        format!("{} {code}", self.status).trim_end().to_owned()
    }

    /// Returns a header's value; empty when it is missing.
    pub(crate) fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value.map_or("", |value| value.to_str().unwrap())
    }

    /// Returns the raw texts of all elements of this name.
    pub(crate) fn all(&self, name: &str) -> Vec<&str> {
        let start = format!("<{name}>");
        let parts = self.text.split(&start).skip(1);
        parts.map(|part| part.split('<').next().unwrap()).collect()
    }

    /// Returns the text of the only element of this name; empty when it is missing.
    pub(crate) fn one(&self, name: &str) -> String {
        let all = self.all(name);
        assert!(all.len() <= 1, "{name} in {}", self.text);
        all.first().copied().unwrap_or_default().to_owned()
    }
}

/// A message that a client has received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) id: String,
    pub(crate) receipt: String,
}

impl Held {
    /// Returns the only message of a response.
    pub(crate) fn of(answer: &Answer) -> Self {
        Held {
            id: answer.one("MessageId"),
            receipt: answer.one("PopReceipt"),
        }
    }
}

/// An emulator with the queue `que`, its clock, and the API version to use.
pub(crate) struct Client {
    pub(crate) emulator: Emulator,
    pub(crate) clock: Clock,
    pub(crate) version: ApiVersion,
}

impl Client {
    pub(crate) async fn new() -> Self {
        Self::with(Config::default()).await
    }

    pub(crate) async fn with(config: Config) -> Self {
        let clock = Clock::manual(START);
        let config = Config {
            strict_skew: true,
            ..config
        };
        let builder = Emulator::builder().config(config);
        let client = Client {
            emulator: builder.clock(clock.clone()).seed(1).open().unwrap(),
            clock,
            version: ApiVersion::LATEST,
        };
        assert_eq!(client.send("PUT", "/que", "").await.outcome(), "201");
        client
    }

    pub(crate) fn advance_s(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }

    /// Sends a request signed by the owner; `path` follows the account.
    pub(crate) async fn send(&self, method: &str, path: &str, body: impl Into<Bytes>) -> Answer {
        self.send_with(method, path, &[], body).await
    }

    /// Like [`Client::send`], with headers.
    pub(crate) async fn send_with(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Answer {
        let body = body.into();
        let target = format!("/{ACCOUNT}{path}");
        let (date, version) = (self.emulator.now().rfc1123(), self.version.to_string());
        let length = body.len().to_string();
        let mut all = vec![
            ("x-ms-date", date.as_str()),
            ("x-ms-version", version.as_str()),
            ("content-length", length.as_str()),
        ];
        all.extend_from_slice(headers);
        let by = (ACCOUNT, key());
        let signed = signature(Service::Queue, self.version, by, method, &target, &all);
        all.push(("authorization", &signed));
        self.call(method, &target, &all, body).await
    }

    /// Sends a request unchanged; `target` is path and query.
    pub(crate) async fn call(
        &self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: Bytes,
    ) -> Answer {
        let (head, body) = exchange(&self.emulator, 10001, (method, target), headers, body).await;
        Answer {
            status: head.status.as_u16(),
            headers: head.headers,
            text: String::from_utf8(body.to_vec()).unwrap(),
        }
    }

    /// Puts a message with this query and returns the response.
    pub(crate) async fn try_put(&self, text: &str, query: &str) -> Answer {
        self.send("POST", &format!("/que/messages{query}"), document(text))
            .await
    }

    /// Puts a message, which must succeed.
    pub(crate) async fn put(&self, text: &str, query: &str) -> Held {
        let answer = self.try_put(text, query).await;
        assert_eq!(answer.outcome(), "201", "{}", answer.text);
        Held::of(&answer)
    }

    /// Gets messages with this query and returns the response.
    pub(crate) async fn get(&self, query: &str) -> Answer {
        self.send("GET", &format!("/que/messages{query}"), "").await
    }

    /// Returns the texts of all visible messages.
    pub(crate) async fn visible(&self) -> Vec<String> {
        let answer = self.get("?peekonly=true&numofmessages=32").await;
        assert_eq!(answer.outcome(), "200");
        // An empty text is an empty element.
        let (empty, long) = ("<MessageText />", "<MessageText></MessageText>");
        let answer = Answer {
            text: answer.text.replace(empty, long),
            ..answer
        };
        let texts = answer.all("MessageText").into_iter();
        texts.map(str::to_owned).collect()
    }

    /// Returns the approximate message count.
    pub(crate) async fn count(&self) -> u64 {
        let answer = self.send("GET", "/que?comp=metadata", "").await;
        let count = answer.header("x-ms-approximate-messages-count");
        count.parse().unwrap()
    }
}

pub(crate) fn key() -> AccountKey {
    AccountKey::parse(EMULATOR_ACCOUNT_KEY).unwrap()
}

/// Returns the body of Put Message and Update Message; the text is already XML.
pub(crate) fn document(text: &str) -> String {
    format!("<QueueMessage><MessageText>{text}</MessageText></QueueMessage>")
}
