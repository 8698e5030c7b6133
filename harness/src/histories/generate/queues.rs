//! Operations on queues and messages.

use smalt_model::Model;
use smalt_model::vocabulary::{INLINE_TEXT_BYTES, MessageId, Operation, QueueOperation, Receipt};

use super::dice::{Dice, Miss};
use super::parts::{self, Kind, kind, metadata};
use super::space::QUEUES;

pub(super) const KINDS: &[Kind] = &[
    kind("queue create", 20, create),
    kind("queue delete", 6, |m, d| {
        on(m, d, |_| QueueOperation::Delete)
    }),
    kind("queue get", 10, |m, d| on(m, d, |_| QueueOperation::Get)),
    kind("queue set metadata", 10, set_metadata),
    kind("message put", 60, put),
    kind("message get", 50, receive),
    kind("message peek", 14, peek),
    kind("message update", 30, update),
    kind("message delete", 26, delete),
    kind("message clear", 6, |m, d| {
        on(m, d, |_| QueueOperation::Clear)
    }),
];

fn on(
    model: &Model,
    dice: &mut Dice<'_>,
    make: impl FnOnce(&mut Dice<'_>) -> QueueOperation,
) -> Option<Operation> {
    let name = parts::queue(model, dice)?;
    Some(Operation::Queue(name, make(dice)))
}

/// Creates a new queue, or one that exists with the same metadata; for a near miss, with other
/// metadata.
fn create(model: &Model, dice: &mut Dice<'_>) -> Option<Operation> {
    let name = dice.one(&QUEUES[..dice.space.queues])?;
    let known = model.metadata_of_queue(name).cloned();
    let known = known.filter(|_| dice.miss.is_none());
    let metadata = known.unwrap_or_else(|| metadata(dice));
    let operation = QueueOperation::Create(metadata);
    Some(Operation::Queue(name.to_owned(), operation))
}

fn set_metadata(model: &Model, dice: &mut Dice<'_>) -> Option<Operation> {
    on(model, dice, |dice| {
        QueueOperation::SetMetadata(metadata(dice))
    })
}

/// Returns a text: usually short, sometimes around the length from which it is stored as a payload.
fn text(word: &str, dice: &mut Dice<'_>) -> String {
    let length = match dice.is_long() {
        true => dice.one(&[INLINE_TEXT_BYTES + 1, INLINE_TEXT_BYTES]),
        false => None,
    };
    let text = format!("{word} {}", dice.below(4));
    format!("{text:.<width$}", width = length.unwrap_or(0))
}

fn put(model: &Model, dice: &mut Dice<'_>) -> Option<Operation> {
    on(model, dice, |dice| {
        let hidden = dice.one(&[0, 1, 30, 3_600]).unwrap_or(0);
        // The message must become visible before it expires.
        let late = dice.misses(Miss::Detail);
        let ttl_s = match late {
            true => Some(i64::try_from(hidden.max(1)).unwrap_or(1)),
            false => dice
                .one(&[None, Some(-1), Some(3_601), Some(7_200), Some(31)])
                .flatten(),
        };
        QueueOperation::Put {
            text: text("text", dice),
            ttl_s,
            visibility_timeout_s: if late { hidden.max(1) } else { hidden },
        }
    })
}

fn receive(model: &Model, dice: &mut Dice<'_>) -> Option<Operation> {
    on(model, dice, |dice| QueueOperation::Receive {
        most: dice.one(&[1, 2, 32]).unwrap_or(1),
        visibility_timeout_s: dice.one(&[30, 1, 3_600]).unwrap_or(30),
    })
}

fn peek(model: &Model, dice: &mut Dice<'_>) -> Option<Operation> {
    on(model, dice, |dice| QueueOperation::Peek {
        most: dice.one(&[1, 32]).unwrap_or(1),
    })
}

/// Returns a message with its receipt; for a near miss, an earlier receipt, or a message that no
/// longer exists.
fn message(model: &Model, queue: &str, dice: &mut Dice<'_>) -> (MessageId, Receipt) {
    let known = dice.one(&model.receipts(queue));
    let numbers = model.numbers();
    let other = (
        MessageId(u32::from(dice.byte()) % (numbers.messages + 1)),
        Receipt(u32::from(dice.byte()) % (numbers.receipts + 1)),
    );
    match known {
        Some((id, _)) if dice.misses(Miss::Detail) && dice.chance(60) => (id, other.1),
        Some(known) if !dice.misses(Miss::Detail) && !dice.misses(Miss::Kind) => known,
        _ => other,
    }
}

fn update(model: &Model, dice: &mut Dice<'_>) -> Option<Operation> {
    let name = parts::queue(model, dice)?;
    let is_late = dice.misses(Miss::Condition);
    let (id, receipt) = message(model, &name, dice);
    let timeouts = [0, 1, 30, 3_600];
    let operation = QueueOperation::Update {
        id,
        receipt,
        visibility_timeout_s: match is_late {
            true => 604_800,
            false => dice.one(&timeouts).unwrap_or(0),
        },
        text: dice.chance(50).then(|| text("new", dice)),
    };
    Some(Operation::Queue(name, operation))
}

fn delete(model: &Model, dice: &mut Dice<'_>) -> Option<Operation> {
    let name = parts::queue(model, dice)?;
    let (id, receipt) = message(model, &name, dice);
    let operation = QueueOperation::DeleteMessage { id, receipt };
    Some(Operation::Queue(name, operation))
}
