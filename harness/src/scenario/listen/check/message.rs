//! A message as the judges know it, and what exchanges say about it.

use smalt_protocol::Timestamp;

use crate::scenario::history::{Event, Exchange, Fate, Happening, element, elements};

#[derive(Default)]
pub(super) struct Known {
    pub(super) number: usize,
    /// Text of the message in the queue.
    pub(super) stored: String,
    pub(super) gets: u32,
    pub(super) done: bool,
    pub(super) deleted: bool,
    pub(super) poisoned: u32,
    /// When the service drops it; `None` for never.
    pub(super) expires: Option<Timestamp>,
    /// Whether a life had it and died.
    pub(super) orphaned: bool,
    /// Whether the queue was deleted while the message was in it.
    pub(super) swept_away: bool,
}

/// Whether the sender cannot tell if the request took effect.
pub(super) fn is_unclear(exchange: &Exchange) -> bool {
    match &exchange.fate {
        Fate::Answered(answer) => answer.status >= 500 || !exchange.is_told(),
        Fate::NoAnswer(_) => true,
    }
}

/// A message in the answer of a get: id, receipt, dequeue count, hidden until, expires.
pub(super) struct Taken<'a> {
    pub(super) id: &'a str,
    pub(super) receipt: &'a str,
    pub(super) count: u32,
    pub(super) until: Timestamp,
    pub(super) expires: Timestamp,
}

pub(super) fn taken(xml: &str) -> Vec<Taken<'_>> {
    let message = |message| {
        let text = |name| element(message, name).unwrap_or_default();
        let time = |name| Timestamp::parse_rfc1123(text(name)).unwrap_or(Timestamp::MIN);
        Taken {
            id: text("MessageId"),
            receipt: text("PopReceipt"),
            count: text("DequeueCount").parse().unwrap_or(0),
            until: time("TimeNextVisible"),
            expires: time("ExpirationTime"),
        }
    };
    elements(xml, "QueueMessage")
        .into_iter()
        .map(message)
        .collect()
}

/// Returns when the owner put a message.
pub(super) fn put_at(history: &[Event], id: &str) -> Option<Timestamp> {
    history.iter().find_map(|event| match &event.what {
        Happening::Exchange(e) if event.actor == "owner" && e.method == "POST" => {
            let text = e.done()?.text();
            text.contains(id).then_some(event.at)
        }
        _ => None,
    })
}

/// Whether a message never expires: the service gives such messages a time in the year 9999.
pub(super) fn never_expires(expires: Timestamp) -> bool {
    expires.iso_s().starts_with("9999")
}
