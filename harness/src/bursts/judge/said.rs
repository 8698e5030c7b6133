//! Test support: builds a service's answers from numbers.

use bytes::Bytes;
use smalt_model::vocabulary::{LeaseId, MessageId, Receipt, Tag};
use smalt_protocol::Timestamp;

use crate::histories::names::Names;
use crate::histories::run::Answered;
use crate::histories::server::START_S;
use crate::wire::{Answer, Headers};

/// Maximum number of ETags per entity in hand-written histories.
const ENTITY_TAGS: u32 = 10;
const TTL_S: u64 = 7 * 24 * 60 * 60;

/// Returns the values of all numbers in these answers and operations.
pub(crate) fn names() -> Names {
    let mut names = Names::default();
    for number in 0..ENTITY_TAGS {
        names
            .see_entity_tag(Tag(number), &entity_tag(number))
            .unwrap();
    }
    names
}

/// Returns an ETag.
pub(crate) fn tag(number: u32) -> String {
    Names::default().tag(Tag(number))
}

/// Returns the ETag of an entity.
pub(crate) fn entity_tag(number: u32) -> String {
    format!("W/\"{number}\"")
}

/// Sets a header.
pub(crate) fn set(answered: &mut Answered, name: &'static str, value: &str) {
    answered.answer.headers.set(name, value);
}

/// Returns an answer with a status only.
pub(crate) fn ok(status: u16) -> Answered {
    Answered::of(Answer {
        status,
        headers: Headers::default(),
        body: Bytes::new(),
    })
}

/// Returns the answer to a write.
pub(crate) fn tagged(status: u16, number: u32) -> Answered {
    let mut answered = ok(status);
    set(&mut answered, "etag", &tag(number));
    set(&mut answered, "last-modified", &date(START_S));
    answered
}

/// Returns an error answer.
pub(crate) fn refused(status: u16, code: &str) -> Answered {
    let mut answered = ok(status);
    set(&mut answered, "x-ms-error-code", code);
    answered
}

/// Returns the answer to Get Blob for a blob of one byte without a lease.
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

/// Returns the answer to Acquire Lease.
pub(crate) fn granted(lease: u32, number: u32) -> Answered {
    let mut answered = tagged(201, number);
    let id = Names::default().lease(LeaseId(lease));
    set(&mut answered, "x-ms-lease-id", &id);
    answered
}

/// Returns messages: id, receipt, dequeue count, time of next visibility. A message with dequeue
/// count 0 is rendered as by Put Message: without text and count.
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
