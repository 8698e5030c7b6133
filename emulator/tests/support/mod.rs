//! A client for tests: signs with the account key and calls the emulator in process. What only one
//! area of the tests needs of it is in that area.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod answer;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request};
use smalt::{AccountSettings, Body, Builder, Clock, Config, Emulator, Timestamp, body};
use smalt_protocol::connection_string::{
    EMULATOR_ACCOUNT_KEY, EMULATOR_ACCOUNT_NAME, emulator_port,
};
use smalt_protocol::signing::AccountKey;
use smalt_protocol::signing::sas::SasTarget;
use smalt_protocol::signing::sas::build::{AccountSas, ServiceSas};
use smalt_protocol::signing::shared_key::{Scheme, SigningInput, authorization};
use smalt_protocol::{ApiVersion, Service, uri};

pub(crate) use self::answer::Answer;

pub(crate) const ACCOUNT: &str = EMULATOR_ACCOUNT_NAME;
/// Another account of the emulator, with its own key.
const OTHER_ACCOUNT: &str = "other";
const OTHER_KEY: &str = "b3RoZXI=";
/// The time at which the clock stands until a test moves it.
pub(crate) const START: Timestamp = Timestamp::from_unix_s(1_700_000_000);
/// The header that makes a block blob.
pub(crate) const BLOCK: (&str, &str) = ("x-ms-blob-type", "BlockBlob");

type Headers<'a> = &'a [(&'a str, &'a str)];

/// An emulator at a fixed time, and its caller.
#[derive(Clone)]
pub(crate) struct Client {
    emulator: Emulator,
    account: &'static str,
    service: Service,
    port: u16,
    pub(crate) version: ApiVersion,
}

impl Client {
    pub(crate) fn new() -> Self {
        Self::of(|builder| builder)
    }

    /// Creates an emulator with the test's settings.
    pub(crate) fn of(settings: impl FnOnce(Builder) -> Builder) -> Self {
        let clock = Clock::manual(START);
        let builder = Emulator::builder().config(config()).clock(clock).seed(1);
        let builder = builder.account(OTHER_ACCOUNT, AccountKey::parse(OTHER_KEY).unwrap());
        Self::to(&settings(builder).open().unwrap())
    }

    /// Creates an emulator with a configuration, which is best made from [`config`].
    pub(crate) fn with(config: Config) -> Self {
        Self::of(|builder| builder.config(config))
    }

    /// Creates an emulator whose account has these settings.
    pub(crate) fn of_account(settings: AccountSettings) -> Self {
        let mut config = config();
        let settings = Arc::new(settings);
        for account in config.accounts.values_mut() {
            account.settings = settings.clone();
        }
        Self::with(config)
    }

    pub(crate) fn hierarchical() -> Self {
        Self::of_account(AccountSettings {
            hierarchical_namespace: true,
            ..AccountSettings::default()
        })
    }

    /// Returns the owner of an emulator's account, as a user of the Blob service.
    pub(crate) fn to(emulator: &Emulator) -> Self {
        Client {
            emulator: emulator.clone(),
            account: ACCOUNT,
            service: Service::Blob,
            port: emulator_port(Service::Blob),
            version: ApiVersion::LATEST,
        }
    }

    /// Returns the same emulator, used through another service.
    pub(crate) fn at(&self, service: Service) -> Self {
        Client {
            service,
            port: emulator_port(service),
            ..self.clone()
        }
    }

    /// Returns the same emulator, used through the Data Lake interface.
    pub(crate) fn as_data_lake(&self) -> Self {
        Client {
            port: 10004,
            ..self.at(Service::Blob)
        }
    }

    /// Returns the same emulator, used with another API version.
    pub(crate) fn under(&self, version: ApiVersion) -> Self {
        Client {
            version,
            ..self.clone()
        }
    }

