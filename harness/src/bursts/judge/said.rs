//! For tests: answers as a service would word them, out of numbers.

use bytes::Bytes;
use smalt_model::vocabulary::{LeaseId, MessageId, Receipt, Tag};
use smalt_protocol::Timestamp;

use crate::histories::names::Names;
use crate::histories::run::Answered;
use crate::histories::server::START_S;
use crate::wire::{Answer, Headers};

/// Entities of hand-made histories have this many tags at most.
const ENTITY_TAGS: u32 = 10;
const TTL_S: u64 = 7 * 24 * 60 * 60;

/// The texts of all numbers that these answers and operations name.
pub(crate) fn names() -> Names {
    let mut names = Names::default();
    for number in 0..ENTITY_TAGS {
        names
            .see_entity_tag(Tag(number), &entity_tag(number))
            .unwrap();
    }
    names
}

/// An ETag.
pub(crate) fn tag(number: u32) -> String {
    Names::default().tag(Tag(number))
}

/// The ETag of an entity.
pub(crate) fn entity_tag(number: u32) -> String {
    format!("W/\"{number}\"")
}

/// Adds a header, or replaces it.
pub(crate) fn set(answered: &mut Answered, name: &'static str, value: &str) {
    answered.answer.headers.set(name, value);
}

/// A status and nothing else.
pub(crate) fn ok(status: u16) -> Answered {
    Answered::of(Answer {
        status,
        headers: Headers::default(),
        body: Bytes::new(),
    })
}

/// The answer of a write.
pub(crate) fn tagged(status: u16, number: u32) -> Answered {
    let mut answered = ok(status);
    set(&mut answered, "etag", &tag(number));
    set(&mut answered, "last-modified", &date(START_S));
    answered
}

/// A refusal.
pub(crate) fn refused(status: u16, code: &str) -> Answered {
    let mut answered = ok(status);
    set(&mut answered, "x-ms-error-code", code);
    answered
}

/// A blob of one byte that nobody leases.
pub(crate) fn got(number: u32, seed: u8) -> Answered {
    let mut answered = tagged(200, number);
    for (name, value) in [
        ("content-type", "application/octet-stream"),
        ("x-ms-blob-type", "BlockBlob"),
        ("x-ms-lease-state", "available"),
        ("x-ms-lease-status", "unlocked"),
    ] {
        set(&mut answered, name, value);
    }
    answered.answer.body = vec![seed].into();
    answered
}

/// A lease.
pub(crate) fn granted(lease: u32, number: u32) -> Answered {
    let mut answered = tagged(201, number);
    let id = Names::default().lease(LeaseId(lease));
    set(&mut answered, "x-ms-lease-id", &id);
    answered
}

/// Messages: id, receipt, dequeue count, time of next visibility. A message that was never given
/// out is shown as it is when it is put: without text and count.
pub(crate) fn messages(status: u16, messages: &[(u32, u32, u32, u64)]) -> Answered {
    let names = Names::default();
    let mut body = "<QueueMessagesList>".to_owned();
    for (id, receipt, count, visible_s) in messages {
        body += &format!(
            "<QueueMessage><MessageId>{}</MessageId><InsertionTime>{}</InsertionTime>\
             <ExpirationTime>{}</ExpirationTime><PopReceipt>{}</PopReceipt>\
             <TimeNextVisible>{}</TimeNextVisible>",
            names.message(MessageId(*id)),
            date(START_S),
            date(START_S + TTL_S),
            names.receipt(Receipt(*receipt)),
            date(*visible_s),
        );
        if *count > 0 {
            body += &format!("<DequeueCount>{count}</DequeueCount><MessageText>text</MessageText>");
        }
        body += "</QueueMessage>";
    }
    let mut answered = ok(status);
    answered.answer.body = (body + "</QueueMessagesList>").into();
    answered
}

fn date(seconds: u64) -> String {
    Timestamp::from_unix_s(seconds).rfc1123()
}
