//! Every class of error is found in a real history with a change, and none in an unchanged one.

use std::sync::OnceLock;

use super::super::memory;
use super::*;

/// Returns a history that is long enough for all cases below.
fn history() -> Vec<Event> {
    static HISTORY: OnceLock<Vec<Event>> = OnceLock::new();
    HISTORY
        .get_or_init(|| memory::run(1, 4_000, 8, false).unwrap())
        .clone()
}

/// Applies `change` to the first event that accepts it.
fn doctor(change: impl Fn(&mut Event) -> bool) -> Vec<Event> {
    let mut events = history();
    assert!(events.iter_mut().any(change), "no event was changed");
    events
}

fn finds(wrong: Wrong, events: &[Event]) {
    let account = Account::of(events);
    assert!(account.wrong.contains_key(&wrong), "{wrong:?}: {account:?}");
}

/// Returns all grants of a history with the indexes of their events.
fn grants(events: &[Event]) -> Vec<(usize, Given)> {
    let mut grants = Vec::new();
    for (at, event) in events.iter().enumerate() {
        if let What::Got { messages } = &event.what {
            grants.extend(messages.iter().map(|given| (at, given.clone())));
        }
    }
    grants
}

/// Inserts a delivery of the same message to another client right after a grant.
fn given_again(events: &mut Vec<Event>, at: usize, given: &Given) {
    let mut again = events[at].clone();
    // Multiplies the ticks to make room in between.
    for event in events.iter_mut() {
        event.called *= 4;
        event.returned = event.returned.map(|tick| tick * 4);
    }
    let returned = events[at].end();
    again.client = 3;
    again.called = returned + 1;
    again.returned = Some(returned + 2);
    let messages = vec![Given {
        count: given.count + 1,
        receipt: "another".to_owned(),
        ..given.clone()
    }];
    again.what = What::Got { messages };
    events.push(again);
}

#[test]
fn a_real_history_is_clean_and_full() {
    let account = Account::of(&history());
    assert!(account.is_clean(), "{account:?}");
    for count in [
        account.put,
        account.got,
        account.updated,
        account.deleted,
        account.refused,
    ] {
        assert!(count > 50, "{account}");
    }
    assert!(account.put_lost > 5 && account.left > 5, "{account}");
}

#[test]
fn a_lost_message_is_found() {
    let events = doctor(|event| match &mut event.what {
        What::Got { messages } if event.client == DRAIN => messages.pop().is_some(),
        _ => false,
    });
    finds(Wrong::Lost, &events);
}

#[test]
fn a_message_delivered_while_invisible_is_found() {
    let mut events = history();
    let all = grants(&events);
    let (at, given) = all
        .iter()
        .find(|(at, given)| {
            let is_last = all
                .iter()
                .all(|(_, other)| other.id != given.id || other.count <= given.count);
            is_last && events[*at].client == DRAIN
        })
        .unwrap();
    given_again(&mut events, *at, given);
    finds(Wrong::WhileInvisible, &events);
}

#[test]
fn one_delivery_to_two_clients_is_found() {
    let mut events = history();
    let grant = grants(&events).pop().unwrap();
    let mut again = events[grant.0].clone();
    again.client = 3;
    events.push(again);
    finds(Wrong::WhileInvisible, &events);
}

#[test]
fn a_message_that_nobody_put_is_found() {
    let events = doctor(|event| match &mut event.what {
        What::Got { messages } => messages
            .first_mut()
            .map(|given| given.text = 999_999)
            .is_some(),
        _ => false,
    });
    finds(Wrong::Unexpected, &events);
}

#[test]
fn a_message_that_comes_back_is_found() {
    let mut events = history();
    let deleted = events.iter().find_map(|event| match &event.what {
        What::Delete {
            id,
            outcome: Outcome::Deleted,
            ..
        } => Some(id.clone()),
        _ => None,
    });
    let deleted = deleted.unwrap();
    let put = events.iter().find_map(|event| match &event.what {
        What::Put {
            made: Some(given), ..
        } if given.id == deleted => Some(given.clone()),
        _ => None,
    });
    let last = events.len() - 1;
    let given = Given {
        count: 70,
        ..put.unwrap()
    };
    given_again(&mut events, last, &given);
    finds(Wrong::Resurrected, &events);
}

#[test]
fn a_stale_receipt_that_works_is_found() {
    // The message was delivered to another client, and the first one deletes it nevertheless.
    let mut events = history();
    let all = grants(&events);
    let (_, given) = all
        .iter()
        .find(|(_, given)| {
            given.count == 1
                && all
                    .iter()
                    .any(|(_, other)| other.id == given.id && other.count == 2)
        })
        .unwrap();
    let end = events
        .iter()
        .map(super::super::events::Event::end)
        .filter(|end| *end < u64::MAX)
        .max()
        .unwrap();
    let what = What::Delete {
        id: given.id.clone(),
        receipt: given.receipt.clone(),
        outcome: Outcome::Deleted,
    };
    events.push(Event {
        client: 1,
        called: end + 1,
        returned: Some(end + 2),
        at_ms: 0,
        what,
    });
    finds(Wrong::StaleReceipt, &events);
}

#[test]
fn a_receipt_that_works_twice_is_found() {
    let mut events = history();
    let used = events.iter().find(|event| {
        matches!(
            &event.what,
            What::Delete {
                outcome: Outcome::Deleted,
                ..
            }
        )
    });
    let again = used.unwrap().clone();
    events.push(again);
    finds(Wrong::ReceiptTwice, &events);
}

#[test]
fn a_valid_receipt_that_is_rejected_is_found() {
    let mut found = 0;
    let all = history();
    for at in 0..all.len() {
        let mut events = all.clone();
        if let What::Delete { outcome, .. } = &mut events[at].what
            && *outcome == Outcome::Deleted
        {
            *outcome = Outcome::Refused("MessageNotFound".to_owned());
            let account = Account::of(&events);
            found += usize::from(account.wrong.contains_key(&Wrong::RefusedWrongly));
        }
        if found > 5 {
            return;
        }
    }
    unreachable!("found {found}");
}

#[test]
fn the_same_seed_gives_the_same_history() {
    assert_eq!(memory::run(7, 500, 4, false), memory::run(7, 500, 4, false));
    assert_ne!(memory::run(7, 500, 4, false), memory::run(8, 500, 4, false));
    // A shuffled run is repeatable as well, and different.
    assert_eq!(memory::run(7, 500, 4, true), memory::run(7, 500, 4, true));
    assert_ne!(memory::run(7, 500, 4, true), memory::run(7, 500, 4, false));
}
