//! Callers with all kinds of credentials, and the emulator that they call.

use std::net::IpAddr;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use smalt::{Config, OAuth, Socket};
use smalt_protocol::signing::sign;
use smalt_protocol::uri;

use crate::support::{Answer, Client, START, config, key, request};

pub(crate) const START_S: u64 = START.unix_s();
pub(crate) const OBJECT_ID: &str = "23657296-5cd5-45b0-a809-d972a7f4dfe1";
pub(crate) const TENANT_ID: &str = "dd0d0df1-06c3-436c-8034-4b9a153097ce";

/// The credentials of a request.
#[derive(Clone, Copy)]
pub(crate) enum By<'a> {
    Owner,
    Nobody,
    Token(&'a str),
    /// A SAS query string.
    Sas(&'a str),
}

/// Creates an emulator that accepts tokens, with the containers `box` and `open`, and `box/b`.
pub(crate) async fn new_world() -> Client {
    world_with(Config {
        oauth: OAuth::Basic,
        ..config()
    })
    .await
}

pub(crate) async fn world_with(config: Config) -> Client {
    let world = Client::with(config);
    world.create("box").await;
    world.create("open").await;
    world.put("/box/b", "hello").await;
    world
}

impl Client {
    /// Sends a GET with these credentials.
    pub(crate) async fn get_as(&self, by: By<'_>, path: &str) -> Answer {
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
        if matches!(by, By::Owner) {
            let (origin, target) = (self.origin("https"), self.target(path));
            let body = body.to_owned();
            let request = self.signed_at(&origin, (method, &target), headers, body);
            return self.call(request).await;
        }
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
        let bearer = match by {
            By::Token(token) => format!("Bearer {token}"),
            _ => String::new(),
        };
        if !bearer.is_empty() {
            all.push(("authorization", &bearer));
        }
        self.send_over("https", method, &path, &all, body).await
    }

    /// Sends a request unchanged, over this scheme.
    pub(crate) async fn send_over(
        &self,
        scheme: &str,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        let url = self.url_over(scheme, path);
        self.call(request(method, &url, headers, body.to_owned()))
            .await
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
        let request = request(method, &self.url_over(scheme, path), &headers, "");
        Answer::of(self.emulator().call_on(request, socket).await.unwrap()).await
    }

    /// Returns a token that is valid for an hour.
    pub(crate) fn token(&self) -> String {
        let now_s = self.now().unix_s();
        token(&format!(
            r#"{{"aud":"https://storage.azure.com","iss":"https://sts.windows.net/{TENANT_ID}/",
                "nbf":{now_s},"exp":{},"oid":"{OBJECT_ID}","tid":"{TENANT_ID}"}}"#,
            now_s + 3600,
        ))
    }
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
