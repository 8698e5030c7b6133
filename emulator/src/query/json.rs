//! JSON values, read where they stand: nothing is built that a query does not ask for.
//!
//! [`scan`] has proved that a record is well formed before a [`Json`] is made of it.

pub mod scan;

use std::borrow::Cow;

use super::sql::Name;
use super::value::Value;

/// Steps for each byte that is passed over in search of a value.
const BYTE_STEPS: usize = 2;

/// The text of one JSON value, without white space around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Json<'a>(&'a [u8]);

impl<'a> Json<'a> {
    /// Of a value that was scanned.
    pub fn new(text: &'a [u8]) -> Self {
        Json(text.trim_ascii())
    }

    /// As it is written.
    pub fn raw(self) -> &'a [u8] {
        self.0
    }

    /// As it is written, as text.
    pub fn text(self) -> Cow<'a, str> {
        String::from_utf8_lossy(self.0)
    }

    /// As a value of the language.
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

    /// Steps of finding a value within it: so much of it is read, all of it where there is none.
    pub fn steps_to(self, found: Option<Json<'_>>) -> usize {
        let end = found.map(|found| found.0.as_ptr_range().end as usize);
        let length = end.and_then(|end| end.checked_sub(self.0.as_ptr() as usize));
        BYTE_STEPS * length.map_or(self.0.len(), |length| length.min(self.0.len()))
    }

    /// The member of a name: the first one that matches.
    pub fn member(self, name: &Name) -> Option<Json<'a>> {
        let mut cursor = Cursor::within(self.0, b'{');
        while let Some((key, value)) = cursor.next_member() {
            if is_named(key, name) {
                return Some(Json(value));
            }
        }
        None
    }

    /// The item at a position.
    pub fn item(self, index: usize) -> Option<Json<'a>> {
        self.items().nth(index)
    }

    /// Members of an object with their names; none of anything else.
    pub fn members(self) -> impl Iterator<Item = (Cow<'a, str>, Json<'a>)> {
        let mut cursor = Cursor::within(self.0, b'{');
        std::iter::from_fn(move || {
            let (name, value) = cursor.next_member()?;
            Some((string(name), Json(value)))
        })
    }

    /// Items of an array; none of anything else.
    pub fn items(self) -> impl Iterator<Item = Json<'a>> {
        let mut cursor = Cursor::within(self.0, b'[');
        std::iter::from_fn(move || cursor.next_value().map(Json))
    }
}

/// What is left of an object or array.
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

    /// The next member: its name in quotes, and its value.
    fn next_member(&mut self) -> Option<(&'a [u8], &'a [u8])> {
        let name = self.next_value()?;
        self.skip(b':');
        Some((name, self.next_value()?))
    }

    /// The next value, past a comma; none before the closing bracket.
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

/// Length of the value that a text begins with.
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
            // A sign in a place of its own would hold the reader up for ever.
            end.unwrap_or(text.len()).max(1).min(text.len())
        }
    }
}

/// Length of the string that a text begins with, quotes included.
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

/// Whether a string in quotes is a name. Most are told apart by their bytes; those with escapes,
/// and bytes that are no UTF-8, are read.
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

/// What a string in quotes says.
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
