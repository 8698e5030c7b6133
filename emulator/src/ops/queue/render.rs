//! XML documents of messages.

use smalt_protocol::xml::{MessageEntry, QueueMessagesDocument};
use smalt_protocol::{ApiVersion, StorageError};

use crate::call::Call;
use crate::ops::queue::messages::{FoundText, Message};
use crate::ops::queue::receipt;
use crate::records::QueueRecord;
use crate::reply::Reply;

/// Since this version, messages have dequeue counts: they are shown if the queue was created with
/// it or a later one. *Get Messages*, `DequeueCount`.
pub const COUNTS_DEQUEUES: ApiVersion = ApiVersion::V2009_09_19;

/// Messages of a queue to return to a client.
pub struct ShownMessages {
    /// The messages and the locations of their texts.
    pub messages: Vec<(Message, FoundText)>,
    /// Whether the queue was created before dequeue counts.
    pub uncounted: bool,
}

impl ShownMessages {
    /// Wraps messages of this queue.
    pub fn of(queue: &QueueRecord, messages: Vec<(Message, FoundText)>) -> Self {
        ShownMessages {
            messages,
            uncounted: queue.uncounted,
        }
    }

    fn count(&self, message: &Message, call: &Call) -> Option<u32> {
        let is_shown = !self.uncounted && call.version >= COUNTS_DEQUEUES;
        is_shown.then_some(message.record.dequeue_count)
    }
}

/// Returns the response of Put Message.
pub fn put(message: &Message, call: &Call) -> Reply {
    let mut document = QueueMessagesDocument::new(call.version);
    document.push(&MessageEntry {
        pop_receipt: Some(&receipt::taken(message.record.receipt)),
        time_next_visible: Some(message.record.visible),
        ..entry(message, &message.id.to_string())
    });
    Reply::xml(201, document.finish())
}

/// Returns the response of Get Messages.
pub fn taken(shown: &ShownMessages, call: &Call) -> Result<Reply, StorageError> {
    let mut document = QueueMessagesDocument::new(call.version);
    for (message, text) in &shown.messages {
        document.push(&MessageEntry {
            pop_receipt: Some(&receipt::taken(message.record.receipt)),
            time_next_visible: Some(message.record.visible),
            dequeue_count: shown.count(message, call),
            text: Some(&text.read()?),
            ..entry(message, &message.id.to_string())
        });
    }
    Ok(uncached(document))
}

/// Returns the response of Peek Messages, without receipt and next visible time.
pub fn peeked(shown: &ShownMessages, call: &Call) -> Result<Reply, StorageError> {
    let mut document = QueueMessagesDocument::new(call.version);
    for (message, text) in &shown.messages {
        document.push(&MessageEntry {
            dequeue_count: shown.count(message, call),
            text: Some(&text.read()?),
            ..entry(message, &message.id.to_string())
        });
    }
    Ok(uncached(document))
}

fn entry<'a>(message: &Message, id: &'a str) -> MessageEntry<'a> {
    MessageEntry {
        id,
        insertion_time: message.record.inserted,
        expiration_time: message.record.expires,
        ..MessageEntry::default()
    }
}

fn uncached(document: QueueMessagesDocument) -> Reply {
    Reply::xml(200, document.finish()).header("cache-control", "no-cache")
}
