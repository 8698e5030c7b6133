//! Where in an answer a value stands: its status, a header, an element of its document, its body.

use serde_json::Value;
use smalt_protocol::xml::read::{Element, read_document};

use crate::wire::Answer;

/// Elements of the largest document that a scenario asks for.
const ELEMENTS_MAX: usize = 100_000;

/// A place in an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// The status.
    Status,
    /// The error code.
    Code,
    /// A header, by its name in lower case.
    Header(String),
    /// Elements of the document: `/BlockList/CommittedBlocks/Block[2]/Name`. In JSON the members of
    /// an object, those of a list by their number: `/value[2]/TableName`.
    Element(String),
    /// The whole body.
    Body,
}

impl Place {
    /// Reads a place as scenarios write it.
    pub fn parse(text: &str) -> Place {
        match text {
            "body" => Place::Body,
            "status" => Place::Status,
            "code" => Place::Code,
            _ if text.starts_with('/') => Place::Element(text.to_owned()),
            _ => Place::Header(text.to_ascii_lowercase()),
        }
    }

    /// The value that stands there.
    pub fn value(&self, answer: &Answer) -> Option<String> {
        match self {
            Place::Status => Some(answer.status.to_string()),
            Place::Code => answer.error_code(),
            Place::Header(name) => answer.headers.get(name).map(str::to_owned),
            Place::Element(path) => elements(answer, path).into_iter().next(),
            Place::Body => Some(String::from_utf8_lossy(&answer.body).into_owned()),
        }
    }

    /// How many values stand there: elements, headers, or bytes of the body.
    pub fn count(&self, answer: &Answer) -> usize {
        match self {
            Place::Status => 1,
            Place::Code => usize::from(answer.error_code().is_some()),
            Place::Header(name) => answer.headers.iter().filter(|(n, _)| n == name).count(),
            Place::Element(path) => elements(answer, path).len(),
            Place::Body => answer.body.len(),
        }
    }
}

/// The texts of the elements of this path. A step without a number means the first of its name,
/// but for the last, which means all.
fn elements(answer: &Answer, path: &str) -> Vec<String> {
    if answer.body.starts_with(b"{") {
        return members(&answer.body, path);
    }
    let Ok(root) = read_document(&answer.body, ELEMENTS_MAX) else {
        return Vec::new();
    };
    let mut steps = path.split('/').skip(1).map(step);
    if steps.next().is_none_or(|(name, _)| name != root.name) {
        return Vec::new();
    }
    let mut found = vec![&root];
    for (name, number) in steps {
        let Some(parent) = found.first() else {
            return Vec::new();
        };
        let named: Vec<&Element<'_>> = parent.children.iter().filter(|c| c.name == name).collect();
        found = match number {
            Some(number) => named.get(number - 1).copied().into_iter().collect(),
            None => named,
        };
    }
    found.iter().map(|found| found.text.to_string()).collect()
}

/// The same of JSON: texts as they are, everything else as JSON writes it.
fn members(body: &[u8], path: &str) -> Vec<String> {
    let Ok(root) = serde_json::from_slice::<Value>(body) else {
        return Vec::new();
    };
    let mut found = vec![&root];
    for (name, number) in path.split('/').skip(1).map(step) {
        let named = found.first().and_then(|parent| parent.get(name));
        let all: Vec<&Value> = match named {
            Some(Value::Array(items)) => items.iter().collect(),
            named => named.into_iter().collect(),
        };
        found = match number {
            Some(number) => all.get(number - 1).copied().into_iter().collect(),
            None => all,
        };
    }
    let text = |value: &&Value| {
        value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned)
    };
    found.iter().map(text).collect()
}

/// `Block[2]` as its name and its number, which counts from 1.
fn step(text: &str) -> (&str, Option<usize>) {
    let numbered = text.strip_suffix(']').and_then(|text| text.split_once('['));
    match numbered {
        Some((name, number)) => (name, number.parse().ok().filter(|number| *number > 0)),
        None => (text, None),
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    /// A place finds what stands there, and nothing where nothing stands.
    #[test]
    fn places_are_found() {
        let answer = Answer {
            status: 409,
            headers: [("ETag", "\"1\""), ("x-ms-error-code", "A")]
                .into_iter()
                .collect(),
            body: Bytes::from_static(b"<L><B><N>one</N></B><B><N>two</N></B><E/></L>"),
        };
        let value = |text| Place::parse(text).value(&answer);
        for (text, expected) in [
            ("status", Some("409")),
            ("code", Some("A")),
            ("ETag", Some("\"1\"")),
            ("last-modified", None),
            ("/L/B/N", Some("one")),
            ("/L/B[2]/N", Some("two")),
            ("/L/B[3]/N", None),
            ("/L/E", Some("")),
            ("/M/B", None),
        ] {
            assert_eq!(value(text).as_deref(), expected, "{text}");
        }
        let json = Answer {
            body: Bytes::from_static(br#"{"a.b":{"c":1},"value":[{"N":"one"},{"N":"two"}]}"#),
            ..answer.clone()
        };
        let value = |text| Place::parse(text).value(&json);
        assert_eq!(value("/a.b/c").as_deref(), Some("1"));
        assert_eq!(value("/value[2]/N").as_deref(), Some("two"));
        assert_eq!(value("/value/M"), None);
        assert_eq!(Place::parse("/value").count(&json), 2);
        assert_eq!(Place::parse("/L/B").count(&answer), 2);
        assert_eq!(Place::parse("body").count(&answer), 45);
        assert_eq!(Place::parse("etag").count(&answer), 1);
    }
}
