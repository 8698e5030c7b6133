//! Properties that must hold in every state, and states that must be reached.

use smalt_listener::Outcome;
use stateright::Property;

use crate::owner::Phase;
use crate::scene::{Small, State};

pub(crate) const LS1: &str = "LS1: deleted only when handled, or with its copy";
pub(crate) const LS2: &str = "LS2: only the newest receipt is shown";
pub(crate) const LS5: &str = "LS5: taken too often, it reaches no handler";

/// Returns the properties that this state violates.
pub(crate) fn broken(world: &State) -> Vec<&'static str> {
    let wrongs = world.wrongs;
    let all = [
        (wrongs.deleted_unhandled, LS1),
        (wrongs.old_receipt_shown, LS2),
        (wrongs.handled_too_often, LS5),
    ];
    let broken = all.into_iter().filter(|(is_broken, _)| *is_broken);
    broken.map(|(_, name)| name).collect()
}

fn ended(world: &State, outcome: Outcome) -> bool {
    let mut owners = world.owners.iter();
    owners.any(|owner| owner.last == Some(outcome))
}

fn both_run(world: &State) -> bool {
    let mut owners = world.owners.iter();
    owners.all(|owner| owner.phase == Phase::Running)
}

pub(crate) fn all() -> Vec<Property<Small>> {
    vec![
        Property::always(LS1, |_, world: &State| !world.wrongs.deleted_unhandled),
        Property::always(LS2, |_, world: &State| !world.wrongs.old_receipt_shown),
        Property::always(LS5, |_, world: &State| !world.wrongs.handled_too_often),
        Property::sometimes("done", |_, w| ended(w, Outcome::Done)),
        Property::sometimes("gone", |_, w| ended(w, Outcome::Gone)),
        Property::sometimes("unacked", |_, w| ended(w, Outcome::Unacked)),
        Property::sometimes("retried", |_, w| ended(w, Outcome::Retried)),
        Property::sometimes("retry unset", |_, w| ended(w, Outcome::RetryUnset)),
        Property::sometimes("poisoned", |_, w| ended(w, Outcome::Poisoned)),
        Property::sometimes("poisoned, unacked", |_, w| {
            ended(w, Outcome::PoisonedUnacked)
        }),
        Property::sometimes("poison failed", |_, w| ended(w, Outcome::PoisonFailed)),
        Property::sometimes("lost lock", |_, w| ended(w, Outcome::LostLock)),
        Property::sometimes("a duplicate is deleted", |_, w| {
            ended(w, Outcome::DuplicateDeleted)
        }),
        Property::sometimes("two handle it at a time", |_, w| both_run(w)),
        Property::sometimes("a copy is put twice", |_, w: &State| w.copies > 1),
        Property::sometimes("it was taken too often", |_, w: &State| w.was_refused),
    ]
}
