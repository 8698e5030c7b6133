//! Requests and responses as plain values: what a recording holds and what a target answers.

use std::fmt;

use bytes::Bytes;

/// Headers in the order in which they came, names in lower case.
///
/// A name that occurs twice keeps both values; look-ups see the first. Names as they were written
/// are kept beside them: the service shows those of metadata as it got them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Headers(Vec<(String, String)>, Vec<String>);

impl Headers {
    /// The value of the first header of this name (lower case).
    pub fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(n, _)| n == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Whether there is a header of this name (lower case).
    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Adds a header; the name is put in lower case.
    pub fn push(&mut self, name: &str, value: impl Into<String>) {
        self.0.push((name.to_ascii_lowercase(), value.into()));
        if name.contains(|c: char| c.is_ascii_uppercase()) {
            self.1.push(name.to_owned());
        }
    }

    /// Takes over how other headers of these names were written.
    pub fn write_as(&mut self, other: &Headers) {
        self.1.clone_from(&other.1);
    }

    /// The names that were written with capitals.
    pub fn with_capitals(&self) -> impl Iterator<Item = &str> {
        self.1.iter().map(String::as_str)
    }

    /// Replaces every header of this name by one.
    pub fn set(&mut self, name: &str, value: impl Into<String>) {
        self.remove(name);
        self.push(name, value);
    }

    /// Removes every header of this name (lower case).
    pub fn remove(&mut self, name: &str) {
        self.0.retain(|(n, _)| n != name);
    }

    /// Names and values in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(n, v)| (n.as_str(), v.as_str()))
    }

    /// The values in order, to be changed in place.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&str, &mut String)> {
        self.0.iter_mut().map(|(n, v)| (n.as_str(), v))
    }
}

impl<N: AsRef<str>, V: Into<String>> FromIterator<(N, V)> for Headers {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(pairs: I) -> Self {
        let mut headers = Headers::default();
        for (name, value) in pairs {
            headers.push(name.as_ref(), value);
        }
        headers
    }
}

/// One request: an absolute URL exactly as it was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// `GET`, `PUT`, `MERGE`, ...
    pub method: String,
    /// Absolute, with the percent-encoding that the client chose.
    pub url: String,
    /// Without `Host`.
    pub headers: Headers,
    /// Empty when there was none.
    pub body: Bytes,
}

/// One response.
#[derive(Clone, PartialEq, Eq)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// All headers.
    pub headers: Headers,
    /// Empty when there was none.
    pub body: Bytes,
}

impl Response {
    /// The error code: the header `x-ms-error-code`, or `Code` / `code` of the body.
    pub fn error_code(&self) -> Option<String> {
        if self.status < 300 {
            return None;
        }
        if let Some(code) = self.headers.get("x-ms-error-code") {
            return Some(code.to_owned());
        }
        let text = std::str::from_utf8(&self.body).ok()?;
        between(text, "<Code>", "</Code>")
            .or_else(|| between(text, "<code>", "</code>"))
            .or_else(|| between(text, "<m:code>", "</m:code>"))
            .or_else(|| json_code(text))
    }
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Response")
            .field("status", &self.status)
            .field("headers", &self.headers)
            .field("body", &String::from_utf8_lossy(&self.body))
            .finish()
    }
}

fn between(text: &str, open: &str, close: &str) -> Option<String> {
    let from = text.find(open)? + open.len();
    let len = text[from..].find(close)?;
    Some(text[from..from + len].to_owned())
}

/// `{"odata.error":{"code":"ResourceNotFound",...}}`.
fn json_code(text: &str) -> Option<String> {
    let value: serde_json::Value = serde_json::from_str(text).ok()?;
    let code = value.get("odata.error")?.get("code")?.as_str()?;
    Some(code.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_code_in_header_xml_and_json() {
        let answer = |headers: &[(&str, &str)], body: &str| Response {
            status: 404,
            headers: headers.iter().copied().collect(),
            body: Bytes::from(body.to_owned()),
        };
        for (response, expected) in [
            (
                answer(&[("X-Ms-Error-Code", "A")], "<Code>B</Code>"),
                Some("A"),
            ),
            (answer(&[], "<Error><Code>B</Code></Error>"), Some("B")),
            (answer(&[], r#"{"odata.error":{"code":"C"}}"#), Some("C")),
            (answer(&[], "<m:error><m:code>D</m:code>"), Some("D")),
            (answer(&[], "nothing"), None),
        ] {
            assert_eq!(response.error_code().as_deref(), expected);
        }
    }
}
