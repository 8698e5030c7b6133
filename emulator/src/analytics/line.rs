//! A line of a log: fields separated by semicolons.
//!
//! Sources: "Storage Analytics log format", "Storage Analytics logged operations and status
//! messages". The address of the requester has no port, because no other part of the emulator
//! needs it.

use http::header::{
    CONTENT_LENGTH, ETAG, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_UNMODIFIED_SINCE,
    LAST_MODIFIED, REFERER, USER_AGENT,
};
use http::{HeaderMap, HeaderName, Method, Response, StatusCode};
use smalt_protocol::Timestamp;
use smalt_protocol::xml::LogVersion;

use crate::auth::Identity;
use crate::body::Body;
use crate::call::Call;
use crate::masking;
use crate::register::Entry;

/// Stands for the value of a signature, as in production.
const MASK: &str = "XXXXX";
const CONTENT_MD5: HeaderName = HeaderName::from_static("content-md5");
const CLIENT_REQUEST_ID: HeaderName = HeaderName::from_static("x-ms-client-request-id");

/// How a caller proves who it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Proof {
    Key,
    Token,
    Signature,
    Nothing,
}

impl Proof {
    fn of(call: &Call) -> Self {
        let authorization = call.headers.get("authorization");
        match authorization.map(|value| value.as_bytes().to_ascii_lowercase()) {
            Some(value) if value.starts_with(b"bearer ") => Proof::Token,
            Some(_) => Proof::Key,
            None if call.query("sig").is_some() => Proof::Signature,
            None => Proof::Nothing,
        }
    }

    /// Returns the authentication type, and the prefix of the status.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Proof::Key => ("authenticated", ""),
            Proof::Token => ("bearer", ""),
            Proof::Signature => ("sas", "SAS"),
            Proof::Nothing => ("anonymous", "Anonymous"),
        }
    }
}

fn outcome(status: StatusCode) -> &'static str {
    match status.as_u16() {
        503 => "ThrottlingError",
        500.. => "ServerOtherError",
        401 | 403 => "AuthorizationError",
        304 | 400.. => "ClientOtherError",
        _ => "Success",
    }
}

/// Returns the line of a request, which ends in a newline. Of the anonymous requests that fail,
/// production logs only those for which the service is to blame, and reads of what has not changed.
pub(super) fn of(
    call: &Call,
    entry: &Entry,
    response: &Response<Body>,
    (now, version): (Timestamp, LogVersion),
) -> Option<String> {
    let (status, proof) = (response.status(), Proof::of(call));
    let is_unchanged = status == StatusCode::NOT_MODIFIED;
    let is_refused = status.is_client_error() || (is_unchanged && call.method != Method::GET);
    if proof == Proof::Nothing && is_refused {
        return None;
    }
    let (authentication, prefix) = proof.names();
    let account = call.account();
    let requester = if proof == Proof::Key { account } else { "" };
    let latency_ms = now.since(call.arrival).as_millis().to_string();
    let url = format!("{}{}", call.origin, masking::target(&call.uri, MASK));
    let (sent, answered) = (Headers(&call.headers), Headers(response.headers()));
    let body_bytes = call.body_length.unwrap_or_default().to_string();
    let named_version = call.version_given.then(|| call.version.to_string());
    let last_modified = answered.get(&LAST_MODIFIED).map(long_date);
    let mut fields = vec![
        version.as_str().to_owned(),
        call.arrival.iso_ticks(),
        operation_type(entry),
        format!("{prefix}{}", outcome(status)),
        status.as_u16().to_string(),
        latency_ms.clone(),
        latency_ms,
        authentication.to_owned(),
        requester.to_owned(),
        account.to_owned(),
        call.service().as_str().to_owned(),
        quoted(&url),
        quoted(&object_key(call)),
        call.request_id.to_string(),
        "0".to_owned(),
        call.peer.map(|peer| peer.to_string()).unwrap_or_default(),
        named_version.unwrap_or_default(),
        sent.bytes().to_string(),
        body_bytes.clone(),
        answered.bytes().to_string(),
        answered.get(&CONTENT_LENGTH).unwrap_or("0").to_owned(),
        body_bytes,
        sent.quoted(&CONTENT_MD5),
        answered.quoted(&CONTENT_MD5),
        answered.quoted(&ETAG),
        last_modified.unwrap_or_default(),
        quoted(&conditions(sent)),
        sent.quoted(&USER_AGENT),
        sent.quoted(&REFERER),
        sent.quoted(&CLIENT_REQUEST_ID),
    ];
    if version == LogVersion::V2 {
        let (user, tenant) = match call.identity {
            Identity::Entra(who) => (who.object_id.to_string(), who.tenant_id.to_string()),
            _ => Default::default(),
        };
        fields.extend([user, tenant]);
        // Application, audience, issuer, name of the user, a reserved field, authorisation details:
        // the identity of a call does not keep what else its token says.
        fields.extend(std::iter::repeat_n(String::new(), 6));
    }
    Some(fields.join(";") + "\n")
}

