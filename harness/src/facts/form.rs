//! The form of a value: what kind of text it is, without the text.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use smalt_protocol::Timestamp;

use crate::replay::bindings::Kind;
use crate::replay::rules::How;
use crate::replay::value;

/// The form of every text of which nothing is known. It covers all other forms.
pub const TEXT: &str = "text";

/// Words of the protocol. A value that is one of these is its own form.
const WORDS: &str = "true false BlockBlob PageBlob AppendBlob file directory bytes StorageV2 \
    return-content return-no-content Origin no-cache nosniff 1.0; 3.0; application/xml \
    application/octet-stream application/json;charset=utf-8 \
    application/json;odata=nometadata;streaming=true;charset=utf-8 \
    application/json;odata=minimalmetadata;streaming=true;charset=utf-8 \
    application/json;odata=fullmetadata;streaming=true;charset=utf-8 \
    application/xml;charset=utf-8 application/atom+xml;charset=utf-8 \
    application/atom+xml;type=entry;charset=utf-8 application/atom+xml;type=feed;charset=utf-8 \
    application/http binary avro/binary";

/// Sets of words of the protocol, each with the form of all its words: recordings rarely have all.
const SETS: &[(&str, &str)] = &[
    ("lease.state", "available leased expired breaking broken"),
    ("lease.status", "locked unlocked"),
    ("lease.duration", "infinite fixed"),
    ("copy.status", "pending success aborted failed"),
    ("access", "container blob"),
    ("tier", "Hot Cool Cold Archive P4 P6 P10 P15 P20 P30 P40"),
    ("priority", "Standard High"),
    (
        "sku",
        "Standard_LRS Standard_GRS Standard_RAGRS Standard_ZRS Premium_LRS",
    ),
    (
        "type",
        "Edm.Binary Edm.Boolean Edm.DateTime Edm.Double Edm.Guid Edm.Int32 Edm.Int64 Edm.String",
    ),
];

/// Media type of the answer to a batch, in front of its own boundary.
const BATCH: &str = "multipart/mixed;boundary=";

/// Lengths of checksums and hashes in bytes: CRC-64, MD5, SHA-256.
const HASHES: [usize; 3] = [8, 16, 32];

/// Returns the form of a value in a place with this rule; `code` is the answer's error code.
pub fn of(how: Option<How>, code: Option<&str>, text: &str) -> String {
    if text.is_empty() {
        return "empty".to_owned();
    }
    match how {
        Some(
            How::Exists
            | How::Challenge
            | How::Bound(
                Kind::PopReceipt | Kind::Marker | Kind::DeletedVersion | Kind::DelegationKey,
            ),
        ) => "opaque".to_owned(),
        Some(How::NameSet) => "names".to_owned(),
        Some(How::Message) if value::message(text).len() > 1 => "message.stamped".to_owned(),
        Some(How::Message) => "message".to_owned(),
        Some(How::MediaType) => plain(&value::media_type(text)),
        _ if Some(text) == code => "code".to_owned(),
        _ => plain(text),
    }
}

/// Whether a text is one of these words.
pub fn is_in(words: &str, text: &str) -> bool {
    words.split_ascii_whitespace().any(|word| word == text)
}

fn plain(text: &str) -> String {
    if is_in(WORDS, text) {
        return text.to_owned();
    }
    if let Some((form, _)) = SETS.iter().find(|(_, words)| is_in(words, text)) {
        return (*form).to_owned();
    }
    if text.starts_with(BATCH) {
        return "multipart".to_owned();
    }
    if text.starts_with("https://") || text.starts_with("http://") {
        return "url".to_owned();
    }
    let is_date = Timestamp::parse_rfc1123(text).is_some_and(|date| date.rfc1123() == text);
    if is_date {
        return "rfc1123".to_owned();
    }
    let shape = shape(text);
    let shaped = match shape.as_str() {
        "9" | "-9" => Some("number"),
        "9.9" | "-9.9" => Some("decimal"),
        "9999-99-99" => Some("version"),
        "bytes 9-9/9" | "bytes */9" => Some("range"),
        "9/9" => Some("progress"),
        _ => None,
    };
    let found = shaped
        .map(str::to_owned)
        .or_else(|| iso(text))
        .or_else(|| tag(text))
        .or_else(|| guid(text))
        .or_else(|| hash(text));
    found.unwrap_or_else(|| TEXT.to_owned())
}

/// Replaces digits by nines, and runs of digits by one, except in dates.
fn shape(text: &str) -> String {
    let is_date = text.len() == 10 && text.matches('-').count() == 2;
    let mut shape = String::with_capacity(text.len());
    for c in text.chars() {
        let c = if c.is_ascii_digit() { '9' } else { c };
        if is_date || c != '9' || !shape.ends_with('9') {
            shape.push(c);
        }
    }
    shape
}

