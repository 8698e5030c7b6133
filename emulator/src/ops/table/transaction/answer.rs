//! The response to a transaction, as recorded: one part for each request, or one for the error.

use http::HeaderMap;
use smalt_protocol::StorageError;
use smalt_protocol::table::batch;
use uuid::Uuid;

use super::request::Served;
use crate::call::Call;
use crate::ops::table::answer;
use crate::reply::{Content, Reply};

/// Headers of a part without a document, and of an error, in the recorded order.
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
/// Headers of a part with a document, in the recorded order.
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

pub(super) struct Answer {
    boundary: String,
    /// Boundary of the change set, if there is one.
    inner: Option<String>,
    parts: Vec<batch::Answer>,
}

impl Answer {
    pub(super) fn of_query(call: &Call) -> Self {
        Answer {
            boundary: format!("batchresponse_{}", call.fresh_id),
            inner: None,
            parts: Vec::new(),
        }
    }

    pub(super) fn of_changes(call: &Call) -> Self {
        let id = call.fresh_id.as_u128() ^ call.request_id.as_u128();
        Answer {
            inner: Some(format!("changesetresponse_{}", Uuid::from_u128(id))),
            ..Self::of_query(call)
        }
    }

    /// Adds the response to a request.
    ///
    /// # Errors
    /// 500 for an invalid document.
    pub(super) fn push(&mut self, served: Served) -> Result<(), StorageError> {
        let reply = served.reply;
        let body = match reply.content {
            Content::Bytes(bytes) => bytes.to_vec(),
            Content::Empty => Vec::new(),
            _ => return Err(StorageError::internal("an answer of a batch is streamed")),
        };
        let has_document = reply.status.is_success() && !body.is_empty();
        let order: &[(&str, &str)] = if has_document { &WITH_DOCUMENT } else { &BARE };
        let content_id = served.content_id.map(|id| ("Content-ID".to_owned(), id));
        let headers = order
            .iter()
            .filter_map(|(name, shown)| Some(((*shown).to_owned(), value(name, &reply.headers)?)));
        self.parts.push(batch::Answer {
            status: reply.status.as_u16(),
            headers: content_id.into_iter().chain(headers).collect(),
            body,
        });
        Ok(())
    }

    pub(super) fn finish(self) -> Reply {
        let bytes = match &self.inner {
            Some(inner) => batch::write_changes(&self.boundary, inner, &self.parts),
            None => match self.parts.first() {
                Some(part) => batch::write_query(&self.boundary, part),
                None => Vec::new(),
            },
        };
        answer::empty(202)
            .header("content-type", batch::multipart(&self.boundary))
            .content(Content::Bytes(bytes.into()))
    }
}

fn value(name: &str, headers: &HeaderMap) -> Option<String> {
    if name == DATA_SERVICE_VERSION {
        // Recorded: a response without a document and a preference needs no newer version.
        let is_plain =
            !headers.contains_key("content-type") && !headers.contains_key("preference-applied");
        return Some(if is_plain { "1.0;" } else { "3.0;" }.to_owned());
    }
    let value = headers.get(name)?;
    Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
}
