//! Requests and answers as plain values.

use std::fmt;

use bytes::Bytes;
use http_body::Body;
use http_body_util::BodyExt as _;

use super::WireError;

/// Headers in their original order, with names in lower case.
///
/// Repeated names keep all values; look-ups return the first. The original spelling of names with
/// capitals is kept as well, because the service returns metadata names as it received them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Headers(Vec<(String, String)>, Vec<String>);

impl Headers {
    /// Returns the first value of a header; ignores case.
    pub fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(n, _)| n.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// Whether a header exists; ignores case.
    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Adds a header, with its name in lower case.
    pub fn push(&mut self, name: &str, value: impl Into<String>) {
        self.0.push((name.to_ascii_lowercase(), value.into()));
        if name.contains(|c: char| c.is_ascii_uppercase()) {
            self.1.push(name.to_owned());
        }
    }

    /// Copies the spelling of names with capitals from another set of headers.
    pub fn write_as(&mut self, other: &Headers) {
        self.1.clone_from(&other.1);
    }

    /// Returns the names with capitals in their original spelling.
    pub fn with_capitals(&self) -> impl Iterator<Item = &str> {
        self.1.iter().map(String::as_str)
    }

    /// Replaces all headers of this name by one.
    pub fn set(&mut self, name: &str, value: impl Into<String>) {
        self.remove(name);
        self.push(name, value);
    }

    /// Removes all headers of this name, which must be in lower case.
    pub fn remove(&mut self, name: &str) {
        self.0.retain(|(n, _)| n != name);
    }

    /// Iterates over names and values in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(n, v)| (n.as_str(), v.as_str()))
    }

    /// Returns names and values as owned pairs, in order.
    pub fn pairs(&self) -> Vec<(String, String)> {
        self.0.clone()
    }

    /// Iterates over names and mutable values in order.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&str, &mut String)> {
        self.0.iter_mut().map(|(n, v)| (n.as_str(), v))
    }
}

impl From<&http::HeaderMap> for Headers {
    fn from(map: &http::HeaderMap) -> Self {
        let text =
            |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        map.iter()
            .map(|(name, v)| (name.as_str(), text(v)))
            .collect()
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

/// A request, with an absolute URL exactly as it was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// HTTP method: `GET`, `PUT`, `MERGE`, ...
    pub method: String,
    /// Absolute URL with the client's percent-encoding.
    pub url: String,
    /// Headers without `Host`.
    pub headers: Headers,
    /// Body; empty when there was none.
    pub body: Bytes,
}

impl Request {
    /// Returns a builder of the `http` crate with method, `uri` and headers, without the body.
    pub fn builder(&self, uri: &str) -> Result<http::request::Builder, WireError> {
        let fail = |e: &dyn fmt::Display| WireError::request(format!("{e}: {}", self.url));
        let uri: http::Uri = uri.parse().map_err(|e| fail(&e))?;
        let method: http::Method = self.method.parse().map_err(|e| fail(&e))?;
        let mut builder = http::Request::builder().method(method).uri(uri);
        for (name, value) in self.headers.iter() {
            let value = http::HeaderValue::from_bytes(value.as_bytes()).map_err(|e| fail(&e))?;
            builder = builder.header(name, value);
        }
        Ok(builder)
    }
}

/// A completely read answer.
#[derive(Clone, PartialEq, Eq)]
pub struct Answer {
    /// HTTP status code.
    pub status: u16,
    /// All headers.
    pub headers: Headers,
    /// Body; empty when there was none.
    pub body: Bytes,
}

impl Answer {
    /// Reads an answer of the `http` crate completely.
    pub async fn read<B>(answer: http::Response<B>) -> Result<Answer, WireError>
    where
        B: Body<Data = Bytes>,
        B::Error: fmt::Display,
    {
        let (head, body) = answer.into_parts();
        let body = body.collect().await.map_err(WireError::call)?;
        Ok(Answer {
            status: head.status.as_u16(),
            headers: Headers::from(&head.headers),
            body: body.to_bytes(),
        })
    }

    /// Returns the value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)
    }

    /// Returns the answer if it has this status.
    pub fn expect(self, status: u16) -> Result<Self, WireError> {
        if self.status == status {
            return Ok(self);
        }
        let text = String::from_utf8_lossy(&self.body);
        let summary = self.summary();
        Err(WireError::Call(format!(
            "{summary} in place of {status}: {text}"
        )))
    }

    /// Returns status and error code for display.
    pub fn summary(&self) -> String {
        let code = self.header("x-ms-error-code").unwrap_or_default();
        format!("{} {code}", self.status).trim_end().to_owned()
    }

    /// Returns the error code: the header `x-ms-error-code`, or `Code` / `code` of the body.
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

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answer")
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

/// Returns the code in `{"odata.error":{"code":"ResourceNotFound",...}}`.
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
        let answer = |headers: &[(&str, &str)], body: &str| Answer {
            status: 404,
            headers: headers.iter().copied().collect(),
            body: Bytes::from(body.to_owned()),
        };
        for (answer, expected) in [
            (
                answer(&[("X-Ms-Error-Code", "A")], "<Code>B</Code>"),
                Some("A"),
            ),
            (answer(&[], "<Error><Code>B</Code></Error>"), Some("B")),
            (answer(&[], r#"{"odata.error":{"code":"C"}}"#), Some("C")),
            (answer(&[], "<m:error><m:code>D</m:code>"), Some("D")),
            (answer(&[], "nothing"), None),
        ] {
            assert_eq!(answer.error_code().as_deref(), expected);
        }
    }
}
