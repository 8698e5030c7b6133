//! Explores every order in which two workers, an owner and a service can interact over one blob.
//!
//! The simulation draws histories at random; this test explores a small world exhaustively
//! (`stateright`). Each call to the service is one step, and anything else may happen between two
//! steps: a step of the other worker, a tick of the service's clock, a write, extension or delete
//! by the owner, a copy that succeeds or fails, a response that is lost before or after the service
//! executed the call. A worker without steps for a long time models one that was paused or died.
//!
//! The workers' decisions are the product's own code: [`decide`](smalt_sweeper::decide) about the
//! blob, the [`ledger`](smalt_sweeper::state::ledger) about the state document, and the
//! [origin](smalt_sweeper::provenance::Origin) by which a copy is recognized. The model itself only
//! contains the order of the calls, as in `claim`, `store`, `work` and `mover`, with ETags alone:
//! the lease on the document only removes orders.
//!
//! - SS1: a worker deletes only a version that is due.
//! - SS4: a version that is to be kept elsewhere is deleted only when a complete copy of it exists
//!   there.
//! - SS6: every write of the state document builds on the previous one and increments the fence.
//!
//! Each property must hold in every state. States that must be reached show that the world is not
//! empty, and deliberate mistakes show that the properties can fail.
#![expect(
    clippy::expect_used,
    reason = "a panic is how a test fails, in its helpers, too"
)]

mod properties;
mod scene;
mod service;
mod worker;

use std::num::NonZeroUsize;

use stateright::{Checker, HasDiscoveries, Model};

use scene::{Mistake, Small};

/// Explores a model to its end and returns the results.
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

/// The owner changes the blob twice, and no response is lost.
#[test]
fn every_order_with_owner_changes_is_safe() {
    let found = explore(Small {
        mistake: None,
        owner: 2,
        losses: 0,
    });
    found.assert_properties();
}

/// The owner changes the blob once, and responses are lost.
#[test]
fn every_order_with_lost_answers_is_safe() {
    let found = explore(Small {
        mistake: None,
        owner: 1,
        losses: 1,
    });
    for property in [properties::SS1, properties::SS4, properties::SS6] {
        found.assert_no_discovery(property);
    }
    assert!(found.unique_state_count() > 100_000);
}

fn caught(mistake: Mistake, owner: u8, property: &'static str) {
    let small = Small {
        mistake: Some(mistake),
        owner,
        losses: 0,
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
    for (mistake, owner, property) in [
        (Mistake::DeletesUnconditionally, 1, properties::SS1),
        (Mistake::DecidesByItsOwnClock, 0, properties::SS1),
        (Mistake::DeletesUnverified, 0, properties::SS4),
        (Mistake::TakesAnyCopy, 1, properties::SS4),
        (Mistake::WritesStateUnconditionally, 0, properties::SS6),
    ] {
        caught(mistake, owner, property);
    }
}
