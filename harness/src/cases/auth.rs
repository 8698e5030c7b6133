//! How a request is authorized: by key, by a shared access signature, by a token, or not at all.

use smalt_protocol::signing::sas::SasTarget;
use smalt_protocol::signing::sas::build::{AccountSas, ServiceSas};
use smalt_protocol::signing::shared_key::Scheme;
use smalt_protocol::{ApiVersion, Service, Timestamp};

use super::values::{Values, ValuesError};
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

/// What a SAS is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The account.
    Account,
    /// The container, queue or table in the path, or the one that the field `of` names.
    Container,
    /// The blob in the path; with `sr=bs`, its snapshot.
    Blob,
}

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
    /// `expired sas`: with an expired SAS.
    ExpiredSas,
    /// `account sas rl`, `blob sas r se=60`: with a SAS, given by its permissions and fields;
    /// `st` and `se` are seconds from now.
    Sas(Scope, Vec<(String, String)>),
    /// `token`: with a bearer token.
    Token,
}

impl Auth {
    /// Parses one of the forms above.
    pub fn parse(text: &str) -> Result<Auth, String> {
        let fixed = match text {
            "key" => Some(Auth::Key),
            "lite" => Some(Auth::Lite),
            "wrong key" => Some(Auth::WrongKey),
            "nobody" => Some(Auth::Nobody),
            "expired sas" => Some(Auth::ExpiredSas),
            "token" => Some(Auth::Token),
            _ => None,
        };
        fixed.or_else(|| sas(text)).ok_or_else(|| {
            format!("unknown authorization {text:?}: use a form such as `key` or `account sas rl`")
        })
    }

    /// Expands the fields of a SAS.
    pub fn expanded(&self, values: &Values) -> Result<Auth, ValuesError> {
        let Auth::Sas(scope, fields) = self else {
            return Ok(self.clone());
        };
        let fields = fields.iter();
        let fields = fields.map(|(name, value)| Ok((name.clone(), values.text(value)?)));
        Ok(Auth::Sas(*scope, fields.collect::<Result<_, _>>()?))
    }
}

fn sas(text: &str) -> Option<Auth> {
    let (scope, fields) = text.split_once(" sas ")?;
    let scope = match scope {
        "account" => Scope::Account,
        "container" | "queue" | "table" => Scope::Container,
        "blob" => Scope::Blob,
        _ => return None,
    };
    let field = |word: &str| {
        let (name, value) = word.split_once('=').unwrap_or(("sp", word));
        (name.to_owned(), value.to_owned())
    };
    Some(Auth::Sas(scope, fields.split(' ').map(field).collect()))
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
            Auth::ExpiredSas => account.sas(AccountSas {
                permissions: EVERYTHING,
                expiry: Timestamp::from_unix_s(PAST_UNIX_S),
                ..FULL
            }),
            Auth::Sas(Scope::Account, fields) => account_sas(account, now, fields),
            Auth::Sas(scope, fields) => {
                let path = path_below(prefix, &request.url);
                let mut target = target(account, service, &path, *scope);
                let url = Url::parse(&request.url);
                let snapshot = url.and_then(|url| url.param("snapshot"));
                if fields.iter().any(|(_, value)| value == "bs") {
                    target.snapshot = snapshot.as_deref().unwrap_or_default();
                }
                service_sas(account, now, target, fields)
            }
        };
        let separator = if request.url.contains('?') { '&' } else { '?' };
        request.url = format!("{}{separator}{sas}", request.url);
    }
}

/// Returns an account SAS with these fields, as a query.
pub fn account_sas(account: &Account, now: Timestamp, fields: &[(String, String)]) -> String {
    let field = |name| field(fields, name);
    account.sas(AccountSas {
        version: version(fields),
        services: field("ss").unwrap_or(FULL.services),
        resource_types: field("srt").unwrap_or(FULL.resource_types),
        permissions: field("sp").unwrap_or_default(),
        expiry: field("se").map_or(FULL.expiry, |s| after(now, s)),
        encryption_scope: field("ses").unwrap_or_default(),
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

/// Returns the decoded path of a URL after the prefix.
fn path_below(prefix: &str, url: &str) -> String {
    let path = Url::parse(url).map(|url| url.path).unwrap_or_default();
    let path = path.strip_prefix(prefix).unwrap_or(&path);
    decode(path.trim_start_matches('/'))
}

fn target<'a>(
    account: &'a Account,
    service: Service,
    path: &'a str,
    scope: Scope,
) -> SasTarget<'a> {
    let (name, blob) = path.split_once('/').unwrap_or((path, ""));
    SasTarget {
        service,
        account: &account.name,
        // The name of a table ends where the keys of an entity begin.
        name: name.split('(').next().unwrap_or(name),
        blob: (scope == Scope::Blob).then_some(blob),
        snapshot: "",
    }
}

fn service_sas(
    account: &Account,
    now: Timestamp,
    target: SasTarget<'_>,
    fields: &[(String, String)],
) -> String {
    let field = |name| field(fields, name);
    let more: Vec<(&str, &str)> = fields
        .iter()
        .filter(|(name, _)| name.starts_with("rs") || name.ends_with("pk") || name.ends_with("rk"))
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    let policy_id = field("si").unwrap_or_default();
    let sas = ServiceSas {
        version: version(fields),
        target: SasTarget {
            name: field("of").unwrap_or(target.name),
            ..target
        },
        permissions: field("sp").unwrap_or_default(),
        start: field("st").map(|s| after(now, s)),
        expiry: field("se").map_or(policy_id.is_empty().then_some(FULL.expiry), |s| {
            Some(after(now, s))
        }),
        policy_id,
        ip: "",
        protocol: "",
        more: &more,
    };
    sas.sign(account.key.as_bytes())
}

fn field<'a>(fields: &'a [(String, String)], name: &str) -> Option<&'a str> {
    let found = fields.iter().find(|(field, _)| field == name);
    found.map(|(_, value)| value.as_str())
}

fn version(fields: &[(String, String)]) -> ApiVersion {
    let version = field(fields, "sv").and_then(ApiVersion::parse);
    version.unwrap_or(SAS_VERSION)
}

/// Returns the time so many seconds later.
fn after(now: Timestamp, seconds: &str) -> Timestamp {
    now.plus_s(seconds.parse().unwrap_or_default())
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
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        for (text, expected) in [
            ("key", Auth::Key),
            (
                "account sas rl",
                Auth::Sas(Scope::Account, vec![pair("sp", "rl")]),
            ),
            (
                "queue sas si=a se=60",
                Auth::Sas(Scope::Container, vec![pair("si", "a"), pair("se", "60")]),
            ),
        ] {
            assert_eq!(Auth::parse(text), Ok(expected));
        }
        assert!(Auth::parse("sas").is_err() && Auth::parse("file sas r").is_err());
    }
}
