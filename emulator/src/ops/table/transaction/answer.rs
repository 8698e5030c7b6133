//! The answer to a transaction, as recorded: one part for each request, or one for the refusal.

use bytes::Bytes;
use http::HeaderMap;
use smalt_protocol::StorageError;
use uuid::Uuid;

use super::request::Served;
use crate::call::Call;
use crate::reply::{Content, Reply};

/// Headers of a part without a document, and of a refusal, in the order recorded.
const BARE: [(&str, &str); 8] = [
    ("x-content-type-options", "X-Content-Type-Options"),
    ("cache-control", "Cache-Control"),
    ("preference-applied", "Preference-Applied"),
    (DATA_SERVICE_VERSION, "DataServiceVersion"),
    ("content-type", "Content-Type"),
    ("location", "Location"),
    ("dataserviceid", "DataServiceId"),
    ("etag", "ETag"),
];
/// Headers of a part with a document, in the order recorded.
const WITH_DOCUMENT: [(&str, &str); 9] = [
    (DATA_SERVICE_VERSION, "DataServiceVersion"),
    ("content-type", "Content-Type"),
    ("x-content-type-options", "X-Content-Type-Options"),
    ("cache-control", "Cache-Control"),
    ("preference-applied", "Preference-Applied"),
    ("location", "Location"),
    ("etag", "ETag"),
    (
        "x-ms-continuation-nextpartitionkey",
        "x-ms-continuation-NextPartitionKey",
    ),
    (
        "x-ms-continuation-nextrowkey",
        "x-ms-continuation-NextRowKey",
    ),
];
const DATA_SERVICE_VERSION: &str = "dataserviceversion";

/// An answer being written.
pub(super) struct Answer {
    boundary: String,
    /// Boundary of the change set, where there is one.
    inner: Option<String>,
    out: Vec<u8>,
}

impl Answer {
    /// The answer to a query.
    pub(super) fn of_query(call: &Call) -> Self {
        Answer {
            boundary: format!("batchresponse_{}", call.fresh_id),
            inner: None,
            out: Vec::new(),
        }
    }

    /// The answer to a change set.
    pub(super) fn of_changes(call: &Call) -> Self {
        let id = call.fresh_id.as_u128() ^ call.request_id.as_u128();
        let inner = format!("changesetresponse_{}", Uuid::from_u128(id));
        let mut answer = Self::of_query(call);
        let start = format!("--{}", answer.boundary);
        answer.line(&start);
        answer.line(&format!("Content-Type: multipart/mixed; boundary={inner}"));
        answer.line("");
        answer.inner = Some(inner);
        answer
    }

    /// Adds the answer to a request.
    ///
    /// # Errors
    /// 500 for a document that is none.
    pub(super) fn push(&mut self, served: Served) -> Result<(), StorageError> {
        let reply = served.reply;
        let document = match reply.content {
            Content::Bytes(bytes) => bytes,
            Content::Empty => Bytes::new(),
            _ => return Err(StorageError::internal("an answer of a batch is streamed")),
        };
        let boundary = self.inner.as_ref().unwrap_or(&self.boundary);
        let start = format!("--{boundary}");
        self.line(&start);
        self.line("Content-Type: application/http");
        self.line("Content-Transfer-Encoding: binary");
        self.line("");
        let reason = reply.status.canonical_reason().unwrap_or_default();
        self.line(&format!("HTTP/1.1 {} {reason}", reply.status.as_u16()));
        if let Some(id) = &served.content_id {
            self.line(&format!("Content-ID: {id}"));
        }
        if reply.status.is_success() && !document.is_empty() {
            self.headers(&WITH_DOCUMENT, &reply.headers);
        } else {
            self.headers(&BARE, &reply.headers);
        }
        self.line("");
        self.out.extend_from_slice(&document);
        self.line("");
        Ok(())
    }

    fn headers(&mut self, order: &[(&str, &str)], headers: &HeaderMap) {
        for (name, shown) in order {
            if *name == DATA_SERVICE_VERSION {
                // Recorded: without a document and a preference nothing newer is needed.
                let is_plain = !headers.contains_key("content-type")
                    && !headers.contains_key("preference-applied");
                let version = if is_plain { "1.0;" } else { "3.0;" };
                self.line(&format!("{shown}: {version}"));
            } else if let Some(value) = headers.get(*name) {
                let value = String::from_utf8_lossy(value.as_bytes());
                self.line(&format!("{shown}: {value}"));
            }
        }
    }

    /// The whole.
    pub(super) fn finish(mut self) -> Reply {
        if let Some(inner) = self.inner.take() {
            self.line(&format!("--{inner}--"));
        }
        let end = format!("--{}--", self.boundary);
        self.line(&end);
        let content_type = format!("multipart/mixed; boundary={}", self.boundary);
        crate::ops::table::answer::empty(202)
            .header("content-type", content_type)
            .content(Content::Bytes(self.out.into()))
    }

    fn line(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
        self.out.extend_from_slice(b"\r\n");
    }
}
