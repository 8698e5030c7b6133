//! A client of the Table service that signs its requests, with a clock that the test moves.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use serde_json::Value;
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
    /// Returns the status and the error code, from the header or the body.
    pub(crate) fn outcome(&self) -> String {
        if self.status < 400 {
            return self.status.to_string();
        }
        let json = serde_json::from_str::<Value>(&self.text).ok();
        let code = json
            .and_then(|json| Some(json["odata.error"]["code"].as_str()?.to_owned()))
            .or_else(|| Some(self.between("code>", "<")?.to_owned()));
        format!("{} {}", self.status, code.unwrap_or_default())
    }

    fn between(&self, start: &str, end: &str) -> Option<&str> {
        self.text.split_once(start)?.1.split(end).next()
    }

    /// Returns a header's value; empty when it is missing.
    pub(crate) fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value.map_or("", |value| value.to_str().unwrap())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap()
    }

    /// Returns the values of a property in a page.
    pub(crate) fn column(&self, name: &str) -> Vec<Value> {
        let rows = self.json()["value"].as_array().unwrap().clone();
        rows.iter().map(|row| row[name].clone()).collect()
    }

    /// Returns the strings of a property in a page.
    pub(crate) fn texts(&self, name: &str) -> Vec<String> {
        let column = self.column(name).into_iter();
        column.map(|v| v.as_str().unwrap().to_owned()).collect()
    }
}

/// The owner of the account.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) emulator: Emulator,
    pub(crate) clock: Clock,
    version: ApiVersion,
}

impl Client {
    /// Creates an emulator with the table `tab`.
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
        let emulator = builder.clock(clock.clone()).seed(1).open().unwrap();
        let client = Self::of(emulator, clock);
        assert_eq!(client.create("tab").await.outcome(), "201");
        client
    }

    /// Creates the owner's client of an emulator.
    pub(crate) fn of(emulator: Emulator, clock: Clock) -> Self {
        Client {
            emulator,
            clock,
            version: ApiVersion::LATEST,
        }
    }

    pub(crate) fn advance_s(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }

    pub(crate) async fn create(&self, name: &str) -> Answer {
        let body = serde_json::json!({ "TableName": name }).to_string();
        self.send("POST", "/Tables", body).await
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
        let has = |name: &str| headers.iter().any(|(given, _)| *given == name);
        if !body.is_empty() && !has("content-type") {
            all.push(("content-type", "application/json"));
        }
        all.extend_from_slice(headers);
        let by = (ACCOUNT, AccountKey::parse(EMULATOR_ACCOUNT_KEY).unwrap());
        let signed = signature(Service::Table, self.version, by, method, &target, &all);
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
        let (head, body) = exchange(&self.emulator, 10002, (method, target), headers, body).await;
        Answer {
            status: head.status.as_u16(),
            headers: head.headers,
            text: String::from_utf8(body.to_vec()).unwrap(),
        }
    }

    /// Inserts an entity with these keys and the string `v`.
    pub(crate) async fn insert(&self, partition: &str, row: &str, value: &str) -> Answer {
        self.send("POST", "/tab", entity(partition, row, value))
            .await
    }

    pub(crate) async fn get(&self, partition: &str, row: &str) -> Answer {
        self.send("GET", &address(partition, row), "").await
    }
}

/// Returns the JSON of an entity with the string `v`.
pub(crate) fn entity(partition: &str, row: &str, value: &str) -> String {
    serde_json::json!({ "PartitionKey": partition, "RowKey": row, "v": value }).to_string()
}

/// Returns the path of an entity of `tab`.
pub(crate) fn address(partition: &str, row: &str) -> String {
    let path = smalt_protocol::table::key::entity_path("tab", partition, row);
    format!("/{path}")
}
