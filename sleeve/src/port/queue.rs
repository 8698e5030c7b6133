//! Types of the port's queue calls.

use std::time::Duration;

use smalt_protocol::Timestamp;

use super::Metadata;

/// A message returned by a get or peek.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueMessage {
    /// Message id.
    pub id: String,
    /// Newest pop receipt; empty for a peeked message.
    pub pop_receipt: String,
    /// When the message was put.
    pub inserted: Timestamp,
    /// When the message expires ([`Timestamp::MAX`] for never).
    pub expires: Timestamp,
    /// When the message becomes visible again; `None` for a peeked message.
    pub next_visible: Option<Timestamp>,
    /// Number of times the message was dequeued.
    pub dequeue_count: u32,
    /// The text as stored.
    pub text: String,
}

/// Messages of one get or peek.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueMessages {
    /// The messages, in the order of the response.
    pub messages: Vec<QueueMessage>,
    /// The service's `Date`.
    pub server_time: Timestamp,
}

/// Result of a put or update.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// Message id.
    pub id: String,
    /// The new pop receipt.
    pub pop_receipt: String,
    /// When the message becomes visible.
    pub next_visible: Timestamp,
}

/// Time to live of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageTtl {
    /// Never expires (-1).
    Never,
    /// Expires after this time, at least one second.
    After(Duration),
}

/// Properties of a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueProperties {
    /// Approximate number of messages; never lower than the actual number.
    pub approximate_count: u64,
    /// User metadata of the queue.
    pub metadata: Metadata,
}
