//! Reads JSON values in place, without building a tree.
//!
//! [`scan`] checks that a record is well formed before a [`Json`] is created from it.

pub mod scan;

use std::borrow::Cow;

use super::sql::Name;
use super::value::Value;

/// Steps per byte that is skipped in search of a value.
const BYTE_STEPS: usize = 2;

/// The text of one JSON value, without white space around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Json<'a>(&'a [u8]);

impl<'a> Json<'a> {
    /// Wraps a value that [`scan`] has checked.
    pub fn new(text: &'a [u8]) -> Self {
        Json(text.trim_ascii())
    }

    /// Returns the raw bytes.
    pub fn raw(self) -> &'a [u8] {
        self.0
    }

    /// Returns the raw text.
    pub fn text(self) -> Cow<'a, str> {
        String::from_utf8_lossy(self.0)
    }

    /// Converts it to a value of the query language.
    pub fn value(self) -> Value<'a> {
        match self.0.first() {
            Some(b'{' | b'[') => Value::Json(self),
            Some(b'"') => Value::Text(string(self.0)),
            Some(b't') => Value::Boolean(true),
            Some(b'f') => Value::Boolean(false),
            Some(b'n') | None => Value::Null,
            Some(_) => number(&self.text()),
        }
    }

    /// Returns the steps for finding a value in this one: proportional to the bytes up to its end,
    /// or to the whole length if nothing was found.
    pub fn steps_to(self, found: Option<Json<'_>>) -> usize {
        let end = found.map(|found| found.0.as_ptr_range().end as usize);
        let length = end.and_then(|end| end.checked_sub(self.0.as_ptr() as usize));
        BYTE_STEPS * length.map_or(self.0.len(), |length| length.min(self.0.len()))
    }

    /// Returns the first member with this name.
    pub fn member(self, name: &Name) -> Option<Json<'a>> {
        let mut cursor = Cursor::within(self.0, b'{');
        while let Some((key, value)) = cursor.next_member() {
            if is_named(key, name) {
                return Some(Json(value));
            }
        }
        None
    }

    /// Returns the array item at `index`.
    pub fn item(self, index: usize) -> Option<Json<'a>> {
        self.items().nth(index)
    }

    /// Iterates over the members of an object; empty for other values.
    pub fn members(self) -> impl Iterator<Item = (Cow<'a, str>, Json<'a>)> {
        let mut cursor = Cursor::within(self.0, b'{');
        std::iter::from_fn(move || {
            let (name, value) = cursor.next_member()?;
            Some((string(name), Json(value)))
        })
    }

    /// Iterates over the items of an array; empty for other values.
    pub fn items(self) -> impl Iterator<Item = Json<'a>> {
        let mut cursor = Cursor::within(self.0, b'[');
        std::iter::from_fn(move || cursor.next_value().map(Json))
    }
}

/// The unread rest of an object or array.
struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    fn within(value: &'a [u8], open: u8) -> Self {
        let inside = value.strip_prefix(&[open]);
        Cursor {
            rest: inside.unwrap_or_default(),
        }
    }

    fn skip(&mut self, sign: u8) {
        self.rest = self.rest.trim_ascii_start();
        if let Some(rest) = self.rest.strip_prefix(&[sign]) {
            self.rest = rest.trim_ascii_start();
        }
    }

    /// Returns the next member: its quoted name and its value.
    fn next_member(&mut self) -> Option<(&'a [u8], &'a [u8])> {
        let name = self.next_value()?;
        self.skip(b':');
        Some((name, self.next_value()?))
    }

    /// Returns the next value after an optional comma; `None` before the closing bracket.
    fn next_value(&mut self) -> Option<&'a [u8]> {
        self.skip(b',');
        if matches!(self.rest.first(), None | Some(b'}' | b']')) {
            return None;
        }
        let (value, rest) = self.rest.split_at(value_length(self.rest));
        self.rest = rest;
        Some(value.trim_ascii_end())
    }
}

/// Returns the length of the value at the start of `text`.
fn value_length(text: &[u8]) -> usize {
    match text.first() {
        Some(b'"') => string_length(text),
        Some(b'{' | b'[') => {
            let (mut depth, mut at) = (0_usize, 0);
            while let Some(&byte) = text.get(at) {
                match byte {
                    b'"' => {
                        at += string_length(&text[at..]);
                        continue;
                    }
                    b'{' | b'[' => depth += 1,
                    b'}' | b']' => depth = depth.saturating_sub(1),
                    _ => {}
                }
                at += 1;
                if depth == 0 {
                    break;
                }
            }
            at
        }
        _ => {
            let ends = |byte: &u8| matches!(byte, b',' | b':' | b']' | b'}');
            let end = text.iter().position(ends);
            // At least 1, so that the reader always advances past an unexpected character.
            end.unwrap_or(text.len()).max(1).min(text.len())
        }
    }
}

/// Returns the length of the string at the start of `text`, including the quotes.
fn string_length(text: &[u8]) -> usize {
    let mut at = 1;
    while let Some(found) = memchr::memchr2(b'"', b'\\', text.get(at..).unwrap_or_default()) {
        at += found;
        if text[at] == b'"' {
            return at + 1;
        }
        at += 2;
    }
    text.len()
}

/// Returns `true` if a quoted string matches a name. Decodes only strings with escapes, and strings
/// that are not ASCII.
fn is_named(quoted: &[u8], name: &Name) -> bool {
    let inside = quoted.strip_prefix(b"\"").unwrap_or(quoted);
    let inside = inside.strip_suffix(b"\"").unwrap_or(inside);
    let wanted = name.text.as_bytes();
    let is_same = match name.is_exact {
        true => inside == wanted,
        false => inside.eq_ignore_ascii_case(wanted),
    };
    let has_escapes = memchr::memchr(b'\\', inside).is_some();
    if !has_escapes && (is_same || inside.is_ascii()) {
        return is_same;
    }
    name.matches(&string(quoted))
}

fn string(quoted: &[u8]) -> Cow<'_, str> {
    let inside = quoted.strip_prefix(b"\"").unwrap_or(quoted);
    let inside = inside.strip_suffix(b"\"").unwrap_or(inside);
    if memchr::memchr(b'\\', inside).is_none() {
        return String::from_utf8_lossy(inside);
    }
    match serde_json::from_slice::<String>(quoted) {
        Ok(said) => Cow::Owned(said),
        Err(_) => String::from_utf8_lossy(inside),
    }
}

fn number(text: &str) -> Value<'static> {
    if let Ok(number) = text.parse() {
        return Value::Integer(number);
    }
    text.parse().map_or(Value::Null, Value::Float)
}

#[cfg(test)]
mod tests;
