//! Storage notifications: the way back of the operation context, and who gets to see it (G7-G9).
//!
//! A handler reads a notification and answers with a [`Response`]; [`Response::dispatch`] decides
//! last. The answer to a muted operation is not published, and neither is one whose handler sets
//! [`Response::do_not_publish`].
//!
//! ```
//! use smalt_sleeve::notification::{self, Response};
//!
//! let event = br#"{"id": "1", "eventType": "Microsoft.Storage.BlobCreated",
//!     "data": {"url": "https://a.blob.core.windows.net/out/film.mp4", "eTag": "0x8D",
//!              "clientRequestId": "{\"muted\":true,\"job\":7}"}}"#;
//! for notification in notification::read(event)? {
//!     let response = notification.response().ok_or("neither created nor deleted")?;
//!     assert_eq!(response.operation_context["job"], 7);
//!     assert!(!response.dispatch(|_| unreachable!("the operation is muted")));
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::port::{CallContext, Tag};

const CREATED: &str = "Microsoft.Storage.BlobCreated";
const DELETED: &str = "Microsoft.Storage.BlobDeleted";

/// A document that is not an event of Event Grid or a list of them.
#[derive(Debug, thiserror::Error)]
#[error("not an event of Event Grid, in its own schema or as CloudEvents 1.0: {0}")]
pub struct NotificationError(#[from] serde_json::Error);

/// What happened to a blob, and in which context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notification {
    /// Id of the event; deliveries of the same event have the same.
    pub id: String,
    /// Type of the event, such as `Microsoft.Storage.BlobCreated`.
    pub event_type: String,
    /// URL of the blob.
    pub url: String,
    /// ETag of the blob after the operation, in the form of headers; a deleted blob has none.
    pub etag: Option<Tag>,
    /// The operation context of the operation. That of an outside origin is a GUID or empty (G6).
    pub context: CallContext,
}

/// The wire form, common to both schemas as far as it is read.
#[derive(Deserialize)]
struct Event {
    id: String,
    #[serde(alias = "eventType")]
    r#type: String,
    data: Data,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Data {
    url: String,
    e_tag: Option<String>,
    client_request_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Document {
    Batch(Vec<Event>),
    One(Box<Event>),
}

/// Reads a delivery: one event, or a list of them, in Event Grid's schema or as CloudEvents 1.0.
///
/// # Errors
/// [`NotificationError`] if it is neither.
pub fn read(document: &[u8]) -> Result<Vec<Notification>, NotificationError> {
    Ok(match serde_json::from_slice(document)? {
        Document::Batch(events) => events.into_iter().map(Notification::from).collect(),
        Document::One(event) => vec![(*event).into()],
    })
}

impl From<Event> for Notification {
    fn from(event: Event) -> Self {
        let data = event.data;
        let etag = data.e_tag.filter(|etag| !etag.is_empty());
        Notification {
            id: event.id,
            event_type: event.r#type,
            url: data.url,
            etag: etag.map(|etag| Tag::from_text(&etag)),
            context: CallContext::safe(&data.client_request_id.unwrap_or_default()),
        }
    }
}

impl Notification {
    /// Answers a created or deleted blob; `None` for other events.
    pub fn response(&self) -> Option<Response> {
        let event_type = match self.event_type.as_str() {
            CREATED => "response.blob.created.success",
            DELETED => "response.blob.deleted.success",
            _ => return None,
        };
        Some(Response {
            event_type: event_type.to_owned(),
            blob_uri: self.url.clone(),
            operation_context: self.context.json(),
            do_not_publish: self.context.muted,
        })
    }
}

/// What a handler answers to external systems.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Response {
    /// Type of the answer.
    pub event_type: String,
    /// URL of the blob.
    pub blob_uri: String,
    /// The external system's own context, without the mark of muting.
    pub operation_context: Map<String, Value>,
    /// Whether the answer stays inside.
    #[serde(skip)]
    pub do_not_publish: bool,
}

impl Response {
    /// Decides finally whether the answer is published, and returns whether it was.
    pub fn dispatch(&self, publish: impl FnOnce(&Self)) -> bool {
        if !self.do_not_publish {
            publish(self);
        }
        !self.do_not_publish
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn event(client_request_id: &str, deleted: bool) -> Value {
        let kind = if deleted { DELETED } else { CREATED };
        json!({
            "topic": "/subscriptions/s/providers/Microsoft.Storage/storageAccounts/a",
            "subject": "/blobServices/default/containers/out/blobs/film.mp4",
            "eventType": kind,
            "eventTime": "2026-11-21T10:00:00.0000000Z",
            "id": "831e1650-001e-001b-66ab-eeb76e069631",
            "data": {
                "api": "PutBlockList",
                "clientRequestId": client_request_id,
                "requestId": "831e1650-001e-001b-66ab-eeb76e000000",
                "eTag": "0x8D4BCC2E4835CD0",
                "contentType": "video/mp4",
                "contentLength": 524_288,
                "blobType": "BlockBlob",
                "url": "https://a.blob.core.windows.net/out/film.mp4",
                "sequencer": "00000000000004420000000000028963",
                "storageDiagnostics": { "batchId": "b68529f3-68cd-4744-baa4-3c0498ec19f0" },
            },
            "dataVersion": "",
            "metadataVersion": "1",
        })
    }

    fn published(response: &Response) -> usize {
        let mut count = 0;
        assert_eq!(response.dispatch(|_| count += 1), count == 1);
        count
    }

    /// G8, G9: the handlers mute what its caller muted, the dispatcher decides last.
    #[test]
    fn muted_operations_are_not_published() {
        let table = [
            (r#"{"job":7}"#, json!({ "job": 7 }), 1),
            (r#"{"muted":true,"job":7}"#, json!({ "job": 7 }), 0),
            ("8a1c", json!({ "id": "8a1c" }), 1),
            (r#"{"id":"8a1c","muted":true}"#, json!({ "id": "8a1c" }), 0),
            ("", json!({}), 1),
        ];
        for (id, context, count) in table {
            for deleted in [false, true] {
                let text = event(id, deleted).to_string();
                let [notification] = &read(text.as_bytes()).unwrap()[..] else {
                    panic!("one event");
                };
                let mut response = notification.response().unwrap();
                assert_eq!(published(&response), count, "{id}");
                assert_eq!(Value::from(response.operation_context.clone()), context);
                response.do_not_publish = true;
                assert_eq!(published(&response), 0, "a handler may mute it, too");
            }
        }
    }

    #[test]
    fn both_schemas_and_batches_are_read() {
        let mut cloud = event("a", false);
        let fields = cloud.as_object_mut().unwrap();
        let kind = fields.remove("eventType").unwrap();
        fields.insert("type".to_owned(), kind);
        fields.insert("specversion".to_owned(), "1.0".into());
        let batch = json!([event("a", false), cloud]).to_string();
        let both = read(batch.as_bytes()).unwrap();
        assert_eq!(both[0], both[1]);
        assert_eq!(both[0].etag, Some(Tag("\"0x8D4BCC2E4835CD0\"".to_owned())));
        let mut other = both[0].clone();
        other.event_type = "Microsoft.Storage.BlobTierChanged".to_owned();
        assert_eq!(other.response(), None);
        assert!(read(b"{}").unwrap_err().to_string().contains("CloudEvents"));
    }
}
