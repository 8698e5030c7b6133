//! Continuation markers: length-prefixed strings.
//!
//! Clients must treat a marker as opaque; smalt uses the recorded form,
//! `2!68!MDAwMDA2IWJsb2JhMyEwMDAwMjghOTk5OS0...`: a length, and in Base64 with `-` for `=` the text
//! `000006!bloba3!000028!9999-12-31T23:59:59.9999999Z!`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

const FORMAT: &str = "2!";
const LENGTH_DIGITS: usize = 6;

/// Encodes strings as a marker.
pub fn write(texts: &[&str]) -> String {
    let counted = texts
        .iter()
        .map(|text| format!("{:06}!{text}!", text.len()));
    let encoded = STANDARD
        .encode(counted.collect::<String>())
        .replace('=', "-");
    format!("{FORMAT}{}!{encoded}", encoded.len())
}

/// Decodes a marker of `N` strings; `None` for an invalid marker.
pub fn read<const N: usize>(marker: &str) -> Option<[String; N]> {
    let (length, encoded) = marker.strip_prefix(FORMAT)?.split_once('!')?;
    if length.parse() != Ok(encoded.len()) {
        return None;
    }
    let decoded = STANDARD.decode(encoded.replace('-', "=")).ok()?;
    let decoded = String::from_utf8(decoded).ok()?;
    let mut rest = decoded.as_str();
    let mut texts = Vec::with_capacity(N);
    while texts.len() < N {
        let (text, behind) = counted(rest)?;
        texts.push(text.to_owned());
        rest = behind;
    }
    texts.try_into().ok().filter(|_| rest.is_empty())
}

/// Splits off a string with its length in bytes in front; returns it and the rest.
fn counted(text: &str) -> Option<(&str, &str)> {
    let (length, rest) = text.split_at_checked(LENGTH_DIGITS)?;
    let (counted, rest) = rest
        .strip_prefix('!')?
        .split_at_checked(length.parse().ok()?)?;
    Some((counted, rest.strip_prefix('!')?))
}
