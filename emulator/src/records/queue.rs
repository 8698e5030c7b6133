//! Queues and messages.

use serde::{Deserialize, Serialize};
use smalt_protocol::xml::SignedIdentifier;
use smalt_protocol::{Metadata, Timestamp};

use super::is_default;
use crate::keys::Generation;
use crate::store::PayloadId;

/// A queue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QueueRecord {
    /// What its messages are keyed by; Clear Messages gives it a new one.
    pub generation: Generation,
    /// User metadata.
    #[serde(default)]
    pub metadata: Metadata,
    /// Stored access policies.
    #[serde(default)]
    pub policies: Vec<SignedIdentifier>,
    /// Set when it was deleted and its name is not free yet.
    #[serde(default)]
    pub deleted_at: Option<Timestamp>,
    /// Made under a version before 2009-09-19: its messages do not show how often they were taken.
    #[serde(default, skip_serializing_if = "is_default")]
    pub uncounted: bool,
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageRecord {
    /// When it was put.
    pub inserted: Timestamp,
    /// When it expires; [`Timestamp::MAX`] for never.
    pub expires: Timestamp,
    /// When it is visible (again).
    pub visible: Timestamp,
    /// Tick of the put: its place among messages of one time, and in the order of expiry.
    pub sequence: u64,
    /// Place in the order of delivery: the tick of the last put, get or update.
    pub place: u64,
    /// Tick that the current pop receipt was made of.
    pub receipt: u64,
    /// How often it was taken.
    pub dequeue_count: u32,
    /// Text.
    pub text: MessageText,
}

/// The text of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MessageText {
    /// Small enough for the record.
    Inline(String),
    /// In a payload of this many bytes.
    Payload(PayloadId, u32),
}
