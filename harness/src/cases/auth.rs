//! How a request is authorized: by key, by a shared access signature, by a token, or not at all.

use smalt_protocol::signing::sas::SasTarget;
use smalt_protocol::signing::sas::build::{AccountSas, ServiceSas};
use smalt_protocol::signing::shared_key::Scheme;
use smalt_protocol::{ApiVersion, Service, Timestamp};

use crate::replay::delegation;
use crate::wire::access::{Account, FULL};
use crate::wire::url::{Url, decode};
use crate::wire::{Answer, Headers, Request};

/// A time in the past: July 2017.
const PAST_UNIX_S: u64 = 1_500_000_000;
/// All permissions of an account SAS.
pub const EVERYTHING: &str = "rwdlacuptfiy";
/// A version that supports all signatures used here.
const SAS_VERSION: ApiVersion = FULL.version;
/// A key of no account.
const WRONG_KEY: &str = "d3Jvbmcga2V5IG9mIG5vYm9keSwgb25seSB0byBiZSByZWZ1c2Vk";

/// How a step is authorized, as written in cases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Auth {
    /// `key`: with the account key.
    Key,
    /// `lite`: with the account key, in the Shared Key Lite scheme.
    Lite,
    /// `wrong key`: with a key of no account.
    WrongKey,
    /// `nobody`: without authorization.
    Nobody,
    /// `account sas rl`: with an account SAS with these permissions.
    AccountSas(String),
    /// `expired sas`: with an expired SAS.
    ExpiredSas,
    /// `container sas rl`, `queue sas raup`: with a SAS for the container or queue in the path.
    ContainerSas(String),
    /// `blob sas r`: with a SAS for the blob in the path.
    BlobSas(String),
    /// `policy ID`: with a SAS that gets everything from a stored access policy.
    Policy(String),
    /// `token`: with a bearer token.
    Token,
}

impl Auth {
    /// Parses one of the forms above.
    ///
    /// # Errors
    /// A message, for any other string.
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
            .ok_or_else(|| {
                format!(
                    "unknown authorization {text:?}: use a form such as `key` or `account sas rl`"
                )
            })
    }
}

impl Auth {
    /// Authorizes a request. `prefix` is the part of its path in front of the container.
    pub fn allow(
        &self,
        account: &Account,
        service: Service,
        prefix: &str,
        now: Timestamp,
        request: &mut Request,
    ) {
        let sas = match self {
            Auth::Nobody => return,
            Auth::Token => {
                let token = delegation::token(&unanswered(), now);
                let value = format!("Bearer {token}");
                return request.headers.push("authorization", value);
            }
            Auth::Key => return account.sign(Scheme::SharedKey, service, SAS_VERSION, request),
            Auth::Lite => {
                return account.sign(Scheme::SharedKeyLite, service, SAS_VERSION, request);
            }
            Auth::WrongKey => {
                if let Some(stranger) = Account::new(&account.name, WRONG_KEY) {
                    stranger.sign(Scheme::SharedKey, service, SAS_VERSION, request);
                }
                return;
            }
            Auth::AccountSas(permissions) => sas(account, permissions),
            Auth::ExpiredSas => account.sas(AccountSas {
                permissions: EVERYTHING,
                expiry: Timestamp::from_unix_s(PAST_UNIX_S),
                ..FULL
            }),
            Auth::ContainerSas(permissions) => service_sas(
                account,
                service,
                below(prefix, &request.url, false),
                permissions,
                "",
            ),
            Auth::BlobSas(permissions) => service_sas(
                account,
                service,
                below(prefix, &request.url, true),
                permissions,
                "",
            ),
            Auth::Policy(id) => {
                service_sas(account, service, below(prefix, &request.url, false), "", id)
            }
        };
        let separator = if request.url.contains('?') { '&' } else { '?' };
        request.url = format!("{}{separator}{sas}", request.url);
    }
}

/// Returns an account SAS with these permissions, as a query.
pub fn sas(account: &Account, permissions: &str) -> String {
    account.sas(AccountSas {
        permissions,
        ..FULL
    })
}

/// Returns signed queries by the names that cases use: one that permits everything, and others that
/// lack what their names say.
pub fn signatures(account: &Account) -> [(&'static str, String); 9] {
    let full = AccountSas {
        permissions: EVERYTHING,
        ..FULL
    };
    let permitting = |permissions| AccountSas {
        permissions,
        ..full
    };
    let expired = AccountSas {
        expiry: Timestamp::from_unix_s(PAST_UNIX_S),
        ..full
    };
    let not_yet = AccountSas {
        start: Some(full.expiry),
        ..full
    };
    let of_tables = AccountSas {
        services: "t",
        ..full
    };
    let of_services = AccountSas {
        resource_types: "s",
        ..full
    };
    let elsewhere = AccountSas {
        ip: "192.0.2.1",
        ..full
    };
    let by_https = AccountSas {
        protocol: "https",
        ..full
    };
    [
        ("sas", full),
        ("sas:read", permitting("r")),
        ("sas:list-only", permitting("l")),
        ("sas:expired", expired),
        ("sas:not-yet", not_yet),
        ("sas:table-only", of_tables),
        ("sas:service-only", of_services),
        ("sas:elsewhere", elsewhere),
        ("sas:https-only", by_https),
    ]
    .map(|(name, sas)| (name, account.sas(sas)))
}

/// Returns the container or queue of a URL and, if wanted, the blob.
fn below(prefix: &str, url: &str, with_blob: bool) -> (String, Option<String>) {
    let path = Url::parse(url).map(|url| url.path).unwrap_or_default();
    let path = path.strip_prefix(prefix).unwrap_or(&path);
    let path = decode(path.trim_start_matches('/'));
    let (name, blob) = path.split_once('/').unwrap_or((&path, ""));
    (name.to_owned(), with_blob.then(|| blob.to_owned()))
}

fn service_sas(
    account: &Account,
    service: Service,
    (name, blob): (String, Option<String>),
    permissions: &str,
    policy_id: &str,
) -> String {
    let sas = ServiceSas {
        version: SAS_VERSION,
        target: SasTarget {
            service,
            account: &account.name,
            name: &name,
            blob: blob.as_deref(),
            snapshot: "",
        },
        permissions,
        start: None,
        expiry: policy_id.is_empty().then_some(FULL.expiry),
        policy_id,
        ip: "",
        protocol: "",
        more: &[],
    };
    sas.sign(account.key.as_bytes())
}

/// Tests do not ask who owns a token.
fn unanswered() -> Answer {
    Answer {
        status: 0,
        headers: Headers::default(),
        body: bytes::Bytes::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_parsed() {
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
}
