//! Records of queues and messages.

use serde::{Deserialize, Serialize};
use smalt_protocol::xml::SignedIdentifier;
use smalt_protocol::{Metadata, Timestamp};

use super::is_default;
use crate::keys::Generation;
use crate::store::PayloadId;

/// A queue, or a deleted one whose name is not free yet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QueueRecord {
    /// Key prefix of the messages; Clear Messages assigns a new one.
    pub generation: Generation,
    /// Metadata set by the client.
    #[serde(default)]
    pub metadata: Metadata,
    /// Stored access policies.
    #[serde(default)]
    pub policies: Vec<SignedIdentifier>,
    /// Time of the deletion, while the name is not free yet.
    #[serde(default)]
    pub deleted_at: Option<Timestamp>,
    /// Whether the queue was created with a version before 2009-09-19: its messages show no dequeue
    /// count.
    #[serde(default, skip_serializing_if = "is_default")]
    pub uncounted: bool,
}

/// A message of a queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageRecord {
    /// When the message was put.
    pub inserted: Timestamp,
    /// When the message expires; [`Timestamp::MAX`] for never.
    pub expires: Timestamp,
    /// When the message is next visible.
    pub visible: Timestamp,
    /// Tick of the put, which orders messages of the same time and the expiry.
    pub sequence: u64,
    /// Position in the delivery order: the tick of the last put, get or update.
    pub place: u64,
    /// Tick from which the current pop receipt is made.
    pub receipt: u64,
    /// How often the message was dequeued.
    pub dequeue_count: u32,
    /// Content of the message.
    pub text: MessageText,
}

/// The text of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MessageText {
    /// Stored in the record, because it is small.
    Inline(String),
    /// Stored in a payload, with its length in bytes.
    Payload(PayloadId, u32),
}