    /// Returns the same emulator, used by the owner of the other account.
    pub(crate) fn of_other_account(&self) -> Self {
        Client {
            account: OTHER_ACCOUNT,
            ..self.clone()
        }
    }

    pub(crate) fn emulator(&self) -> &Emulator {
        &self.emulator
    }

    pub(crate) fn change_settings(&self, settings: AccountSettings) {
        assert!(self.emulator.change_settings(self.account, settings));
    }

    fn key(&self) -> AccountKey {
        match self.account {
            OTHER_ACCOUNT => AccountKey::parse(OTHER_KEY).unwrap(),
            _ => key(),
        }
    }

    pub(crate) fn advance_s(&self, seconds: u64) {
        self.emulator.clock().advance(Duration::from_secs(seconds));
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.emulator.now()
    }

    /// Removes what is due and returns the number of removed records.
    pub(crate) fn maintain(&self) -> usize {
        self.emulator.maintain(1_000).unwrap().records_reaped
    }

    /// Returns a path after the account as a path of the emulator.
    pub(crate) fn target(&self, path: &str) -> String {
        format!("/{}{path}", self.account)
    }

    pub(crate) fn origin(&self, scheme: &str) -> String {
        format!("{scheme}://127.0.0.1:{}", self.port)
    }

    /// Returns the URL of a path after the account.
    pub(crate) fn url(&self, path: &str) -> String {
        self.url_over("http", path)
    }

    pub(crate) fn url_over(&self, scheme: &str, path: &str) -> String {
        self.origin(scheme) + &self.target(path)
    }

    /// Returns the URL of a blob with a SAS that is valid for an hour.
    pub(crate) fn signed_url(&self, container: &str, blob: &str, permissions: &str) -> String {
        let sas = ServiceSas {
            version: ApiVersion::V2020_10_02,
            ..self.service_sas(container, Some(blob), permissions)
        };
        let query = sas.sign(self.key().as_bytes());
        self.url(&format!("/{container}/{blob}?{query}"))
    }

