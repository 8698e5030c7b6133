//! Percent encoding of paths and queries.
//!
//! In a path a literal `+` is a plus. In a query it is a space, as in forms: Microsoft's Rust SDK
//! writes spaces this way. Base64 values (signatures, pop receipts, block ids, markers) have no
//! spaces, so an unescaped plus in them stays a plus. Names of query parameters keep their case;
//! [`lookup`] compares them as Azure does, ignoring it.

use memchr::{memchr, memchr_iter};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::error::{ErrorCode, StorageError};

/// The decoded names and values of a query, in order.
pub type Query = Vec<(String, String)>;

/// Escapes all but the unreserved characters of RFC 3986.
const COMPONENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');
/// The same, but keeps the segment separator `/`.
const PATH: &AsciiSet = &COMPONENT.remove(b'/');

/// Decodes percent escapes to UTF-8.
///
/// # Errors
/// 400 `InvalidUri` for a `%` without two hexadecimal digits and for bytes that are not UTF-8.
pub fn percent_decode(text: &str) -> Result<String, StorageError> {
    let (literal, Some(escaped)) = cut(text, b'%') else {
        return Ok(text.to_owned());
    };
    let mut decoded = Vec::with_capacity(text.len());
    decoded.extend_from_slice(literal.as_bytes());
    for part in escaped.split('%') {
        let [high, low, literal @ ..] = part.as_bytes() else {
            return Err(ErrorCode::InvalidUri.into());
        };
        decoded.push(hex_pair(*high, *low).ok_or(ErrorCode::InvalidUri)?);
        decoded.extend_from_slice(literal);
    }
    String::from_utf8(decoded).map_err(|_| ErrorCode::InvalidUri.into())
}

/// Escapes a path; keeps `/`.
pub fn encode_path(path: &str) -> String {
    utf8_percent_encode(path, PATH).to_string()
}

/// Escapes one name or value of a query.
pub fn encode_query(text: &str) -> String {
    utf8_percent_encode(text, COMPONENT).to_string()
}

/// Returns the parts of a text around the first `mark`, an ASCII character.
fn cut(text: &str, mark: u8) -> (&str, Option<&str>) {
    match memchr(mark, text.as_bytes()) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    }
}

/// Splits a raw query (without `?`) into parameters, each with its name and, behind a `=`, its
/// value. A parameter can be empty (`a&&b`).
pub(crate) fn parameters(raw: &str) -> impl Iterator<Item = (&str, Option<&str>)> {
    let mut at = 0;
    let ends = memchr_iter(b'&', raw.as_bytes()).chain([raw.len()]);
    ends.map(move |end| {
        let parameter = &raw[at..end];
        at = end + 1;
        cut(parameter, b'=')
    })
}

/// Splits a raw query (without `?`) into decoded names and values, in order. A parameter without
/// `=` has an empty value; empty parameters (`a&&b`) are skipped.
///
/// # Errors
/// 400 `InvalidUri` for a malformed escape.
pub fn parse_query(raw: &str) -> Result<Query, StorageError> {
    parameters(raw)
        .filter(|parameter| *parameter != ("", None))
        .map(|(name, value)| {
            let value = value.unwrap_or_default();
            let value = if cut(value, b'+').1.is_none() || is_base64(name) {
                percent_decode(value)?
            } else {
                percent_decode(&value.replace('+', " "))?
            };
            Ok((percent_decode(name)?, value))
        })
        .collect()
}

fn is_base64(parameter: &str) -> bool {
    ["sig", "popreceipt", "blockid", "marker"]
        .iter()
        .any(|name| parameter.eq_ignore_ascii_case(name))
}

/// Joins names and values to a raw query, escaping them.
pub fn write_query<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let mut raw = String::new();
    for (name, value) in pairs {
        if !raw.is_empty() {
            raw.push('&');
        }
        raw.extend(utf8_percent_encode(name, COMPONENT));
        raw.push('=');
        raw.extend(utf8_percent_encode(value, COMPONENT));
    }
    raw
}

/// Returns the first value of a parameter; compares names without regard to case.
pub fn lookup<'a>(query: &'a [(String, String)], name: &str) -> Option<&'a str> {
    query
        .iter()
        .find(|(given, _)| given.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.as_str())
}

fn hex_pair(high: u8, low: u8) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    u8::try_from(digit(high)? * 16 + digit(low)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn decodes_or_rejects() {
        for (text, expected) in [
            ("a%20b", Some("a b")),
            ("a+b", Some("a+b")),
            ("%c3%BC", Some("ü")),
            ("%2F", Some("/")),
            ("ü", Some("ü")),
            ("", Some("")),
            ("%", None),
            ("%2", None),
            ("%zz", None),
            ("%+1", None),
            ("%FF", None),
            ("%C3", None),
        ] {
            assert_eq!(percent_decode(text).ok().as_deref(), expected, "{text}");
        }
        let error = percent_decode("%zz").unwrap_err();
        assert_eq!(error.code(), ErrorCode::InvalidUri);
    }

    #[test]
    fn encodes_paths_and_queries() {
        assert_eq!(encode_path("a b/c+d?e%ü"), "a%20b/c%2Bd%3Fe%25%C3%BC");
        assert_eq!(encode_query("a b/c+d=&~"), "a%20b%2Fc%2Bd%3D%26~");
        assert_eq!(write_query([("a", "1 2"), ("b", "")]), "a=1%202&b=");
    }

    #[test]
    fn splits_queries() {
        let query = parse_query("restype=container&&Comp=list&flag&a=b=c&include=x&include=y");
        let query = query.unwrap();
        let flat: Vec<_> = query.iter().map(|(n, v)| format!("{n}:{v}")).collect();
        let expected = [
            "restype:container",
            "Comp:list",
            "flag:",
            "a:b=c",
            "include:x",
            "include:y",
        ];
        assert_eq!(flat, expected);
        assert_eq!(lookup(&query, "comp"), Some("list"));
        assert_eq!(lookup(&query, "include"), Some("x"));
        assert_eq!(lookup(&query, "absent"), None);
        assert!(parse_query("").unwrap().is_empty());
        assert!(parse_query("a=%FF").is_err());
    }

    #[test]
    fn a_plus_is_a_space_except_in_base64() {
        let query = parse_query("prefix=a+b%2Bc&sig=x+y%2Bz&PopReceipt=p+q").unwrap();
        let values: Vec<&str> = query.iter().map(|(_, value)| value.as_str()).collect();
        assert_eq!(values, ["a b+c", "x+y+z", "p+q"]);
    }

    proptest! {
        #[test]
        fn encoded_text_decodes_to_the_original(text in ".{0,60}") {
            prop_assert_eq!(percent_decode(&encode_path(&text)).unwrap(), text.clone());
            prop_assert_eq!(percent_decode(&encode_query(&text)).unwrap(), text);
        }

        #[test]
        fn any_text_is_parsed_or_rejected(text in "[%0-9a-fA-F&=+ü]{0,40}") {
            let _ = percent_decode(&text);
            let _ = parse_query(&text);
        }
    }
}
