//! The properties of every state, and the states that must be reached.

use stateright::Property;

use crate::scene::{CopyState, Small, World};
use crate::worker::{Phase, WorkerOutcome};

pub(crate) const SS1: &str = "SS1: only a due version is deleted";
pub(crate) const SS4: &str = "SS4: a version to keep is deleted only with a complete copy";
pub(crate) const SS6: &str = "SS6: the state document has one history, and its fence increases";

/// Returns the properties that this state violates.
pub(crate) fn broken(world: &World) -> Vec<&'static str> {
    let wrongs = world.wrongs;
    let all = [
        (wrongs.deleted_too_early, SS1),
        (wrongs.deleted_without_copy, SS4),
        (wrongs.state_branched, SS6),
    ];
    let broken = all.into_iter().filter(|(is_broken, _)| *is_broken);
    broken.map(|(_, name)| name).collect()
}

fn ended(world: &World, outcome: WorkerOutcome) -> bool {
    let mut workers = world.workers.iter();
    workers.any(|worker| worker.last == Some(outcome))
}

fn both_work(world: &World) -> bool {
    let mut workers = world.workers.iter();
    workers.all(|worker| matches!(worker.phase, Phase::Work(..)))
}

fn is_reclaimed(world: &World) -> bool {
    let mut pages = world.document.0.containers.iter().flat_map(|c| &c.pages);
    pages.any(|page| page.attempt > 1)
}

pub(crate) fn all() -> Vec<Property<Small>> {
    vec![
        Property::always(SS1, |_, world: &World| !world.wrongs.deleted_too_early),
        Property::always(SS4, |_, world: &World| !world.wrongs.deleted_without_copy),
        Property::always(SS6, |_, world: &World| !world.wrongs.state_branched),
        Property::sometimes("a blob is deleted", |_, w| ended(w, WorkerOutcome::Deleted)),
        Property::sometimes("a blob is moved", |_, w| ended(w, WorkerOutcome::Moved)),
        Property::sometimes("a blob is gone before", |_, w| {
            ended(w, WorkerOutcome::Gone)
        }),
        Property::sometimes("a change is noticed", |_, w| {
            ended(w, WorkerOutcome::Changed)
        }),
        Property::sometimes("a copy fails", |_, w| ended(w, WorkerOutcome::CopyFailed)),
        Property::sometimes("a page is settled by another", |_, w| {
            ended(w, WorkerOutcome::Overtaken)
        }),
        Property::sometimes("a page is reclaimed", |_, w| is_reclaimed(w)),
        Property::sometimes("two work on the same blob", |_, w| both_work(w)),
        Property::sometimes("a copy was made twice", |_, w: &World| w.copies.len() > 1),
        Property::sometimes("a copy is made anew", |_, w: &World| {
            let whole = |copy: &crate::scene::Copy| copy.state == CopyState::Whole;
            w.copies.values().any(|copy| whole(copy) && copy.etag > 2)
        }),
        Property::sometimes("a second cycle is swept", |_, w: &World| {
            w.document.0.cycle > 1
        }),
    ]
}
