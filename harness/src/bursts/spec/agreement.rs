//! The specifications against the model, on sequential histories: every answer that the model gives
//! is explained, with or without some of the answers before it, and every answer that differs in
//! anything is refused.

use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore as _, SeedableRng as _};
use smalt_model::Model;
use smalt_model::vocabulary::tables::{Row, TableExpected};
use smalt_model::vocabulary::{
    LeaseId, MessageId, Metadata, Operation, PROPOSED_LEASES, Receipt, Tag,
};
use smalt_protocol::table::Value as Property;

use super::blob::Blob;
use super::container::Container;
use super::entity::Partition;
use super::output::{Made, Message, Output};
use super::pool;
use super::queue::Queue;
use super::value::Taken;
use crate::bursts::linear::Spec;
use crate::bursts::program::{self, BLOBS, Draw, Known, PARTITIONS};
use crate::histories::server::START_S;

const HISTORIES: u64 = 500;
const OPERATIONS: usize = 30;
/// Of a hundred answers, so many are lost in half of the histories.
const LOST_PERCENT: u32 = 15;

/// One operation with the model's answer.
type Step = (Operation, Output);

/// What clients know after an answer.
fn learn(known: &mut Known, operation: &Operation, seen: &Output) {
    known.tags = known.tags.max(seen.tag.map_or(0, |tag| tag + 1));
    known.leases = known.leases.max(seen.lease.map_or(0, |id| id + 1));
    known.leases = known.leases.max(PROPOSED_LEASES);
    if let (Operation::Table(_, operation), Some(table)) = (operation, &seen.table) {
        for (id, tag) in operation.rows().iter().zip(&table.tags) {
            tag.iter()
                .for_each(|tag| pool::learn(&mut known.entities, id, *tag));
        }
        for row in &table.rows {
            pool::learn(&mut known.entities, &row.id, row.tag);
        }
    }
    let messages = seen.messages.iter().flatten();
    let pairs = messages.filter_map(|m| Some((MessageId(m.id), Receipt(m.receipt?))));
    known.shown.extend(pairs);
    if let (Operation::Queue(_, operation), Some(receipt)) = (operation, seen.receipt)
        && let smalt_model::vocabulary::QueueOperation::Update { id, .. } = operation
    {
        known.shown.push((*id, Receipt(receipt)));
    }
}

/// A history of the model: some answers are lost, so that nobody knows what they made.
fn history(
    seed: u64,
    first: Option<Operation>,
    next: &dyn Fn(&mut Draw<'_>) -> Operation,
) -> Vec<(Step, bool)> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut model = Model::new(START_S);
    let _ = model.step(&program::create_container());
    let _ = model.step(&program::create_table());
    if let Some(Operation::Container(..)) = first {
        model = Model::new(START_S);
    }
    let mut known = Known::default();
    let mut steps = Vec::new();
    for index in 0..OPERATIONS {
        let drawn = next(&mut Draw {
            random: &mut random,
            known: &known,
        });
        let operation = first.clone().filter(|_| index == 0).unwrap_or(drawn);
        let output = Output::from(&model.step(&operation));
        let is_lost = seed % 2 == 1 && random.next_u32() % 100 < LOST_PERCENT;
        if !is_lost {
            learn(&mut known, &operation, &output);
        }
        steps.push(((operation, output), is_lost));
    }
    steps
}

fn made(steps: &[(Step, bool)]) -> Made {
    let mut made = Made::default();
    for ((operation, output), is_lost) in steps {
        if !is_lost {
            made.add(operation, output).unwrap();
        }
    }
    made
}

/// Ways to change one thing in an answer, if it shows that.
const CHANGES: [fn(&mut Output); 21] = [
    |o| o.status += 1,
    |o| o.code = Some("OperationTimedOut".to_owned()),
    |o| o.tag = o.tag.map(|_| 777_777),
    |o| longer(&mut o.lease_state),
    |o| longer(&mut o.lease_time),
    |o| longer(&mut o.length),
    |o| longer(&mut o.count),
    |o| o.body.iter_mut().for_each(|body| body.push(1)),
    |o| o.metadata.iter_mut().for_each(mark),
    |o| o.tags.iter_mut().for_each(mark),
    |o| {
        o.messages
            .iter_mut()
            .for_each(|messages| messages.truncate(messages.len() / 2));
    },
    |o| {
        first(o, |message| {
            message.visible_s = message.visible_s.map(|s| s + 1);
        });
    },
    |o| {
        first(o, |message| {
            message.dequeue_count = message.dequeue_count.map(|c| c + 1);
        });
    },
    |o| first(o, |message| longer(&mut message.text)),
    |o| table(o, |t| t.place = t.place.map(|place| place + 1)),
    |o| {
        table(o, |t| {
            t.tags
                .iter_mut()
                .flatten()
                .take(1)
                .for_each(|tag| tag.0 = 777_777);
        });
    },
    |o| table(o, |t| t.rows.truncate(t.rows.len() / 2)),
    |o| row(o, |row| row.tag = Tag(777_777)),
    |o| row(o, |row| row.id.row_key.push('1')),
    |o| {
        row(o, |row| {
            row.properties.insert("a".to_owned(), Property::Int64(7));
        });
    },
    |o| table(o, |t| t.next.iter_mut().for_each(|id| id.row_key.push('1'))),
];

fn table(output: &mut Output, change: impl FnMut(&mut TableExpected)) {
    output.table.iter_mut().for_each(change);
}

fn row(output: &mut Output, change: impl Fn(&mut Row)) {
    table(output, |table| {
        table.rows.iter_mut().take(1).for_each(&change);
    });
}

