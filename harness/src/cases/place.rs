//! Where in an answer a value is: its status, a header, an element of its document, its body.

use serde_json::Value;
use smalt_protocol::xml::read::read_document;

use crate::wire::Answer;

/// Maximum number of elements in a document.
const ELEMENTS_MAX: usize = 100_000;

/// A location in an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// The status code.
    Status,
    /// The error code.
    Code,
    /// A header, by its name in lower case.
    Header(String),
    /// Elements of the document: `/BlockList/CommittedBlocks/Block[2]/Name`. In JSON, members of an
    /// object, and those of a list by number: `/value[2]/TableName`. `[*]` means all.
    Element(String),
    /// The whole body.
    Body,
    /// The statuses of the parts of an answer to a batch.
    Parts,
}

impl Place {
    /// Parses a place as written in cases.
    pub fn parse(text: &str) -> Place {
        match text {
            "body" => Place::Body,
            "parts" => Place::Parts,
            "status" => Place::Status,
            "code" => Place::Code,
            _ if text.starts_with('/') => Place::Element(text.to_owned()),
            _ => Place::Header(text.to_ascii_lowercase()),
        }
    }

    /// Returns the value in an answer.
    pub fn value(&self, answer: &Answer) -> Option<String> {
        match self {
            Place::Status => Some(answer.status.to_string()),
            Place::Code => answer.error_code(),
            Place::Header(name) => answer.headers.get(name).map(str::to_owned),
            Place::Element(_) | Place::Parts => self.values(answer).into_iter().next(),
            Place::Body => Some(String::from_utf8_lossy(&answer.body).into_owned()),
        }
    }

    /// Returns all values in an answer.
    pub fn values(&self, answer: &Answer) -> Vec<String> {
        match self {
            Place::Element(path) => elements(answer, path),
            Place::Parts => {
                let body = String::from_utf8_lossy(&answer.body);
                let lines = body
                    .lines()
                    .filter_map(|line| line.strip_prefix("HTTP/1.1 "));
                lines.map(|line| line.chars().take(3).collect()).collect()
            }
            place => place.value(answer).into_iter().collect(),
        }
    }

    /// Counts the values in an answer: elements, headers, or bytes of the body.
    pub fn count(&self, answer: &Answer) -> usize {
        match self {
            Place::Status => 1,
            Place::Code => usize::from(answer.error_code().is_some()),
            Place::Header(name) => answer.headers.iter().filter(|(n, _)| n == name).count(),
            Place::Element(_) | Place::Parts => self.values(answer).len(),
            Place::Body => answer.body.len(),
        }
    }
}

/// Returns the contents of the elements at this path. A step without a number means the first
/// element of that name, except for the last step, which means all.
fn elements(answer: &Answer, path: &str) -> Vec<String> {
    if answer.body.starts_with(b"{") {
        return members(&answer.body, path);
    }
    let Ok(root) = read_document(&answer.body, ELEMENTS_MAX) else {
        return Vec::new();
    };
    let mut steps = steps(path);
    if steps.next().is_none_or(|(name, _)| name != root.name) {
        return Vec::new();
    }
    let mut found = vec![&root];
    for (name, which) in steps {
        let named = found.into_iter().flat_map(|parent| {
            let children = parent.children.iter();
            which.keep(children.filter(|child| child.name == name).collect())
        });
        found = named.collect();
    }
    found.iter().map(|found| found.text.to_string()).collect()
}

/// Returns the members at this path of a JSON document: strings as they are, everything else as
/// JSON.
fn members(body: &[u8], path: &str) -> Vec<String> {
    let Ok(root) = serde_json::from_slice::<Value>(body) else {
        return Vec::new();
    };
    let mut found = vec![&root];
    for (name, which) in steps(path) {
        let named = found.into_iter().filter_map(|parent| parent.get(name));
        let named = named.flat_map(|named| match named {
            Value::Array(items) => which.keep(items.iter().collect()),
            named => which.keep(vec![named]),
        });
        found = named.collect();
    }
    let text = |value: &&Value| {
        value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned)
    };
    found.iter().map(text).collect()
}

/// Which of the elements with the same name a step means.
#[derive(Clone, Copy)]
enum Which {
    First,
    Every,
    /// The element with this number, from 1.
    Nth(usize),
}

impl Which {
    fn keep<T>(self, found: Vec<T>) -> Vec<T> {
        match self {
            Which::First => found.into_iter().take(1).collect(),
            Which::Every => found,
            Which::Nth(number) => found.into_iter().skip(number - 1).take(1).collect(),
        }
    }
}

/// Returns the steps of a path. A last step without a number means all elements.
fn steps(path: &str) -> impl Iterator<Item = (&str, Which)> {
    let names: Vec<&str> = path.split('/').skip(1).collect();
    let last = names.len().saturating_sub(1);
    let steps = names.into_iter().map(step).enumerate();
    steps.map(move |(at, (name, which))| match which {
        Which::First if at == last => (name, Which::Every),
        which => (name, which),
    })
}

/// Parses `Block[2]` and `Block[*]` into the name and which of the elements.
fn step(text: &str) -> (&str, Which) {
    let numbered = text.strip_suffix(']').and_then(|text| text.split_once('['));
    match numbered {
        Some((name, "*")) => (name, Which::Every),
        Some((name, number)) => {
            let number = number.parse().ok().filter(|number| *number > 0);
            (name, number.map_or(Which::First, Which::Nth))
        }
        None => (text, Which::First),
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[test]
    fn values_are_found_at_their_places() {
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
        assert_eq!(Place::parse("/value[*]/N").values(&json), ["one", "two"]);
        assert_eq!(Place::parse("/L/B[*]/N").values(&answer), ["one", "two"]);
        assert_eq!(Place::parse("/L/B").count(&answer), 2);
        assert_eq!(Place::parse("body").count(&answer), 45);
        assert_eq!(Place::parse("etag").count(&answer), 1);
    }
}
