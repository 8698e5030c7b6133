//! Records of event subscriptions and of events that are not delivered yet.

use serde::{Deserialize, Serialize};
use smalt_protocol::Timestamp;
use uuid::Uuid;

use super::is_default;
use crate::keys::Generation;
use crate::rules::events::EventKind;
use crate::rules::subscription::Subscription;

/// An event subscription.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SubscriptionRecord {
    /// Distinguishes successive subscriptions of one name: the tick of the creation.
    pub generation: Generation,
    /// The settings.
    pub settings: Subscription,
}

/// An event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EventRecord {
    /// `id`, unique to the event.
    pub id: Uuid,
    /// The account of the blob.
    pub account: String,
    /// `subject`: the path of the blob.
    pub subject: String,
    /// `eventType`.
    pub kind: EventKind,
    /// `eventTime`.
    pub at: Timestamp,
    /// `data`.
    pub data: EventData,
}

/// The `data` of an event, with the names of the wire.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EventData {
    /// The operation that raised the event.
    pub api: String,
    /// `x-ms-client-request-id`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub client_request_id: Option<String>,
    /// `x-ms-request-id`.
    pub request_id: Uuid,
    /// `ETag` of the blob, without quotes.
    #[serde(default, skip_serializing_if = "is_default")]
    pub e_tag: Option<String>,
    /// `Content-Type` of the blob.
    #[serde(default, skip_serializing_if = "is_default")]
    pub content_type: Option<String>,
    /// Length of the blob in bytes.
    #[serde(default, skip_serializing_if = "is_default")]
    pub content_length: Option<u64>,
    /// Length of a file of a hierarchical account when the operation ended.
    #[serde(default, skip_serializing_if = "is_default")]
    pub content_offset: Option<u64>,
    /// `BlockBlob`, `PageBlob` or `AppendBlob`; `None` for a directory and a rename.
    #[serde(default, skip_serializing_if = "is_default")]
    pub blob_type: Option<String>,
    /// Tier of the blob; `Default` if none was set.
    #[serde(default, skip_serializing_if = "is_default")]
    pub access_tier: Option<String>,
    /// Tier before a change.
    #[serde(default, skip_serializing_if = "is_default")]
    pub previous_tier: Option<String>,
    /// URL of the blob; `None` for a rename.
    #[serde(default, skip_serializing_if = "is_default")]
    pub url: Option<String>,
    /// URL before a rename.
    #[serde(default, skip_serializing_if = "is_default")]
    pub source_url: Option<String>,
    /// URL after a rename.
    #[serde(default, skip_serializing_if = "is_default")]
    pub destination_url: Option<String>,
    /// Whether a deletion of a directory may delete what it holds.
    #[serde(default, skip_serializing_if = "is_default")]
    pub recursive: Option<bool>,
    /// Orders the events of one blob by comparison of strings.
    pub sequencer: String,
    /// For diagnosis only.
    pub storage_diagnostics: Diagnostics,
}

/// The `storageDiagnostics` of an event.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Diagnostics {
    /// `batchId`.
    pub batch_id: Uuid,
}

/// An event that is to be delivered to one subscription.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeliveryRecord {
    /// The event.
    pub event: EventRecord,
    /// When the next attempt is due.
    pub due: Timestamp,
    /// Number of attempts that failed.
    #[serde(default, skip_serializing_if = "is_default")]
    pub attempts: u32,
    /// Time and outcome of the last attempt; `None` before the first.
    #[serde(default, skip_serializing_if = "is_default")]
    pub last: Option<(Timestamp, String)>,
    /// Why the event was given up; it then waits for its place among the dead letters.
    #[serde(default, skip_serializing_if = "is_default")]
    pub given_up: Option<String>,
    /// Whether later events of the blob may be delivered before.
    #[serde(default, skip_serializing_if = "is_default")]
    pub is_overtaken: bool,
}

/// An event of a change that completes later.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WaitingRecord {
    /// The event, described as of the start of the change.
    pub event: EventRecord,
    /// When the change completes.
    pub due: Timestamp,
}

impl EventRecord {
    /// Returns the path of the blob, `/account/container/blob`, as in the path of a request.
    pub fn path(&self) -> String {
        let path = self.subject.strip_prefix(SUBJECT).unwrap_or(&self.subject);
        format!("/{}/{}", self.account, path.replacen("/blobs/", "/", 1))
    }
}

/// Beginning of every subject.
pub const SUBJECT: &str = "/blobServices/default/containers/";