/// Every tag that an answer shows.
fn tags(output: &Output) -> Vec<Tag> {
    let table = output.table.iter();
    let of_table = table.flat_map(|t| t.tags.iter().flatten().chain(t.rows.iter().map(|r| &r.tag)));
    of_table.copied().chain(output.tag.map(Tag)).collect()
}

fn longer(text: &mut Option<String>) {
    text.iter_mut().for_each(|text| text.push('1'));
}

fn mark(pairs: &mut Metadata) {
    pairs.insert("mark".to_owned(), "another".to_owned());
}

fn first(output: &mut Output, change: impl FnMut(&mut Message)) {
    output
        .messages
        .iter_mut()
        .flatten()
        .take(1)
        .for_each(change);
}

/// Answers that differ in one thing from this one.
fn wrong(output: &Output) -> Vec<Output> {
    let changed = CHANGES.iter().map(|change| {
        let mut changed = output.clone();
        change(&mut changed);
        changed
    });
    changed.filter(|changed| changed != output).collect()
}

/// What an answer shows that is made by it cannot be wrong by itself: the first sight binds.
fn is_made_here(operation: &Operation, output: &Output, changed: &Output) -> bool {
    let mut own = Made::default();
    let _ = own.add(operation, output);
    // One of several tags that are one is wrong by itself.
    tags(changed) != tags(output) && !own.tags.is_empty() && tags(output).len() == 1
}

/// Runs a history through a specification; how many wrong answers it was shown.
fn agree<S: Spec<Output = Output>>(start: S, steps: &[(Step, bool)]) -> usize {
    let mut state = start;
    let mut refused = 0;
    for (at, ((operation, output), is_lost)) in steps.iter().enumerate() {
        let told = state.step(operation, (!is_lost).then_some(output));
        let after = told.unwrap_or_else(|reason| {
            unreachable!("{at} {operation:?}: {reason}\nmodel: {output:?}\n{steps:#?}")
        });
        let doctored = wrong(output).into_iter();
        for changed in doctored.filter(|changed| !is_made_here(operation, output, changed)) {
            // An unseen tag may be any that nobody made.
            if *is_lost
                || steps.iter().any(|(_, is_lost)| *is_lost) && tags(&changed) != tags(output)
            {
                continue;
            }
            let told = state.step(operation, Some(&changed));
            assert!(
                told.is_err(),
                "{operation:?}: {changed:?} in place of {output:?}"
            );
            refused += 1;
        }
        state = after;
    }
    refused
}

fn codes(steps: &[(Step, bool)], seen: &mut std::collections::BTreeSet<(u16, Option<String>)>) {
    seen.extend(
        steps
            .iter()
            .map(|((_, output), _)| (output.status, output.code.clone())),
    );
}

#[test]
fn a_blob_is_what_the_model_says() {
    let mut seen = std::collections::BTreeSet::new();
    let mut refused = 0;
    for seed in 0..HISTORIES {
        let steps = history(seed, None, &|draw| program::blob(draw, &BLOBS[..1]));
        refused += agree(Blob::absent(Taken::by_answers(made(&steps).tags)), &steps);
        codes(&steps, &mut seen);
    }
    assert!(refused > 15_000, "{refused} wrong answers");
    assert!(seen.len() >= 18, "{seen:?}");
}

#[test]
fn a_container_is_what_the_model_says() {
    let mut seen = std::collections::BTreeSet::new();
    let mut refused = 0;
    for seed in 0..HISTORIES {
        let first = Some(program::create_container());
        let steps = history(seed, first, &program::container);
        refused += agree(
            Container::absent(Taken::by_answers(made(&steps).tags)),
            &steps,
        );
        codes(&steps, &mut seen);
    }
    assert!(refused > 15_000, "{refused} wrong answers");
    assert!(seen.len() >= 14, "{seen:?}");
}

#[test]
fn a_queue_is_what_the_model_says() {
    let mut seen = std::collections::BTreeSet::new();
    let mut refused = 0;
    for seed in 0..HISTORIES {
        let steps = history(seed, Some(program::create_queue()), &program::queue);
        let made = made(&steps);
        let messages = Taken::by_answers(made.messages);
        let start = Queue::absent(START_S, messages, Taken::by_answers(made.receipts));
        refused += agree(start, &steps);
        codes(&steps, &mut seen);
    }
    assert!(refused > 15_000, "{refused} wrong answers");
    assert!(seen.len() >= 8, "{seen:?}");
}

#[test]
fn a_partition_is_what_the_model_says() {
    let mut seen = std::collections::BTreeSet::new();
    let mut refused = 0;
    for seed in 0..HISTORIES {
        let steps = history(seed, None, &|draw| program::entity(draw, &PARTITIONS[..1]));
        refused += agree(
            Partition::empty(Taken::by_answers(made(&steps).tags)),
            &steps,
        );
        codes(&steps, &mut seen);
    }
    assert!(refused > 15_000, "{refused} wrong answers");
    assert_eq!(seen.len(), 6, "{seen:?}");
}

/// Lease ids of the service's own are numbered behind those of clients.
#[test]
fn own_lease_ids_come_first() {
    let mut pool = super::pool::Pool::default();
    let own = pool.names().lease(LeaseId(1));
    assert_eq!(pool.lease(&own), Ok(LeaseId(1)));
    assert_eq!(pool.lease("another"), Ok(LeaseId(PROPOSED_LEASES)));
    assert_eq!(pool.leases(), PROPOSED_LEASES + 1);
}
