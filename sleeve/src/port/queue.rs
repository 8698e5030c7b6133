//! What queues give and take.

use std::time::Duration;

use smalt_protocol::Timestamp;

use super::Metadata;

/// A message taken from a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueMessage {
    /// Message id.
    pub id: String,
    /// Newest pop receipt; empty for a peeked message.
    pub pop_receipt: String,
    /// When it was put.
    pub inserted: Timestamp,
    /// When it expires ([`Timestamp::MAX`] for never).
    pub expires: Timestamp,
    /// When it becomes visible again; absent for a peeked message.
    pub next_visible: Option<Timestamp>,
    /// How often it was taken.
    pub dequeue_count: u32,
    /// The text as it is stored.
    pub text: String,
}

/// Messages of one get or peek.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueMessages {
    /// The messages.
    pub messages: Vec<QueueMessage>,
    /// The service's `Date`.
    pub server_time: Timestamp,
}

/// A message put or updated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// Message id.
    pub id: String,
    /// The receipt that works from now on.
    pub pop_receipt: String,
    /// When the message is visible next.
    pub next_visible: Timestamp,
}

/// Time to live of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageTtl {
    /// Never expires (-1).
    Never,
    /// Expires after this long; at least a second.
    After(Duration),
}

/// Facts of a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueProperties {
    /// Never lower than the true number of messages.
    pub approximate_count: u64,
    /// Metadata.
    pub metadata: Metadata,
}