/// `iso8601.7` with seven digits of a fraction; with `.local` it has no zone.
fn iso(text: &str) -> Option<String> {
    let (text, zone) = match text.strip_suffix('Z') {
        Some(text) => (text, ""),
        None => (text, ".local"),
    };
    let (time, fraction) = text.split_once('.').unwrap_or((text, ""));
    let pattern: String = time
        .chars()
        .map(|c| if c.is_ascii_digit() { '9' } else { c })
        .collect();
    let is_time = pattern == "9999-99-99T99:99:99" && fraction.chars().all(|c| c.is_ascii_digit());
    is_time.then(|| format!("iso8601.{}{zone}", fraction.len()))
}

/// The forms of ETags.
fn tag(text: &str) -> Option<String> {
    let core = value::core(Kind::ETag, text);
    let is_tick = core.strip_prefix("0x").is_some_and(|hex| {
        let is_upper = |c: char| c.is_ascii_digit() || ('A'..='F').contains(&c);
        !hex.is_empty() && hex.chars().all(is_upper)
    });
    let is_time = core.starts_with("datetime'") && core.ends_with('\'');
    let form = match (text.starts_with("W/\""), text.starts_with('"')) {
        (true, _) if is_time => "etag.weak",
        (false, true) if is_tick => "etag",
        (false, false) if is_tick => "etag.bare",
        _ => return None,
    };
    Some(form.to_owned())
}

fn guid(text: &str) -> Option<String> {
    let lengths: Vec<usize> = text.split('-').map(str::len).collect();
    let is_lower = |c: char| c == '-' || c.is_ascii_digit() || ('a'..='f').contains(&c);
    let is_guid = lengths == [8, 4, 4, 4, 12] && text.chars().all(is_lower);
    is_guid.then(|| "guid".to_owned())
}

fn hash(text: &str) -> Option<String> {
    let bytes = text.ends_with('=').then(|| STANDARD.decode(text).ok())??;
    HASHES
        .contains(&bytes.len())
        .then(|| format!("base64.{}", bytes.len()))
}

/// Whether a text in a file of facts is a form.
pub fn is_form(text: &str) -> bool {
    let mut parts = text.split('.');
    let is_numbered = matches!(parts.next(), Some("iso8601" | "base64"))
        && parts.next().is_some_and(|n| n.parse::<usize>().is_ok())
        && parts.next().is_none_or(|zone| zone == "local");
    let is_set = SETS.iter().any(|(form, _)| *form == text);
    is_numbered || is_set || is_in(WORDS, text) || is_in(NAMES, text)
}

/// The forms that are neither words nor numbered.
const NAMES: &str = "\
    text empty opaque names message message.stamped code multipart url rfc1123 number decimal \
    version range progress etag etag.weak etag.bare guid content xml xml.marked json parts \
    null object array status";

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of one form have it, and their neighbours do not.
    #[test]
    fn values_have_forms() {
        for (text, form) in [
            ("", "empty"),
            ("true", "true"),
            ("BlockBlob", "BlockBlob"),
            ("Blockblob", TEXT),
            ("17", "number"),
            ("17.5", "decimal"),
            ("2021-12-02", "version"),
            ("2021-12-2", TEXT),
            ("bytes 0-511/2048", "range"),
            ("512/2048", "progress"),
            ("broken", "lease.state"),
            ("\"0x8D6D4173A7F45B7\"", "etag"),
            ("0x8D6D4173A7F45B7", "etag.bare"),
            ("\"0x8d6d4173a7f45b7\"", TEXT),
            ("W/\"datetime'2020-01-01T00%3A00%3A00Z'\"", "etag.weak"),
            ("W/\"0x1\"", TEXT),
            ("Thu, 09 May 2019 00:57:59 GMT", "rfc1123"),
            ("Fri, 09 May 2019 00:57:59 GMT", TEXT),
            ("2019-05-09T00:57:59.1234567Z", "iso8601.7"),
            ("2019-05-09T00:57:59Z", "iso8601.0"),
            ("2019-05-09T00:57:59", "iso8601.0.local"),
            ("2019-05-09 00:57:59Z", TEXT),
            ("6f4e9d4c-1f61-4e5c-9b5a-0123456789ab", "guid"),
            ("6F4E9D4C-1F61-4E5C-9B5A-0123456789AB", TEXT),
            ("XrY7u+Ae7tCTyyK7j1rNww==", "base64.16"),
            ("XrY7u+Ae7tCTyyK7j1rN", TEXT),
            ("http://127.0.0.1/x", "url"),
            ("orders", TEXT),
        ] {
            assert_eq!(of(None, None, text), form, "{text}");
            assert!(is_form(form), "{form}");
        }
        let message = "Not there.\nRequestId:1\nTime:2";
        assert_eq!(of(Some(How::Message), None, message), "message.stamped");
        assert_eq!(of(Some(How::Message), None, "Not there."), "message");
        assert_eq!(of(None, Some("BlobNotFound"), "BlobNotFound"), "code");
        let batch = "multipart/mixed; boundary=batchresponse_70c5";
        assert_eq!(of(Some(How::MediaType), None, batch), "multipart");
        for other in ["orders", "iso8601", "base64.x", "iso8601.7.utc", ""] {
            assert!(!is_form(other), "{other}");
        }
    }
}