    /// Returns a SAS that is valid for an hour; without a blob it is for the whole container.
    pub(crate) fn service_sas<'a>(
        &self,
        container: &'a str,
        blob: Option<&'a str>,
        permissions: &'a str,
    ) -> ServiceSas<'a> {
        ServiceSas {
            version: self.version,
            target: SasTarget {
                service: Service::Blob,
                account: self.account,
                name: container,
                blob,
                snapshot: "",
            },
            permissions,
            start: None,
            expiry: Some(self.now().plus_s(3600)),
            policy_id: "",
            ip: "",
            protocol: "",
            more: &[],
        }
    }

    /// Returns a SAS for all services that is valid for an hour.
    pub(crate) fn account_sas<'a>(&self, permissions: &'a str) -> AccountSas<'a> {
        AccountSas {
            version: self.version,
            account: self.account,
            services: "bqt",
            resource_types: "sco",
            permissions,
            start: None,
            expiry: self.now().plus_s(3600),
            ip: "",
            protocol: "",
            encryption_scope: "",
        }
    }

    /// Sends a signed request; `path` follows the account.
    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        headers: Headers<'_>,
        body: impl Into<Bytes>,
    ) -> Answer {
        self.call(self.signed(method, path, headers, body)).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], "").await
    }

    pub(crate) async fn head(&self, path: &str) -> Answer {
        self.send("HEAD", path, &[], "").await
    }

    /// Sends a request without a body and returns its outcome.
    pub(crate) async fn try_(&self, method: &str, path: &str, headers: Headers<'_>) -> String {
        self.send(method, path, headers, "").await.outcome()
    }

    pub(crate) async fn create(&self, container: &str) {
        let path = format!("/{container}?restype=container");
        assert_eq!(self.try_("PUT", &path, &[]).await, "201", "{container}");
    }

    /// Puts a block blob, which must succeed.
    pub(crate) async fn put(&self, path: &str, body: impl Into<Bytes>) -> Answer {
        let answer = self.send("PUT", path, &[BLOCK], body).await;
        assert_eq!(answer.outcome(), "201", "{path}");
        answer
    }

    pub(crate) async fn call(&self, request: Request<Body>) -> Answer {
        Answer::of(self.emulator.call(request).await.unwrap()).await
    }

    /// Returns a request signed with the account key; `path` follows the account.
    pub(crate) fn signed(
        &self,
        method: &str,
        path: &str,
        headers: Headers<'_>,
        body: impl Into<Bytes>,
    ) -> Request<Body> {
        let target = self.target(path);
        self.signed_at(&self.origin("http"), (method, &target), headers, body)
    }

    /// Like [`Client::signed`], with an unchanged path and query, to a scheme and host.
    pub(crate) fn signed_at(
        &self,
        origin: &str,
        (method, target): (&str, &str),
        headers: Headers<'_>,
        body: impl Into<Bytes>,
    ) -> Request<Body> {
        let body = body.into();
        let (date, version) = (self.now().rfc1123(), self.version.to_string());
        let length = body.len().to_string();
        let mut all = vec![
            ("x-ms-date", date.as_str()),
            ("x-ms-version", version.as_str()),
            ("content-length", length.as_str()),
        ];
        let is_typed = headers.iter().any(|(name, _)| *name == "content-type");
        if self.service == Service::Table && !body.is_empty() && !is_typed {
            all.push(("content-type", "application/json"));
        }
        all.extend_from_slice(headers);
        let signature = self.signature(method, target, &all);
        all.push(("authorization", signature.as_str()));
        request(method, &format!("{origin}{target}"), &all, body)
    }

    /// Returns the `Authorization` header of a request; `target` is path and query.
    pub(crate) fn signature(&self, method: &str, target: &str, headers: Headers<'_>) -> String {
        let by = (self.account, &self.key());
        let scheme = (Scheme::SharedKey, self.service, self.version);
        signature(scheme, by, (method, target), headers)
    }

    /// Sends a request to the control endpoint.
    pub(crate) async fn control(&self, method: &str, path: &str, text: impl Into<Bytes>) -> Answer {
        let host = [("host", "127.0.0.1:10003")];
        self.control_as(None, (method, path), &host, text).await
    }

    /// Like [`Client::control`], to an endpoint that may want a token.
    pub(crate) async fn control_as(
        &self,
        token: Option<&str>,
        (method, path): (&str, &str),
        headers: Headers<'_>,
        text: impl Into<Bytes>,
    ) -> Answer {
        let request = request(method, path, headers, text);
        Answer::of(smalt::control::answer(&self.emulator, token, request).await).await
    }
}

/// Returns a request with exactly these headers.
pub(crate) fn request(
    method: &str,
    url: &str,
    headers: Headers<'_>,
    body: impl Into<Bytes>,
) -> Request<Body> {
    let mut request = Request::builder()
        .method(Method::from_bytes(method.as_bytes()).unwrap())
        .uri(url);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(body::full(body)).unwrap()
}

/// Returns the `Authorization` header of a request by an account, given by name and key; `target`
/// is path and query.
pub(crate) fn signature(
    (scheme, service, version): (Scheme, Service, ApiVersion),
    (account, key): (&str, &AccountKey),
    (method, target): (&str, &str),
    headers: Headers<'_>,
) -> String {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let input = SigningInput {
        service,
        scheme,
        version,
        method,
        account,
        path,
        query: &uri::parse_query(query).unwrap(),
        headers,
    };
    authorization(&input, key.as_bytes())
}

pub(crate) fn config() -> Config {
    Config {
        strict_skew: true,
        ..Config::default()
    }
}

/// Returns the key of [`ACCOUNT`].
pub(crate) fn key() -> AccountKey {
    AccountKey::parse(EMULATOR_ACCOUNT_KEY).unwrap()
}
