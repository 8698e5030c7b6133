//! Every order in which two owners and a service can meet over one message.
//!
//! The simulation draws histories at random; here all of a small world are gone through
//! (`stateright`). Each call to the service is one step, and between any two steps anything else
//! may happen: the other owner's step, a tick of the clock by which the message becomes visible
//! again, a handler that ends one way or the other, an answer that is lost before or after the
//! service did what was asked, a process that dies and begins anew. An owner that is not chosen for
//! long is one that was paused while its lock lapsed.
//!
//! What is decided about the message is the product's own: at its receipt and after its handler by
//! [`dispatch`](smalt_listener::rules::dispatch), with the memory of
//! [`done`](smalt_listener::rules::done). What stands here beside that is the order of the calls,
//! as `message`, `renew`, `settle` and `poison` have it. The two owners are those of two processes,
//! or of one, which share its memory and its death.
//!
//! - LS1: the message is deleted only after a handler's success, or with a copy in the poison
//!   queue.
//! - LS2: of the receipts that an owner was given, it shows the newest only.
//! - LS5: a message that was taken too often reaches no handler.
//!
//! Each has to hold in every state. That the world is not empty is shown by states that have to be
//! reached, and that the properties can fail by mistakes that are made on purpose.
#![expect(
    clippy::expect_used,
    reason = "a panic is how a test fails, in its helpers, too"
)]

mod owner;
mod properties;
mod scene;
mod service;

use std::num::NonZeroUsize;

use stateright::{Checker, HasDiscoveries, Model};

use scene::{Mistake, Small};

/// A model that is explored to its end: what it found.
fn explore(small: Small) -> impl Checker<Small> {
    let threads = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let found = small.checker().threads(threads).spawn_bfs().join();
    println!(
        "{small:?}: {} states, {} steps deep at most",
        found.unique_state_count(),
        found.max_depth()
    );
    found
}

const SAFE: Small = Small {
    mistake: None,
    one_process: false,
    losses: 1,
    crashes: 1,
};

#[test]
fn every_order_of_two_processes_is_safe() {
    let found = explore(SAFE);
    found.assert_properties();
    assert!(found.unique_state_count() > 50_000);
}

#[test]
fn every_order_within_one_process_is_safe() {
    let found = explore(Small {
        one_process: true,
        ..SAFE
    });
    found.assert_properties();
}

/// The violation of this property that a mistake leads to.
fn caught(mistake: Mistake, property: &'static str) {
    let small = Small {
        mistake: Some(mistake),
        ..SAFE
    };
    let threads = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let wanted = HasDiscoveries::AnyOf([property].into());
    let found = small.checker().threads(threads).finish_when(wanted);
    let found = found.spawn_bfs().join();
    let path = found.discovery(property).expect("the mistake is caught");
    assert!(properties::broken(path.last_state()).contains(&property));
    println!("{mistake:?} breaks {property}: {:?}", path.into_actions());
}

#[test]
fn a_delete_before_the_handler_is_caught() {
    caught(Mistake::DeletesAtReceipt, properties::LS1);
}

#[test]
fn a_delete_before_the_copy_is_caught() {
    caught(Mistake::DeletesBeforeTheCopy, properties::LS1);
}

#[test]
fn a_copy_that_is_taken_for_put_is_caught() {
    caught(Mistake::TakesALostPutForMade, properties::LS1);
}

#[test]
fn a_memory_before_the_verdict_is_caught() {
    caught(Mistake::RemembersBeforeTheVerdict, properties::LS1);
}

#[test]
fn the_old_receipt_is_caught() {
    caught(Mistake::KeepsTheOldReceipt, properties::LS2);
}

#[test]
fn a_run_whatever_the_count_is_caught() {
    caught(Mistake::RunsWhateverTheCount, properties::LS5);
}
