//! Documents of messages.

use smalt_protocol::StorageError;
use smalt_protocol::xml::{MessageEntry, QueueMessagesDocument};

use crate::call::Call;
use crate::ops::queue::messages::{FoundText, Message};
use crate::ops::queue::receipt;
use crate::reply::Reply;

/// The answer of Put Message.
pub fn put(message: &Message, call: &Call) -> Reply {
    let mut document = QueueMessagesDocument::new(call.version);
    document.push(&MessageEntry {
        pop_receipt: Some(&receipt::taken(message.record.receipt)),
        time_next_visible: Some(message.record.visible),
        ..entry(message, &message.id.to_string())
    });
    Reply::xml(201, document.finish())
}

/// The answer of Get Messages.
pub fn taken(messages: Vec<(Message, FoundText)>, call: &Call) -> Result<Reply, StorageError> {
    let mut document = QueueMessagesDocument::new(call.version);
    for (message, text) in messages {
        document.push(&MessageEntry {
            pop_receipt: Some(&receipt::taken(message.record.receipt)),
            time_next_visible: Some(message.record.visible),
            dequeue_count: Some(message.record.dequeue_count),
            text: Some(&text.read()?),
            ..entry(&message, &message.id.to_string())
        });
    }
    Ok(uncached(document))
}

/// The answer of Peek Messages: neither receipt nor next visible time.
pub fn peeked(messages: Vec<(Message, FoundText)>, call: &Call) -> Result<Reply, StorageError> {
    let mut document = QueueMessagesDocument::new(call.version);
    for (message, text) in messages {
        document.push(&MessageEntry {
            dequeue_count: Some(message.record.dequeue_count),
            text: Some(&text.read()?),
            ..entry(&message, &message.id.to_string())
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
