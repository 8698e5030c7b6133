//! An emulator and all kinds of callers.

use std::net::IpAddr;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use http::{HeaderMap, Method, Request};
use http_body_util::BodyExt;
use smalt::{Clock, Config, Emulator, OAuth, Socket, Timestamp, body};
use smalt_protocol::connection_string::{
    EMULATOR_ACCOUNT_KEY, EMULATOR_ACCOUNT_NAME, emulator_port,
};
use smalt_protocol::signing::sas::SasTarget;
use smalt_protocol::signing::sas::build::{AccountSas, ServiceSas};
use smalt_protocol::signing::{AccountKey, sign};
use smalt_protocol::{ApiVersion, Service, uri};

use crate::support::signature;

pub(crate) const ACCOUNT: &str = EMULATOR_ACCOUNT_NAME;
pub(crate) const START_S: u64 = 1_700_000_000;
pub(crate) const OBJECT_ID: &str = "23657296-5cd5-45b0-a809-d972a7f4dfe1";
pub(crate) const TENANT_ID: &str = "dd0d0df1-06c3-436c-8034-4b9a153097ce";

/// An emulator at a fixed time with the containers `box` and `open`, and `box/b`.
pub(crate) struct World {
    pub(crate) emulator: Emulator,
    pub(crate) version: ApiVersion,
    service: Service,
    is_data_lake: bool,
}

/// The credentials of a request.
#[derive(Clone, Copy)]
pub(crate) enum By<'a> {
    Owner,
    Nobody,
    Token(&'a str),
    /// A SAS query string.
    Sas(&'a str),
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(Config {
            oauth: OAuth::Basic,
            ..config()
        })
        .await
    }

    pub(crate) async fn with(config: Config) -> Self {
        let world = Self::empty(config);
        for path in ["/box?restype=container", "/open?restype=container"] {
            assert_eq!(world.owner("PUT", path, &[], "").await.status, 201);
        }
        let block = [("x-ms-blob-type", "BlockBlob")];
        assert_eq!(
            world.owner("PUT", "/box/b", &block, "hello").await.status,
            201
        );
        world
    }

    pub(crate) fn empty(config: Config) -> Self {
        let clock = Clock::manual(Timestamp::from_unix_s(START_S));
        let builder = Emulator::builder().config(config).clock(clock).seed(1);
        Self::of(builder.open().unwrap())
    }

    pub(crate) fn of(emulator: Emulator) -> Self {
        World {
            emulator,
            version: ApiVersion::LATEST,
            service: Service::Blob,
            is_data_lake: false,
        }
    }

    /// Returns the same emulator, used through another service.
    pub(crate) fn at(&self, service: Service) -> Self {
        World {
            service,
            ..self.under(self.version)
        }
    }

    /// Returns the same emulator, used with another API version.
    pub(crate) fn under(&self, version: ApiVersion) -> Self {
        World {
            emulator: self.emulator.clone(),
            version,
            service: self.service,
            is_data_lake: self.is_data_lake,
        }
    }

    /// Returns the same emulator, used through the Data Lake interface.
    pub(crate) fn as_data_lake(&self) -> Self {
        World {
            is_data_lake: true,
            ..self.at(Service::Blob)
        }
    }

    /// Returns the same emulator, used through the interface of the Blob service.
    pub(crate) fn as_blobs(&self) -> Self {
        World {
            is_data_lake: false,
            ..self.under(self.version)
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.emulator.now()
    }

    pub(crate) fn advance_s(&self, seconds: u64) {
        self.emulator.clock().advance(Duration::from_secs(seconds));
    }

    pub(crate) async fn owner(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        self.ask(By::Owner, method, path, headers, body).await
    }

    pub(crate) async fn get(&self, by: By<'_>, path: &str) -> Answer {
        self.ask(by, "GET", path, &[], "").await
    }

    /// Sends a request over HTTPS; `path` follows the account.
    pub(crate) async fn ask(
        &self,
        by: By<'_>,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        let version = self.version.to_string();
        let length = body.len().to_string();
        let mut all = vec![
            ("x-ms-version", version.as_str()),
            ("content-length", &length),
        ];
        all.extend_from_slice(headers);
        let path = match by {
            By::Sas(query) if path.contains('?') => format!("{path}&{query}"),
            By::Sas(query) => format!("{path}?{query}"),
            _ => path.to_owned(),
        };
        let date = self.now().rfc1123();
        let value = match by {
            By::Owner => {
                all.push(("x-ms-date", &date));
                let target = format!("/{ACCOUNT}{path}");
                signature(
                    self.service,
                    self.version,
                    (ACCOUNT, key()),
                    method,
                    &target,
                    &all,
                )
            }
            By::Token(token) => format!("Bearer {token}"),
            By::Nobody | By::Sas(_) => String::new(),
        };
        if !value.is_empty() {
            all.push(("authorization", &value));
        }
        self.send("https", method, &path, &all, body).await
    }

    /// Sends a request unchanged, over this scheme.
    pub(crate) async fn send(
        &self,
        scheme: &str,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        let request = request((scheme, self.service), method, path, headers, body);
        if self.is_data_lake {
            let socket = Socket {
                service: Some(Service::Blob),
                data_lake: true,
                secure: scheme == "https",
                ..Socket::default()
            };
            return answer(self.emulator.call_on(request, socket).await.unwrap()).await;
        }
        answer(self.emulator.call(request).await.unwrap()).await
    }

    /// Sends a request to any address.
    pub(crate) async fn send_to(
        &self,
        method: &str,
        url: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        let mut request = Request::builder().method(method).uri(url);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body = Bytes::from(body.to_owned());
        let request = request.body(body::full(body)).unwrap();
        answer(self.emulator.call(request).await.unwrap()).await
    }

    /// Sends a GET from this address, as a socket would.
    pub(crate) async fn get_from(&self, peer: &str, path: &str) -> Answer {
        self.send_from((peer, "https"), "GET", path, &[]).await
    }

    /// Sends a request without a body from this address over this scheme, as a socket would.
    pub(crate) async fn send_from(
        &self,
        (peer, scheme): (&str, &str),
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
    ) -> Answer {
        let own = [("host", "127.0.0.1:10000"), ("content-length", "0")];
        let headers = [&own, headers].concat();
        let socket = Socket {
            peer: Some(peer.parse::<IpAddr>().unwrap()),
            secure: scheme == "https",
            ..Socket::default()
        };
        let request = request((scheme, self.service), method, path, &headers, "");
        answer(self.emulator.call_on(request, socket).await.unwrap()).await
    }

    /// Returns a token that is valid for an hour.
    pub(crate) fn token(&self) -> String {
        let now_s = self.now().since(Timestamp::UNIX_EPOCH).as_secs();
        token(&format!(
            r#"{{"aud":"https://storage.azure.com","iss":"https://sts.windows.net/{TENANT_ID}/",
                "nbf":{now_s},"exp":{},"oid":"{OBJECT_ID}","tid":"{TENANT_ID}"}}"#,
            now_s + 3600,
        ))
    }

    /// Returns an account SAS that is valid for an hour.
    pub(crate) fn account_sas(&self, permissions: &str) -> String {
        let sas = AccountSas {
            version: self.version,
            account: ACCOUNT,
            services: "b",
            resource_types: "sco",
            permissions,
            start: None,
            expiry: self.now().plus_s(3600),
            ip: "",
            protocol: "",
            encryption_scope: "",
        };
        sas.sign(key().as_bytes())
    }

    /// Returns a service SAS that is valid for an hour; without a blob it is for the whole
    /// container.
    pub(crate) fn service_sas(
        &self,
        container: &'static str,
        blob: Option<&'static str>,
        permissions: &str,
    ) -> String {
        let sas = ServiceSas {
            version: self.version,
            target: target(container, blob),
            permissions,
            start: None,
            expiry: Some(self.now().plus_s(3600)),
            policy_id: "",
            ip: "",
            protocol: "",
            more: &[],
        };
        sas.sign(key().as_bytes())
    }
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |v| v.to_str().unwrap())
    }

    pub(crate) fn outcome(&self) -> (u16, &str) {
        (self.status, self.header("x-ms-error-code"))
    }
}

