//! Every order in which two workers, an owner and a service can meet over one blob.
//!
//! The simulation draws histories at random; here all of a small world are gone through
//! (`stateright`). Each call to the service is one step, and between any two steps anything else
//! may happen: the other worker's step, a tick of the service's clock, the owner who writes,
//! extends or deletes the blob, a copy that ends well or badly, an answer that is lost before or
//! after the service did what was asked. A worker that is not chosen for long is one that was
//! paused, or died.
//!
//! What a worker decides is the product's own: [`decide`](smalt_sweeper::decide) about the blob,
//! the [`ledger`](smalt_sweeper::state::ledger) about the state document, the
//! [origin](smalt_sweeper::provenance::Origin) by which a copy is recognised. What stands here
//! beside that is the order of the calls, as `claim`, `store`, `work` and `mover` have it, with
//! ETags alone: the lease on the document only takes orders away.
//!
//! - SS1: what a worker deletes is a version whose time is over.
//! - SS4: a version that is to be kept elsewhere is deleted only when a whole copy of it stands
//!   there.
//! - SS6: every write of the state document builds on the one before, and raises the fence.
//!
//! Each has to hold in every state. That the world is not empty is shown by states that have to be
//! reached, and that the properties can fail by mistakes that are made on purpose.
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

/// An owner who changes the blob twice, and no answer is lost.
#[test]
fn every_order_with_a_busy_owner_is_safe() {
    let found = explore(Small {
        mistake: None,
        owner: 2,
        losses: 0,
    });
    found.assert_properties();
}

/// An owner who changes the blob once, and answers that are lost.
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

/// The violation of this property that a mistake leads to.
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
fn a_delete_without_its_condition_is_caught() {
    caught(Mistake::DeletesUnconditionally, 1, properties::SS1);
}

#[test]
fn the_own_clock_is_caught() {
    caught(Mistake::DecidesByItsOwnClock, 0, properties::SS1);
}

#[test]
fn a_delete_before_the_copy_is_verified_is_caught() {
    caught(Mistake::DeletesUnverified, 0, properties::SS4);
}

#[test]
fn a_copy_of_another_version_that_is_taken_for_its_own_is_caught() {
    caught(Mistake::TakesAnyCopy, 1, properties::SS4);
}

#[test]
fn a_write_of_the_state_without_its_condition_is_caught() {
    caught(Mistake::WritesStateUnconditionally, 0, properties::SS6);
}
