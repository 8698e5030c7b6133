//! Shared Key and Shared Key Lite: the string that the `Authorization` header signs.
//!
//! Source: *Authorize with Shared Key*. On path-style hosts the path includes the account, so it
//! occurs twice in the canonicalized resource.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;

use crate::error::{ErrorCode, StorageError};
use crate::service::Service;
use crate::signing::{sign, verify};
use crate::uri::lookup;
use crate::version::ApiVersion;

/// A parsed `Authorization` header.
#[derive(Clone, PartialEq, Eq)]
pub enum Authorization {
    /// `SharedKey account:signature` or `SharedKeyLite account:signature`.
    Key {
        /// The string that is signed.
        scheme: Scheme,
        /// The account whose key signed.
        account: String,
        /// The HMAC, in Base64.
        signature: String,
    },
    /// `Bearer token`.
    Bearer(String),
}

impl fmt::Debug for Authorization {
    /// Writes scheme and account, but neither signature nor token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Authorization::Key {
                scheme, account, ..
            } => write!(f, "{} {account}:(redacted)", scheme.as_str()),
            Authorization::Bearer(_) => f.write_str("Bearer (redacted)"),
        }
    }
}

/// The two strings that a key may sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// `SharedKey`: all standard headers and the whole query.
    SharedKey,
    /// `SharedKeyLite`: the older, shorter string.
    SharedKeyLite,
}

impl Scheme {
    /// Returns the scheme's name in the header.
    pub const fn as_str(self) -> &'static str {
        match self {
            Scheme::SharedKey => "SharedKey",
            Scheme::SharedKeyLite => "SharedKeyLite",
        }
    }
}

/// The parts of a request that are signed.
#[derive(Clone, Copy, Debug)]
pub struct SigningInput<'a> {
    /// The addressed service; tables sign other strings.
    pub service: Service,
    /// The string to sign.
    pub scheme: Scheme,
    /// Determines how an empty body and empty headers are signed.
    pub version: ApiVersion,
    /// The HTTP method: `GET`, `PUT`, ...
    pub method: &'a str,
    /// The account, without `-secondary`.
    pub account: &'a str,
    /// The path exactly as sent: escaped, and with the account first on path-style hosts.
    pub path: &'a str,
    /// The decoded names and values of the query, in any order.
    pub query: &'a [(String, String)],
    /// The headers as sent, in any order and case.
    pub headers: &'a [(&'a str, &'a str)],
}

/// Points on which signers differ in practice; `false` is what the service documents.
#[derive(Clone, Copy)]
struct Dialect {
    /// Sort header names by bytes, not by the service's collation.
    byte_order: bool,
    /// Fold runs of white space in header values into one space.
    fold: bool,
    /// Leave `-secondary` out of the account in a path-style path.
    primary_path: bool,
}

const PLAIN: Dialect = Dialect {
    byte_order: false,
    fold: false,
    primary_path: false,
};

/// Parses an `Authorization` header.
///
/// # Errors
/// 400 `InvalidAuthenticationInfo` for an unknown scheme or a missing part, as recorded.
pub fn parse_authorization(value: &str) -> Result<Authorization, StorageError> {
    let refused = || StorageError::from(ErrorCode::InvalidAuthenticationInfo);
    let (word, rest) = value.trim().split_once(' ').ok_or_else(refused)?;
    let rest = rest.trim();
    let scheme = match word {
        // Recorded: a token of several words is rejected.
        _ if word.eq_ignore_ascii_case("Bearer") && !rest.is_empty() && !rest.contains(' ') => {
            return Ok(Authorization::Bearer(rest.to_owned()));
        }
        _ if word.eq_ignore_ascii_case("SharedKey") => Scheme::SharedKey,
        _ if word.eq_ignore_ascii_case("SharedKeyLite") => Scheme::SharedKeyLite,
        _ => return Err(refused()),
    };
    match rest.split_once(':') {
        Some((account, signature)) if !account.is_empty() && !signature.is_empty() => {
            let (account, signature) = (account.to_owned(), signature.to_owned());
            Ok(Authorization::Key {
                scheme,
                account,
                signature,
            })
        }
        _ => Err(refused()),
    }
}

/// Returns the string to sign.
pub fn string_to_sign(input: &SigningInput<'_>) -> String {
    build(input, PLAIN)
}

/// Returns the value of the `Authorization` header that signs this request.
pub fn authorization(input: &SigningInput<'_>, key: &[u8]) -> String {
    let signature = sign(key, &string_to_sign(input));
    format!("{} {}:{signature}", input.scheme.as_str(), input.account)
}

/// Returns whether `signature` signs this request. Besides the documented string it accepts the
/// strings of signers that sort headers by bytes, fold white space, or name the primary account in
/// the path.
pub fn verify_request(input: &SigningInput<'_>, key: &[u8], signature: &str) -> bool {
    let plain = string_to_sign(input);
    if verify(key, &plain, signature) {
        return true;
    }
    let mut tried = vec![plain];
    for bits in 1..8 {
        let dialect = Dialect {
            byte_order: bits & 1 != 0,
            fold: bits & 2 != 0,
            primary_path: bits & 4 != 0,
        };
        let other = build(input, dialect);
        if !tried.contains(&other) {
            if verify(key, &other, signature) {
                return true;
            }
            tried.push(other);
        }
    }
    false
}

