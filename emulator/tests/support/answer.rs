//! What a service answered.

use bytes::Bytes;
use http::{HeaderMap, Response};
use http_body_util::BodyExt;
use serde_json::Value;
use smalt::Body;

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    /// Reads a response to its end.
    pub(crate) async fn of(response: Response<Body>) -> Self {
        let (head, body) = response.into_parts();
        Answer {
            status: head.status.as_u16(),
            headers: head.headers,
            body: body.collect().await.unwrap().to_bytes(),
        }
    }

    /// Returns a header's value; empty when it is missing.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |v| v.to_str().unwrap())
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.headers.contains_key(name)
    }

    /// Returns the status, and the error code if there is one: `404 BlobNotFound`.
    pub(crate) fn outcome(&self) -> String {
        let code = match self.header("x-ms-error-code") {
            "" if self.status >= 400 => self.code_in_body().unwrap_or_default(),
            code => code,
        };
        format!("{} {code}", self.status).trim_end().to_owned()
    }

    /// Returns the error code of the Table service, which has it in the body only.
    fn code_in_body(&self) -> Option<&str> {
        let text = std::str::from_utf8(&self.body).ok()?;
        let (_, rest) = text
            .split_once("<m:code>")
            .or_else(|| text.split_once(r#"{"odata.error":{"code":""#))?;
        rest.split(['<', '"']).next()
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// Returns the raw texts of all XML elements of this name.
    pub(crate) fn elements(&self, name: &str) -> Vec<&str> {
        let start = format!("<{name}>");
        let parts = self.text().split(&start).skip(1);
        parts.map(|part| part.split('<').next().unwrap()).collect()
    }
}
