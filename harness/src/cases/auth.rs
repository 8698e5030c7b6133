//! How a request is allowed: by key, by a shared access signature, by a token, or not at all.

use smalt_protocol::signing::AccountKey;
use smalt_protocol::signing::sas::SasTarget;
use smalt_protocol::signing::sas::build::{AccountSas, ServiceSas};
use smalt_protocol::signing::shared_key::{Scheme, SigningInput, authorization};
use smalt_protocol::{ApiVersion, Service, Timestamp};

use crate::replay::delegation;
use crate::replay::uri::{Url, decode};
use crate::replay::wire::{Headers, Request, Response};

/// The end of the year 2099, in seconds since 1970: no run lasts longer.
const EXPIRY_UNIX_S: u64 = 4_102_444_799;
/// The summer of 2017: past.
const PAST_UNIX_S: u64 = 1_500_000_000;
/// What an account SAS of everything permits.
pub const EVERYTHING: &str = "rwdlacuptfiy";
/// A version of which every signature here is known.
const SAS_VERSION: ApiVersion = ApiVersion::V2021_12_02;
/// A key that is no account's.
const WRONG_KEY: &str = "d3Jvbmcga2V5IG9mIG5vYm9keSwgb25seSB0byBiZSByZWZ1c2Vk";

/// How a step is allowed, as cases write it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Auth {
    /// `key`: by the account's key.
    Key,
    /// `lite`: by the account's key and the shorter string.
    Lite,
    /// `wrong key`.
    WrongKey,
    /// `nobody`: not at all.
    Nobody,
    /// `account sas rl`: a signature for the account with these permissions.
    AccountSas(String),
    /// `expired sas`.
    ExpiredSas,
    /// `container sas rl`, `queue sas raup`: a signature for the container or queue of the path.
    ContainerSas(String),
    /// `blob sas r`: a signature for the blob of the path.
    BlobSas(String),
    /// `policy ID`: a signature that takes everything from a stored policy.
    Policy(String),
    /// `token`: a bearer token.
    Token,
}

impl Auth {
    /// Reads one of the forms above.
    ///
    /// # Errors
    /// In words, for anything else.
    pub fn parse(text: &str) -> Result<Auth, String> {
        let rest = |prefix: &str| text.strip_prefix(prefix).map(str::to_owned);
        let fixed = match text {
            "key" => Some(Auth::Key),
            "lite" => Some(Auth::Lite),
            "wrong key" => Some(Auth::WrongKey),
            "nobody" => Some(Auth::Nobody),
            "expired sas" => Some(Auth::ExpiredSas),
            "token" => Some(Auth::Token),
            _ => None,
        };
        fixed
            .or_else(|| rest("account sas ").map(Auth::AccountSas))
            .or_else(|| rest("container sas ").map(Auth::ContainerSas))
            .or_else(|| rest("queue sas ").map(Auth::ContainerSas))
            .or_else(|| rest("blob sas ").map(Auth::BlobSas))
            .or_else(|| rest("policy ").map(Auth::Policy))
            .ok_or_else(|| format!("{text:?} is no way to be allowed"))
    }
}

/// An account with its key.
#[derive(Clone)]
pub struct Account {
    /// Its name.
    pub name: String,
    /// Its key.
    pub key: AccountKey,
}

impl Account {
    /// A query that permits this in the whole account, until the end of the century.
    pub fn sas(&self, permissions: &str) -> String {
        self.signed(permissions, EXPIRY_UNIX_S)
    }

    fn signed(&self, permissions: &str, expiry_unix_s: u64) -> String {
        self.sign_sas(AccountSas {
            permissions,
            expiry: Timestamp::from_unix_s(expiry_unix_s),
            ..self.full()
        })
    }