/// Returns the operation as the log names it: the title of its page in one word. Words in
/// parentheses tell operations of one page apart.
fn operation_type(entry: &Entry) -> String {
    let title = entry.title.split(" (").next().unwrap_or_default();
    title.replace(' ', "")
}

/// Returns `/account/container/blob`, as the request wrote it.
fn object_key(call: &Call) -> String {
    let (account, path) = (call.account(), call.target.raw_path.as_str());
    let is_path_style = path
        .strip_prefix('/')
        .and_then(|path| path.strip_prefix(account))
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    match is_path_style {
        true => path.to_owned(),
        false => format!("/{account}{path}"),
    }
}

fn conditions(sent: Headers<'_>) -> String {
    let names = [
        ("If-Match", IF_MATCH),
        ("If-None-Match", IF_NONE_MATCH),
        ("If-Modified-Since", IF_MODIFIED_SINCE),
        ("If-Unmodified-Since", IF_UNMODIFIED_SINCE),
    ];
    let given = names.iter().filter_map(|(shown, name)| {
        let value = sent.get(name)?;
        Some(format!("{shown}={value}"))
    });
    given.collect::<Vec<_>>().join(";")
}

/// Returns `Tuesday, 09-Aug-11 21:13:26 GMT` of an RFC 1123 date.
fn long_date(rfc1123: &str) -> String {
    const DAYS: [&str; 7] = [
        "Monday",
        "Tuesday",
        "Wednesday",
        "Thursday",
        "Friday",
        "Saturday",
        "Sunday",
    ];
    let words = rfc1123.split([' ', ',']).filter(|word| !word.is_empty());
    let [day, date, month, year, time, zone] = words.collect::<Vec<_>>()[..] else {
        return rfc1123.to_owned();
    };
    let day = DAYS.iter().find(|long| long.starts_with(day)).copied();
    let (day, year) = (day.unwrap_or_default(), year.get(2..).unwrap_or_default());
    format!("{day}, {date}-{month}-{year} {time} {zone}")
}

/// Returns a text as a quoted field with the characters of HTML replaced, and an empty text as an
/// empty field.
fn quoted(text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    let mut field = String::from('"');
    for character in text.chars() {
        match character {
            '"' => field.push_str("&quot;"),
            '&' => field.push_str("&amp;"),
            '<' => field.push_str("&lt;"),
            '>' => field.push_str("&gt;"),
            other => field.push(other),
        }
    }
    field.push('"');
    field
}

#[derive(Clone, Copy)]
struct Headers<'a>(&'a HeaderMap);

impl<'a> Headers<'a> {
    fn get(self, name: &HeaderName) -> Option<&'a str> {
        self.0.get(name)?.to_str().ok()
    }

    fn quoted(self, name: &HeaderName) -> String {
        quoted(self.get(name).unwrap_or_default())
    }

    /// Returns the bytes of all headers, with their separators and line ends.
    fn bytes(self) -> usize {
        let lines = self.0.iter();
        lines
            .map(|(name, value)| name.as_str().len() + value.len() + 4)
            .sum()
    }
}