pub(crate) fn config() -> Config {
    Config {
        strict_skew: true,
        ..Config::default()
    }
}

pub(crate) fn key() -> AccountKey {
    AccountKey::parse(EMULATOR_ACCOUNT_KEY).unwrap()
}

/// Returns a token with these claims. Its signature is not checked.
pub(crate) fn token(claims: &str) -> String {
    let encode = |text: &str| URL_SAFE_NO_PAD.encode(text);
    format!(
        "{}.{}.c2ln",
        encode(r#"{"typ":"JWT","alg":"RS256"}"#),
        encode(claims)
    )
}

pub(crate) fn target(container: &'static str, blob: Option<&'static str>) -> SasTarget<'static> {
    SasTarget {
        service: Service::Blob,
        account: ACCOUNT,
        name: container,
        blob,
        snapshot: "",
    }
}

/// Signs the fields of a SAS unchanged, for SAS that no builder makes. `resource` is the
/// canonicalized resource, such as `/blob/devstoreaccount1/box/b`.
pub(crate) fn sign_lines(fields: &[(&str, &str)], lines: &[&str], key: &[u8]) -> String {
    let signature = sign(key, &lines.join("\n"));
    let all = fields.iter().copied().chain([("sig", signature.as_str())]);
    uri::write_query(all)
}

/// Returns a SAS in the layout of 2020-12-06 for a top-level directory; `resource` is the
/// canonicalized resource.
pub(crate) fn directory_sas(resource: &str, permissions: &str, expiry: &str) -> String {
    let version = "2020-12-06";
    let fields = [
        ("sv", version),
        ("sr", "d"),
        ("sdd", "1"),
        ("sp", permissions),
        ("se", expiry),
    ];
    let mut lines = vec![permissions, "", expiry, resource, "", "", "", version, "d"];
    // Snapshot, encryption scope, five response headers.
    lines.extend([""; 7]);
    sign_lines(&fields, &lines, key().as_bytes())
}

fn request(
    (scheme, service): (&str, Service),
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Request<smalt::Body> {
    let mut request = Request::builder()
        .method(Method::from_bytes(method.as_bytes()).unwrap())
        .uri(format!(
            "{scheme}://127.0.0.1:{}/{ACCOUNT}{path}",
            emulator_port(service)
        ));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request
        .body(body::full(Bytes::from(body.to_owned())))
        .unwrap()
}

async fn answer(response: http::Response<smalt::Body>) -> Answer {
    let (head, body) = response.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    Answer {
        status: head.status.as_u16(),
        headers: head.headers,
        body: String::from_utf8_lossy(&body).into_owned(),
    }
}
