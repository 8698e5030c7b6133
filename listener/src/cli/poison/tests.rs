//! Tests of the poison queue's commands over in-memory queues with faults.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use smalt_listener::payload::Compression;
use smalt_listener::payload::envelope::Claim;
use smalt_listener::rules::envelope::{Poisoned, poison_text};
use smalt_sleeve::port::ErrorKind;

use super::requeue::{Became, Note};
use super::*;
use crate::cli::support::{FakeStorage, Fault, Op, POISON, QUEUE};

fn sealed(id: &str, body: &str) -> String {
    poison_text(&Poisoned {
        id,
        queue: QUEUE,
        inserted: Timestamp::from_unix_s(1_700_000_000),
        expires: Timestamp::MAX,
        dequeue_count: 5,
        error: "exit status 65",
        worker: "w",
        body,
    })
}

/// Returns an account with `count` poisoned messages: `body 0` with the id `m-0`, and so on.
fn account(count: usize) -> FakeStorage {
    let storage = FakeStorage::new(&[QUEUE, POISON]);
    for number in 0..count {
        let text = sealed(&format!("m-{number}"), &format!("body {number}"));
        storage.put(POISON, &text);
    }
    storage
}

const BACK: Action<'static> = Action::Requeue(Wish {
    queue: QUEUE,
    to: None,
    life: Life::Kept,
});

fn order(storage: &FakeStorage, chosen: Chosen) -> Order<'_> {
    Order {
        storage,
        poison_queue: POISON,
        chosen,
        payloads: Payloads::unknown(),
        action: BACK,
        max: u64::MAX,
        dry_run: false,
    }
}

/// A message whose payload cannot be reached stays, for every action and encoding.
#[tokio::test(start_paused = true)]
async fn a_message_with_an_unreachable_payload_stays() {
    let claim = Claim::of(b"payload", Compression::Zstd, "payloads", "orders/1").text();
    for body in [claim.clone(), STANDARD.encode(claim)] {
        for (action, dry_run) in [(BACK, false), (Action::Purge, false), (Action::Purge, true)] {
            let storage = account(1);
            storage.put(POISON, &sealed("m-big", &body));
            let mut order = order(&storage, Chosen::All);
            (order.action, order.dry_run) = (action, dry_run);
            let notes = notes(&order).await;
            let big = notes.iter().find(|n| n.json()["id"] == "m-big").unwrap();
            assert!(big.to_string().contains("--config"), "{big}");
            assert!(big.became.is_failure());
            let left = if dry_run { 2 } else { 1 };
            assert_eq!(storage.stored(POISON).len(), left);
        }
    }
}

async fn notes(order: &Order<'_>) -> Vec<Note> {
    let mut notes = Vec::new();
    order.carry_out(|note| notes.push(note)).await.unwrap();
    notes
}

fn texts(storage: &FakeStorage, queue: &str) -> Vec<String> {
    let mut texts: Vec<String> = storage.stored(queue).into_iter().map(|m| m.text).collect();
    texts.sort();
    texts
}

#[tokio::test(start_paused = true)]
async fn all_messages_are_put_back_unchanged() {
    let storage = account(100);
    let notes = notes(&order(&storage, Chosen::All)).await;
    assert_eq!(notes.len(), 100);
    assert!(notes.iter().all(|n| n.became.name() == "requeued"));
    assert!(
        notes[0]
            .to_string()
            .contains("taken 5 times: exit status 65")
    );
    let mut wanted: Vec<String> = (0..100).map(|n| format!("body {n}")).collect();
    wanted.sort();
    assert_eq!(texts(&storage, QUEUE), wanted);
    assert!(storage.stored(POISON).is_empty());
}

/// A copy is deleted only if its message was put.
#[tokio::test(start_paused = true)]
async fn a_copy_is_deleted_only_after_its_put() {
    for (op, fault) in [
        (Op::Put, Fault::Before(ErrorKind::Busy)),
        (Op::Put, Fault::LostAnswer),
        (Op::Delete, Fault::Before(ErrorKind::Busy)),
        (Op::Delete, Fault::LostAnswer),
    ] {
        let storage = account(3);
        storage.fault(op, 1..2, fault);
        let notes = notes(&order(&storage, Chosen::All)).await;
        let failed = notes.iter().filter(|n| n.became.is_failure()).count();
        assert_eq!((notes.len(), failed), (3, 1), "{op:?} {fault:?}");
        let kept: Vec<String> = texts(&storage, POISON)
            .iter()
            .filter_map(|text| open(text).map(|e| e.body))
            .chain(texts(&storage, QUEUE))
            .collect();
        for body in ["body 0", "body 1", "body 2"] {
            assert!(
                kept.iter().any(|k| k == body),
                "{body} after {op:?} {fault:?}"
            );
        }
    }
}