    /// A signature that permits everything, until the end of the century.
    fn full(&self) -> AccountSas<'_> {
        AccountSas {
            version: SAS_VERSION,
            account: &self.name,
            services: "bqt",
            resource_types: "sco",
            permissions: EVERYTHING,
            start: None,
            expiry: Timestamp::from_unix_s(EXPIRY_UNIX_S),
            ip: "",
            protocol: "https,http",
            encryption_scope: "",
        }
    }

    fn sign_sas(&self, sas: AccountSas<'_>) -> String {
        sas.sign(self.key.as_bytes())
    }

    /// Signed queries by the names that cases have for them: one that permits everything, and
    /// others that lack what their names say.
    pub fn signatures(&self) -> [(&'static str, String); 9] {
        let full = self.full();
        let expired = Timestamp::from_unix_s(PAST_UNIX_S);
        [
            ("sas", full),
            (
                "sas:read",
                AccountSas {
                    permissions: "r",
                    ..full
                },
            ),
            (
                "sas:list-only",
                AccountSas {
                    permissions: "l",
                    ..full
                },
            ),
            (
                "sas:expired",
                AccountSas {
                    expiry: expired,
                    ..full
                },
            ),
            (
                "sas:not-yet",
                AccountSas {
                    start: Some(full.expiry),
                    ..full
                },
            ),
            (
                "sas:table-only",
                AccountSas {
                    services: "t",
                    ..full
                },
            ),
            (
                "sas:service-only",
                AccountSas {
                    resource_types: "s",
                    ..full
                },
            ),
            (
                "sas:elsewhere",
                AccountSas {
                    ip: "192.0.2.1",
                    ..full
                },
            ),
            (
                "sas:https-only",
                AccountSas {
                    protocol: "https",
                    ..full
                },
            ),
        ]
        .map(|(name, sas)| (name, self.sign_sas(sas)))
    }

    /// Allows a request. `prefix` is what stands in front of the container in its path.
    pub fn allow(
        &self,
        auth: &Auth,
        service: Service,
        prefix: &str,
        now: Timestamp,
        request: &mut Request,
    ) {
        let sas = match auth {
            Auth::Nobody => return,
            Auth::Token => {
                let token = delegation::token(&unanswered(), now);
                request
                    .headers
                    .push("authorization", format!("Bearer {token}"));
                return;
            }
            Auth::Key => return self.sign(Scheme::SharedKey, &self.key, service, request),
            Auth::Lite => return self.sign(Scheme::SharedKeyLite, &self.key, service, request),
            Auth::WrongKey => {
                if let Some(key) = AccountKey::parse(WRONG_KEY) {
                    self.sign(Scheme::SharedKey, &key, service, request);
                }
                return;
            }
            Auth::AccountSas(permissions) => self.sas(permissions),
            Auth::ExpiredSas => self.signed(EVERYTHING, PAST_UNIX_S),
            Auth::ContainerSas(_) | Auth::BlobSas(_) | Auth::Policy(_) => {
                self.service_sas(auth, service, prefix, &request.url)
            }
        };
        let separator = if request.url.contains('?') { '&' } else { '?' };
        request.url = format!("{}{separator}{sas}", request.url);
    }

    fn service_sas(&self, auth: &Auth, service: Service, prefix: &str, url: &str) -> String {
        let path = Url::parse(url).map(|url| url.path).unwrap_or_default();
        let path = path.strip_prefix(prefix).unwrap_or(&path);
        let path = decode(path.trim_start_matches('/'));
        let (name, blob) = path.split_once('/').unwrap_or((&path, ""));
        let (permissions, policy) = match auth {
            Auth::ContainerSas(permissions) | Auth::BlobSas(permissions) => {
                (permissions.as_str(), "")
            }
            Auth::Policy(id) => ("", id.as_str()),
            _ => ("", ""),
        };
        let is_blob = matches!(auth, Auth::BlobSas(_));
        let sas = ServiceSas {
            version: SAS_VERSION,
            target: SasTarget {
                service,
                account: &self.name,
                name,
                blob: is_blob.then_some(blob),
                snapshot: "",
            },
            permissions,
            start: None,
            expiry: policy
                .is_empty()
                .then(|| Timestamp::from_unix_s(EXPIRY_UNIX_S)),
            policy_id: policy,
            ip: "",
            protocol: "",
            more: &[],
        };
        sas.sign(self.key.as_bytes())
    }

    /// Signs with a key of this account, or what claims to be one.
    fn sign(&self, scheme: Scheme, key: &AccountKey, service: Service, request: &mut Request) {
        let Some(url) = Url::parse(&request.url) else {
            return;
        };
        let headers: Vec<(&str, &str)> = request.headers.iter().collect();
        let version = request.headers.get("x-ms-version");
        let input = SigningInput {
            service,
            scheme,
            version: version.and_then(ApiVersion::parse).unwrap_or(SAS_VERSION),
            method: &request.method,
            account: &self.name,
            path: if url.path.is_empty() { "/" } else { &url.path },
            query: &url.decoded_query(),
            headers: &headers,
        };
        let value = authorization(&input, key.as_bytes());
        request.headers.push("authorization", value);
    }
}

/// No answer names the owner of a token here.
fn unanswered() -> Response {
    Response {
        status: 0,
        headers: Headers::default(),
        body: bytes::Bytes::new(),
    }
}

/// A text without the values that allow anything: signatures, keys, tokens.
pub fn redacted(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("sig=") {
        let (before, after) = rest.split_at(at + "sig=".len());
        out.push_str(before);
        out.push_str("REDACTED");
        let end = after.find(|c: char| !(c.is_ascii_alphanumeric() || "%+/=-_".contains(c)));
        rest = end.map_or("", |end| &after[end..]);
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_is_read() {
        for (text, expected) in [
            ("key", Auth::Key),
            ("account sas rl", Auth::AccountSas("rl".to_owned())),
            ("queue sas p", Auth::ContainerSas("p".to_owned())),
            ("blob sas r", Auth::BlobSas("r".to_owned())),
            ("policy id1", Auth::Policy("id1".to_owned())),
        ] {
            assert_eq!(Auth::parse(text), Ok(expected));
        }
        assert!(Auth::parse("sas").is_err());
    }

    /// No report shows what a signature is.
    #[test]
    fn signatures_are_left_out() {
        let text = "http://h/c?sv=1&sig=ab%2Bc%3D&se=2 and sig=x/y==";
        let shown = redacted(text);
        assert_eq!(shown, "http://h/c?sv=1&sig=REDACTED&se=2 and sig=REDACTED");
    }
}
