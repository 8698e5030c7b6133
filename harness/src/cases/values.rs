//! Expands the strings of a case: replaces the forms in braces.
//!
//! | form | becomes |
//! | --- | --- |
//! | `{name}` | a value that a step kept, or one that every case has ([`super::play`]) |
//! | `{url:name}` | the same, percent-encoded |
//! | `{rfc1123+60}`, `{iso-60}` | the service's time, this many seconds later or earlier |
//! | `{repeat:N:text}` | the text N times |
//! | `{count:N:text}` | the same, with `#` in it replaced by the number of the repetition; forms in
//!   the text are expanded first |
//! | `{hex:00ff}` | these bytes |
//!
//! A brace before a quotation mark or another brace is part of JSON and stays.

use std::collections::BTreeMap;

use smalt_protocol::Timestamp;

use crate::wire::url;

/// Maximum number of characters of an unknown form in an error.
const SHOWN_CHARS_MAX: usize = 40;

/// A string uses a value that no step kept, or an unknown form.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown value or form {{{0}}}: keep it with `{0} := place` in an earlier step")]
pub struct ValuesError(pub String);

/// Values by name, and the service's time.
#[derive(Clone, Debug, Default)]
pub struct Values {
    named: BTreeMap<String, String>,
    now: Option<Timestamp>,
}

impl Values {
    /// Stores a value.
    pub fn keep(&mut self, name: &str, value: impl Into<String>) {
        self.named.insert(name.to_owned(), value.into());
    }

    /// Returns a kept value; empty if no step kept it.
    pub fn get(&self, name: &str) -> &str {
        self.named.get(name).map_or("", String::as_str)
    }

    /// Sets the service's time, from the date of an answer.
    pub fn see(&mut self, now: Timestamp) {
        self.now = Some(now);
    }

    /// Returns the service's time, if known.
    pub fn now(&self) -> Option<Timestamp> {
        self.now
    }

    /// Expands a string; replaces bytes that are not UTF-8.
    pub fn text(&self, text: &str) -> Result<String, ValuesError> {
        self.bytes(text)
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Expands a path with its query; percent-encodes kept values as clients do.
    pub fn path(&self, text: &str) -> Result<String, ValuesError> {
        let bytes = expand(text, |form| {
            let named = self.named.get(form).map(|value| url::encode(value).into());
            named.or_else(|| self.replacement(form))
        })?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Expands a string that may contain arbitrary bytes.
    pub fn bytes(&self, text: &str) -> Result<Vec<u8>, ValuesError> {
        expand(text, |form| self.replacement(form))
    }

    fn replacement(&self, form: &str) -> Option<Vec<u8>> {
        if let Some(value) = self.named.get(form) {
            return Some(value.clone().into_bytes());
        }
        if let Some(date) = self.now.and_then(|now| date(form, now)) {
            return Some(date.into_bytes());
        }
        let (kind, rest) = form.split_once(':')?;
        match kind {
            "url" => Some(url::encode(self.named.get(rest)?).into_bytes()),
            "hex" => {
                let digits = rest.as_bytes().chunks(2);
                digits
                    .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
                    .collect()
            }
            "repeat" | "count" => {
                let (times, text) = rest.split_once(':')?;
                let times: usize = times.parse().ok()?;
                let text = self.text(text).ok()?;
                Some(if kind == "repeat" {
                    text.repeat(times).into_bytes()
                } else {
                    let numbered = |n: usize| text.replace('#', &n.to_string()).into_bytes();
                    (0..times).flat_map(numbered).collect()
                })
            }
            _ => None,
        }
    }
}

/// Replaces the forms in braces.
fn expand(
    text: &str,
    replacement: impl Fn(&str) -> Option<Vec<u8>>,
) -> Result<Vec<u8>, ValuesError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        bytes.extend_from_slice(before.as_bytes());
        if after.starts_with(['"', '{', '}']) {
            bytes.push(b'{');
            rest = after;
            continue;
        }
        let wrong = || ValuesError(after.chars().take(SHOWN_CHARS_MAX).collect());
        let end = end_of_form(after).ok_or_else(wrong)?;
        let (form, remaining) = (&after[..end], &after[end + 1..]);
        bytes.extend(replacement(form).ok_or_else(|| ValuesError(form.to_owned()))?);
        rest = remaining;
    }
    bytes.extend_from_slice(rest.as_bytes());
    Ok(bytes)
}

/// Returns the position of the brace that closes a form, which may contain pairs of braces.
fn end_of_form(text: &str) -> Option<usize> {
    let mut open = 0_usize;
    text.find(|c| match c {
        '{' => {
            open += 1;
            false
        }
        '}' if open > 0 => {
            open -= 1;
            false
        }
        c => c == '}',
    })
}

fn date(form: &str, now: Timestamp) -> Option<String> {
    let (written, shift): (fn(Timestamp) -> String, _) =
        if let Some(shift) = form.strip_prefix("rfc1123") {
            (Timestamp::rfc1123, shift)
        } else {
            (Timestamp::iso_s, form.strip_prefix("iso")?)
        };
    let shift: i64 = shift.parse().ok()?;
    let span = std::time::Duration::from_secs(shift.unsigned_abs());
    Some(written(if shift < 0 {
        now.minus(span)
    } else {
        now.plus(span)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_expanded() {
        let mut values = Values::default();
        values.keep("c", "box");
        values.keep("sas:x", "sv=1");
        values.keep("receipt", "a+/=");
        values.see(Timestamp::from_unix_s(1_800_000_000));
        for (text, expected) in [
            ("{c}/b?{sas:x}", "box/b?sv=1"),
            ("{rfc1123+60}", "Fri, 15 Jan 2027 08:01:00 GMT"),
            ("{iso-60}", "2027-01-15T07:59:00Z"),
            ("{repeat:3:ab}.", "ababab."),
            ("{count:2:h#,}", "h0,h1,"),
            ("{count:2:{\"{c}\":#}}", "{\"box\":0}{\"box\":1}"),
            ("{url:receipt}", "a%2B%2F%3D"),
            (
                "{\"a\":{},\"b\":{\"c\":\"{c}\"}}",
                "{\"a\":{},\"b\":{\"c\":\"box\"}}",
            ),
        ] {
            assert_eq!(values.text(text).unwrap(), expected, "{text}");
        }
        assert_eq!(values.bytes("{hex:00ff}").unwrap(), [0, 255]);
        assert_eq!(values.path("q?r={receipt}").unwrap(), "q?r=a%2B%2F%3D");
    }

    #[test]
    fn unknown_forms_are_rejected() {
        for wrong in ["{", "{nothing}", "{hex:0g}", "{repeat:x:a}", "{turn:1:a}"] {
            assert!(Values::default().text(wrong).is_err(), "{wrong}");
        }
    }
}