fn build(input: &SigningInput<'_>, dialect: Dialect) -> String {
    let input = &SigningInput {
        scheme: scheme_of(input),
        ..*input
    };
    let header = |name| header(input.headers, name);
    let date = header("x-ms-date");
    let mut lines: Vec<&str> = Vec::with_capacity(12);
    match (input.service, input.scheme) {
        (Service::Table, Scheme::SharedKeyLite) => lines.push(date.unwrap_or(get_date(input))),
        (Service::Table, Scheme::SharedKey) => {
            lines.extend([input.method, header("content-md5").unwrap_or("")]);
            lines.push(header("content-type").unwrap_or(""));
            lines.push(date.unwrap_or(get_date(input)));
        }
        (_, Scheme::SharedKeyLite) => {
            lines.extend([input.method, header("content-md5").unwrap_or("")]);
            lines.push(header("content-type").unwrap_or(""));
            lines.push(if date.is_some() { "" } else { get_date(input) });
        }
        (_, Scheme::SharedKey) => {
            lines.push(input.method);
            lines.extend(STANDARD.iter().map(|name| match *name {
                "content-length" => content_length(input),
                "date" if date.is_some() => "",
                name => header(name).unwrap_or(""),
            }));
        }
    }
    let mut text = lines.join("\n");
    text.push('\n');
    if input.service != Service::Table {
        push_headers(&mut text, input, dialect);
    }
    push_resource(&mut text, input, dialect);
    text
}

/// Returns the string that is signed. Before 2009-09-19 the string of Shared Key was, for blobs and
/// queues, today's Lite string. *Authorize with Shared Key*, formats by version.
fn scheme_of(input: &SigningInput<'_>) -> Scheme {
    if input.service != Service::Table && input.version < ApiVersion::V2009_09_19 {
        Scheme::SharedKeyLite
    } else {
        input.scheme
    }
}

/// The standard headers of the Shared Key string, in its order.
const STANDARD: [&str; 11] = [
    "content-encoding",
    "content-language",
    "content-length",
    "content-md5",
    "content-type",
    "date",
    "if-modified-since",
    "if-match",
    "if-none-match",
    "if-unmodified-since",
    "range",
];

fn header<'a>(headers: &[(&'a str, &'a str)], name: &str) -> Option<&'a str> {
    let (_, value) = headers
        .iter()
        .find(|(given, _)| given.eq_ignore_ascii_case(name))?;
    Some(value.trim())
}

fn get_date<'a>(input: &SigningInput<'a>) -> &'a str {
    header(input.headers, "date").unwrap_or("")
}

/// Returns the `Content-Length` line. Since 2015-02-21 it is empty for an empty body.
fn content_length<'a>(input: &SigningInput<'a>) -> &'a str {
    match header(input.headers, "content-length") {
        Some("0") if input.version >= ApiVersion::V2015_02_21 => "",
        length => length.unwrap_or(""),
    }
}

/// Writes `CanonicalizedHeaders`: all `x-ms-` headers, one line each.
fn push_headers(text: &mut String, input: &SigningInput<'_>, dialect: Dialect) {
    let mut own: Vec<(String, Cow<'_, str>)> = input
        .headers
        .iter()
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim()))
        .filter(|(name, _)| name.starts_with("x-ms-"))
        // Empty headers are signed since 2016-05-31.
        .filter(|(_, value)| !value.is_empty() || input.version >= ApiVersion::V2016_05_31)
        .map(|(name, value)| {
            (
                name,
                if dialect.fold {
                    fold(value)
                } else {
                    value.into()
                },
            )
        })
        .collect();
    if dialect.byte_order {
        own.sort_by(|a, b| a.0.cmp(&b.0));
    } else {
        own.sort_by(|a, b| collate(&a.0, &b.0));
    }
    for (name, value) in own {
        text.extend([name.as_str(), ":", &value, "\n"]);
    }
}

/// Compares header names by the service's collation: a first pass without dashes, in which `_` and
/// the other marks come before digits and digits before letters; dashes decide between equals.
fn collate(a: &str, b: &str) -> Ordering {
    let weights = |name: &str| -> Vec<(bool, bool, u8)> {
        name.bytes()
            .filter(|byte| *byte != b'-')
            .map(|byte| (byte.is_ascii_alphabetic(), byte.is_ascii_digit(), byte))
            .collect()
    };
    weights(a).cmp(&weights(b)).then_with(|| a.cmp(b))
}

fn fold(value: &str) -> Cow<'_, str> {
    if value.contains('"') || !(value.contains("  ") || value.contains('\t')) {
        return Cow::Borrowed(value);
    }
    Cow::Owned(value.split_ascii_whitespace().collect::<Vec<_>>().join(" "))
}

fn push_resource(text: &mut String, input: &SigningInput<'_>, dialect: Dialect) {
    text.extend(["/", input.account]);
    push_path(text, input, dialect);
    if input.service == Service::Table || input.scheme == Scheme::SharedKeyLite {
        if let Some(comp) = lookup(input.query, "comp") {
            text.extend(["?comp=", comp]);
        }
        return;
    }
    let mut parameters: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (name, value) in input.query {
        parameters
            .entry(name.to_ascii_lowercase())
            .or_default()
            .push(value);
    }
    for (name, mut values) in parameters {
        values.sort_unstable();
        text.extend(["\n", &name, ":", &values.join(",")]);
    }
}

fn push_path(text: &mut String, input: &SigningInput<'_>, dialect: Dialect) {
    let path = if input.path.is_empty() {
        "/"
    } else {
        input.path
    };
    let secondary = path
        .strip_prefix('/')
        .and_then(|path| path.strip_prefix(input.account))
        .and_then(|path| path.strip_prefix("-secondary"))
        .filter(|rest| rest.is_empty() || rest.starts_with('/'));
    match secondary {
        Some(rest) if dialect.primary_path => text.extend(["/", input.account, rest]),
        _ => text.push_str(path),
    }
}

#[cfg(test)]
#[path = "shared_key_tests.rs"]
mod tests;