/// Messages that were received while searching for the chosen one are visible again.
#[tokio::test(start_paused = true)]
async fn one_message_is_found_by_either_id() {
    let storage = account(40);
    let copy_id = storage.stored(POISON)[35].id.clone();
    let chosen = Chosen::Ids(vec!["m-3".to_owned(), copy_id]);
    let notes = notes(&order(&storage, chosen)).await;
    assert_eq!(notes.len(), 2);
    assert_eq!(texts(&storage, QUEUE), ["body 3", "body 35"]);
    let (seen, _) = walk::look(&storage, POISON, u64::MAX).await.unwrap();
    assert_eq!(seen.len(), 38, "all others are visible");
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_changes_nothing() {
    let storage = account(3);
    let before = texts(&storage, POISON);
    for action in [BACK, Action::Purge] {
        let dry = Order {
            action,
            dry_run: true,
            ..order(&storage, Chosen::All)
        };
        let notes = notes(&dry).await;
        assert_eq!(notes.len(), 3);
        assert!(notes.iter().all(|n| n.became.name().starts_with("would_")));
    }
    assert_eq!(texts(&storage, POISON), before);
    assert!(storage.stored(QUEUE).is_empty());
    assert!(storage.stored(POISON).iter().all(|m| m.dequeue_count == 0));
}

#[tokio::test(start_paused = true)]
async fn max_limits_the_messages() {
    let storage = account(10);
    let some = Order {
        max: 4,
        ..order(&storage, Chosen::All)
    };
    assert_eq!(notes(&some).await.len(), 4);
    assert_eq!(
        (storage.stored(QUEUE).len(), storage.stored(POISON).len()),
        (4, 6)
    );
    let (seen, _) = walk::look(&storage, POISON, 32).await.unwrap();
    assert_eq!(seen.len(), 6);
}

/// The listener repeats a put whose answer was lost, which makes two copies of one message.
#[tokio::test(start_paused = true)]
async fn a_second_copy_is_not_put_twice() {
    let storage = account(1);
    storage.put(POISON, &sealed("m-0", "body 0"));
    storage.put(POISON, &sealed("m-0", "another body"));
    let notes = notes(&order(&storage, Chosen::All)).await;
    let outcomes: Vec<_> = notes.iter().map(|n| n.became.name()).collect();
    assert_eq!(outcomes, ["requeued", "requeued", "duplicate_deleted"]);
    assert_eq!(texts(&storage, QUEUE), ["another body", "body 0"]);
}

#[tokio::test(start_paused = true)]
async fn purge_deletes_only_the_chosen() {
    let storage = account(3);
    let purge = Order {
        action: Action::Purge,
        ..order(&storage, Chosen::Ids(vec!["m-1".to_owned()]))
    };
    assert_eq!(notes(&purge).await[0].became.name(), "purged");
    assert_eq!(storage.stored(POISON).len(), 2);
    assert!(storage.stored(QUEUE).is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_expired_message_stays_without_a_new_ttl() {
    let storage = FakeStorage::new(&[QUEUE, POISON]);
    let over = sealed("m", "b").replace("\"expires\":null", "\"expires\":\"2020-01-01T00:00:00Z\"");
    storage.put(POISON, &over);
    let kept = notes(&order(&storage, Chosen::All)).await;
    assert!(kept[0].to_string().contains("--ttl"), "{}", kept[0]);
    let given = Order {
        action: Action::Requeue(Wish {
            queue: QUEUE,
            to: None,
            life: Life::Given(MessageTtl::After(Duration::from_secs(60))),
        }),
        ..order(&storage, Chosen::All)
    };
    assert_eq!(notes(&given).await[0].became.name(), "requeued");
    tokio::time::advance(Duration::from_secs(61)).await;
    assert!(storage.stored(QUEUE).is_empty(), "it lived for a minute");
}

/// A note about a hostile envelope stays on one line and contains no control characters.
#[tokio::test(start_paused = true)]
async fn a_note_is_one_line_without_control_characters() {
    let hostile = "\u{1b}[31m\u{9b}2J\nERROR forged\u{202e}";
    let storage = FakeStorage::new(&[POISON]);
    storage.put(
        POISON,
        &sealed(hostile, "b").replace("exit status 65", "\\u001b\\n\u{202e}"),
    );
    let (messages, _) = walk::look(&storage, POISON, 1).await.unwrap();
    let note = Note {
        message: messages[0].clone(),
        became: Became::Left(hostile.to_owned()),
    };
    let line = note.line();
    assert!(
        !line.chars().any(smalt_protocol::terminal::steers),
        "{line:?}"
    );
    assert!(
        line.contains("\\u{1b}[31m") && line.contains("\\nERROR"),
        "{line}"
    );
}
