//! Histories of a queue that no service may produce.

use smalt_model::vocabulary::{MessageId, QueueOperation, Receipt};

use super::said::messages;
use super::*;
use crate::bursts::program::QUEUE;

const HIDDEN_S: u64 = START_S + 30;

fn on_queue(operation: QueueOperation) -> Operation {
    Operation::Queue(QUEUE.to_owned(), operation)
}

fn put_message() -> Operation {
    on_queue(QueueOperation::Put {
        text: "text".to_owned(),
        ttl_s: None,
        visibility_timeout_s: 0,
    })
}

fn receive() -> Operation {
    on_queue(QueueOperation::Receive {
        most: 1,
        visibility_timeout_s: 30,
    })
}

fn delete_message(id: u32, receipt: u32) -> Operation {
    on_queue(QueueOperation::DeleteMessage {
        id: MessageId(id),
        receipt: Receipt(receipt),
    })
}

fn created() -> Told {
    (0, (1, 2), program::create_queue(), ok(201))
}

fn one() -> Told {
    let made = messages(201, &[(0, 0, 0, START_S)]);
    (0, (3, 4), put_message(), made)
}

fn taken(receipt: u32, count: u32) -> Answered {
    messages(200, &[(0, receipt, count, HIDDEN_S)])
}

fn of_queue(what: &'static str) -> Story {
    Story(Kind::Queue, what)
}

#[test]
fn wrong_deliveries_of_a_queue_are_rejected() {
    of_queue("one message for one").is_accepted([
        created(),
        one(),
        (1, (5, 8), receive(), taken(1, 1)),
        (2, (6, 7), receive(), messages(200, &[])),
    ]);
    of_queue("one message for two").is_rejected([
        created(),
        one(),
        (1, (5, 8), receive(), taken(1, 1)),
        (2, (6, 7), receive(), taken(2, 2)),
    ]);
    of_queue("one message for two, each the first").is_rejected([
        created(),
        one(),
        (1, (5, 8), receive(), taken(1, 1)),
        (2, (6, 7), receive(), taken(2, 1)),
    ]);
    of_queue("nobody gets it").is_rejected([
        created(),
        one(),
        (1, (5, 6), receive(), messages(200, &[])),
    ]);
}

#[test]
fn wrong_deletions_of_messages_are_rejected() {
    of_queue("deleted by an old receipt").is_rejected([
        created(),
        one(),
        (1, (5, 6), receive(), taken(1, 1)),
        (2, (7, 8), delete_message(0, 0), ok(204)),
    ]);
    of_queue("deleted by two").is_rejected([
        created(),
        one(),
        (1, (5, 6), receive(), taken(1, 1)),
        (1, (7, 10), delete_message(0, 1), ok(204)),
        (2, (8, 9), delete_message(0, 1), ok(204)),
    ]);
    of_queue("deleted, and there again").is_rejected([
        created(),
        one(),
        (1, (5, 6), delete_message(0, 0), ok(204)),
        (2, (7, 8), receive(), taken(1, 1)),
    ]);
    of_queue("never put").is_rejected([created(), (1, (5, 6), receive(), taken(1, 1))]);
    of_queue("put without an answer").is_accepted([
        created(),
        (0, (3, 0), put_message(), ok(0)),
        (1, (5, 6), receive(), taken(1, 1)),
    ]);
    of_queue("put once without an answer, and there twice").is_rejected([
        created(),
        (0, (3, 0), put_message(), ok(0)),
        (1, (5, 6), receive(), taken(1, 1)),
        (2, (7, 8), receive(), messages(200, &[(1, 2, 1, HIDDEN_S)])),
    ]);
}
