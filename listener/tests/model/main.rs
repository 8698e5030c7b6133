//! Every order in which two owners and a service can act on one message.
//!
//! The simulation draws histories at random; this model explores all histories of a small world
//! (`stateright`). Each call to the service is one step, and between any two steps anything else
//! may happen: a step of the other owner, a tick of the clock that makes the message visible again,
//! the end of a handler with any verdict, an answer that is lost before or after the service acted,
//! a process that dies and restarts. An owner that makes no step for long corresponds to one that
//! was paused while its lock expired.
//!
//! The decisions about the message are the product's own: at its receipt and after its handler by
//! [`dispatch`](smalt_listener::rules::dispatch), with the memory of
//! [`done`](smalt_listener::rules::done). The model adds the order of the calls as in `message`,
//! `renew`, `settle` and `poison`. The two owners belong to two processes, or to one, which then
//! share its memory and its crashes.
//!
//! - LS1: the message is deleted only after a handler's success, or with a copy in the poison
//!   queue.
//! - LS2: an owner uses only the newest of its receipts.
//! - LS5: a message that was received too often reaches no handler.
//!
//! Each must hold in every state. States that must be reached show that the exploration is not
//! empty; deliberate mistakes show that the properties can fail.
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

/// Explores a model completely and returns the result.
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

/// Checks that a mistake violates this property.
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
fn every_mistake_is_caught() {
    for (mistake, property) in [
        (Mistake::DeletesAtReceipt, properties::LS1),
        (Mistake::DeletesBeforeTheCopy, properties::LS1),
        (Mistake::TakesALostPutForMade, properties::LS1),
        (Mistake::RemembersBeforeTheVerdict, properties::LS1),
        (Mistake::KeepsTheOldReceipt, properties::LS2),
        (Mistake::RunsWhateverTheCount, properties::LS5),
    ] {
        caught(mistake, property);
    }
}
