//! A client for tests: signs with the account key and calls the emulator in process.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::response::Parts;
use http::{HeaderMap, Method, Request};
use http_body_util::BodyExt;
use serde_json::Value;
use smalt::{AccountSettings, Builder, Clock, Config, Emulator, Timestamp, body};
use smalt_protocol::connection_string::{EMULATOR_ACCOUNT_KEY, EMULATOR_ACCOUNT_NAME};
use smalt_protocol::signing::AccountKey;
use smalt_protocol::signing::sas::SasTarget;
use smalt_protocol::signing::sas::build::ServiceSas;
use smalt_protocol::signing::shared_key::{Scheme, SigningInput, authorization};
use smalt_protocol::{ApiVersion, Service, uri};

/// Another account of the emulator, with its own key.
pub(crate) const OTHER_ACCOUNT: &str = "other";
const OTHER_KEY: &str = "b3RoZXI=";

/// An emulator at a fixed time, and its caller.
pub(crate) struct Client {
    emulator: Emulator,
    account: &'static str,
    version: ApiVersion,
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Client {
    pub(crate) fn new() -> Self {
        Self::of(|builder| builder)
    }

    /// Creates an emulator with the test's settings.
    pub(crate) fn of(settings: impl FnOnce(Builder) -> Builder) -> Self {
        let config = Config {
            strict_skew: true,
            ..Config::default()
        };
        let clock = Clock::manual(Timestamp::from_unix_s(1_700_000_000));
        let builder = Emulator::builder().config(config).clock(clock).seed(1);
        let builder = builder.account(OTHER_ACCOUNT, AccountKey::parse(OTHER_KEY).unwrap());
        Client {
            emulator: settings(builder).open().unwrap(),
            account: EMULATOR_ACCOUNT_NAME,
            version: ApiVersion::LATEST,
        }
    }

    /// Creates an emulator whose account has these settings.
    pub(crate) fn of_account(settings: AccountSettings) -> Self {
        let mut config = Config {
            strict_skew: true,
            ..Config::default()
        };
        let settings = Arc::new(settings);
        for account in config.accounts.values_mut() {
            account.settings = settings.clone();
        }
        Self::of(|builder| builder.config(config))
    }

    /// Returns the same emulator, used with another API version.
    pub(crate) fn under(&self, version: ApiVersion) -> Self {
        Client {
            emulator: self.emulator.clone(),
            account: self.account,
            version,
        }
    }

    /// Returns the same emulator, used by the owner of the other account.
    pub(crate) fn of_other_account(&self) -> Self {
        Client {
            emulator: self.emulator.clone(),
            account: OTHER_ACCOUNT,
            version: self.version,
        }
    }

    pub(crate) fn emulator(&self) -> &Emulator {
        &self.emulator
    }

    pub(crate) fn key(&self) -> AccountKey {
        let is_other = self.account == OTHER_ACCOUNT;
        let key = if is_other {
            OTHER_KEY
        } else {
            EMULATOR_ACCOUNT_KEY
        };
        AccountKey::parse(key).unwrap()
    }

    /// Sends a request to the control endpoint. Returns the status and the JSON of the answer.
    pub(crate) async fn control(&self, method: &str, path: &str, text: String) -> (u16, Value) {
        let request = Request::builder().method(method).uri(path);
        let request = request.header("host", "127.0.0.1:10003");
        let request = request.body(body::full(text)).unwrap();
        let answer = smalt::control::answer(&self.emulator, None, request).await;
        let status = answer.status().as_u16();
        let bytes = answer.into_body().collect().await.unwrap().to_bytes();
        (status, serde_json::from_slice(&bytes).unwrap_or_default())
    }

    /// Returns the URL of a path after the account.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:10000/{}{path}", self.account)
    }

    /// Returns the URL of a blob with a SAS that is valid for an hour.
    pub(crate) fn signed_url(&self, container: &str, blob: &str, permissions: &str) -> String {
        let sas = ServiceSas {
            version: ApiVersion::V2020_10_02,
            target: SasTarget {
                service: Service::Blob,
                account: self.account,
                name: container,
                blob: Some(blob),
                snapshot: "",
            },
            permissions,
            start: None,
            expiry: Some(self.now().plus_s(3600)),
            policy_id: "",
            ip: "",
            protocol: "",
            more: &[],
        };
        let query = sas.sign(self.key().as_bytes());
        self.url(&format!("/{container}/{blob}?{query}"))
    }

    pub(crate) fn advance_s(&self, seconds: u64) {
        self.emulator.clock().advance(Duration::from_secs(seconds));
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.emulator.now()
    }

    /// Sends a signed request; `path` follows the account.
    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Answer {
        let body = body.into();
        let target = format!("/{}{path}", self.account);
        let (date, version) = (self.now().rfc1123(), self.version.to_string());
        let length = body.len().to_string();
        let mut all = vec![
            ("x-ms-date", date.as_str()),
            ("x-ms-version", version.as_str()),
            ("content-length", length.as_str()),
        ];
        all.extend_from_slice(headers);
        let by = (self.account, self.key());
        let signature = signature(Service::Blob, self.version, by, method, &target, &all);
        all.push(("authorization", signature.as_str()));
        self.send_as_is(method, &target, &all, body).await
    }

    /// Sends a request unchanged; `target` is path and query.
    pub(crate) async fn send_as_is(
        &self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: Bytes,
    ) -> Answer {
        let (head, body) = exchange(&self.emulator, 10000, (method, target), headers, body).await;
        Answer {
            status: head.status.as_u16(),
            headers: head.headers,
            body,
        }
    }
}

/// Sends an unchanged request to the service at a port: method, path with query, headers, body.
pub(crate) async fn exchange(
    emulator: &Emulator,
    port: u16,
    (method, target): (&str, &str),
    headers: &[(&str, &str)],
    body: Bytes,
) -> (Parts, Bytes) {
    let mut request = Request::builder()
        .method(Method::from_bytes(method.as_bytes()).unwrap())
        .uri(format!("http://127.0.0.1:{port}{target}"));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(body::full(body)).unwrap();
    let (head, body) = emulator.call(request).await.unwrap().into_parts();
    (head, body.collect().await.unwrap().to_bytes())
}

/// Returns the `Authorization` header of a request by the owner of an account, given by name and
/// key; `target` is path and query.
pub(crate) fn signature(
    service: Service,
    version: ApiVersion,
    (account, key): (&str, AccountKey),
    method: &str,
    target: &str,
    headers: &[(&str, &str)],
) -> String {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let input = SigningInput {
        service,
        scheme: Scheme::SharedKey,
        version,
        method,
        account,
        path,
        query: &uri::parse_query(query).unwrap(),
        headers,
    };
    authorization(&input, key.as_bytes())
}

impl Answer {
    /// Returns a header's value; empty when it is missing.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |v| v.to_str().unwrap())
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.headers.contains_key(name)
    }

    pub(crate) fn outcome(&self) -> (u16, &str) {
        (self.status, self.header("x-ms-error-code"))
    }
}
