//! A client that signs its requests.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::time::Duration;

use http::{HeaderMap, Request, StatusCode};
use http_body_util::BodyExt;
use smalt::{Clock, Config, Emulator, Service, Timestamp, body};
use smalt_protocol::ApiVersion;
use smalt_protocol::connection_string::{EMULATOR_ACCOUNT_KEY, EMULATOR_ACCOUNT_NAME};
use smalt_protocol::signing::AccountKey;

use crate::support::signature;

pub(crate) const START: Timestamp = Timestamp::from_unix_s(1_700_000_000);

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) fn outcome(&self) -> String {
        let code = self.header("x-ms-error-code");
        format!("{} {code}", self.status.as_u16())
            .trim_end()
            .to_owned()
    }

    /// Returns a header's value; empty when it is missing.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
    }

    /// Returns the texts of all elements of this name.
    pub(crate) fn elements(&self, name: &str) -> Vec<&str> {
        let start = format!("<{name}>");
        let parts = self.text.split(&start).skip(1);
        parts.map(|part| part.split('<').next().unwrap()).collect()
    }
}

/// An emulator, its clock, and the API version to use.
pub(crate) struct Client {
    pub(crate) emulator: Emulator,
    pub(crate) clock: Clock,
    pub(crate) version: ApiVersion,
}

impl Client {
    pub(crate) fn new() -> Self {
        Self::with(Config::default())
    }

    pub(crate) fn with(config: Config) -> Self {
        let clock = Clock::manual(START);
        let builder = Emulator::builder()
            .config(config)
            .clock(clock.clone())
            .seed(1);
        Client {
            emulator: builder.open().unwrap(),
            clock,
            version: ApiVersion::V2021_12_02,
        }
    }

    pub(crate) fn advance(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }

    /// Sends a request with a path after the account, such as `c?restype=container`.
    pub(crate) async fn ask(
        &self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        content: &str,
    ) -> Answer {
        let target = format!("/{EMULATOR_ACCOUNT_NAME}/{target}");
        self.ask_at(method, &target, headers, content).await
    }

    /// Sends a request with an unchanged path and query.
    pub(crate) async fn ask_at(
        &self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        content: &str,
    ) -> Answer {
        self.ask_from("127.0.0.1:10000", method, target, headers, content)
            .await
    }

    /// Sends a request to a host name of the account.
    pub(crate) async fn ask_host(&self, host: &str, method: &str, target: &str) -> Answer {
        self.ask_from(host, method, target, &[], "").await
    }

    async fn ask_from(
        &self,
        host: &str,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        content: &str,
    ) -> Answer {
        let date = self.clock.wall().rfc1123();
        let (version, length) = (self.version.to_string(), content.len().to_string());
        let mut all = headers.to_vec();
        all.extend([
            ("x-ms-date", date.as_str()),
            ("x-ms-version", &version),
            ("content-length", &length),
        ]);
        let key = AccountKey::parse(EMULATOR_ACCOUNT_KEY).unwrap();
        let by = (EMULATOR_ACCOUNT_NAME, key);
        let signed = signature(Service::Blob, self.version, by, method, target, &all);
        let mut request = Request::builder()
            .method(method)
            .uri(format!("http://{host}{target}"))
            .header("authorization", signed);
        for (name, value) in all {
            request = request.header(name, value);
        }
        let request = request.body(body::full(content.to_owned())).unwrap();
        let (head, body) = self.emulator.call(request).await.unwrap().into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        Answer {
            status: head.status,
            headers: head.headers,
            text: String::from_utf8(bytes.to_vec()).unwrap(),
        }
    }

    /// Like [`Client::ask`], but returns only the outcome.
    pub(crate) async fn try_(
        &self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
    ) -> String {
        self.ask(method, target, headers, "").await.outcome()
    }

    pub(crate) async fn create(&self, name: &str) {
        let target = format!("{name}?restype=container");
        assert_eq!(self.try_("PUT", &target, &[]).await, "201");
    }

    /// Puts an empty block blob.
    pub(crate) async fn put(&self, blob: &str) {
        let headers = [("x-ms-blob-type", "BlockBlob")];
        assert_eq!(self.try_("PUT", blob, &headers).await, "201", "{blob}");
    }
}
