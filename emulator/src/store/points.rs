//! Named points of the commit path: a group of commits can be held there, and the process can be
//! told to die there ([`failpoint`]).
//!
//! Who tests what happens at once has to choose what happens next. A store that is *stepped* stops
//! at every point until it is told to go on ([`Store::step`](super::Store::step)); every other
//! store passes them without noticing, and without the feature `schedule` they are nothing at all.

#[cfg(any(test, feature = "schedule"))]
use std::sync::OnceLock;

#[cfg(any(test, feature = "schedule"))]
use parking_lot::Mutex;

use super::failpoint;

/// The points in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Point {
    /// The group is formed, nothing has run.
    Taken,
    /// Its operations have run; their writes are collected.
    Collected,
    /// Payloads are synced, the old values lie over the engine.
    Masked,
    /// The engine has some of the writes; readers see none of them.
    HalfApplied,
    /// The engine has the writes; readers do not see them.
    Applied,
    /// The engine is synced; readers still do not see it.
    Synced,
    /// Readers see it, nobody has been answered.
    Published,
    /// Everybody has been answered.
    Answered,
}

impl Point {
    /// All of them.
    pub const ALL: [Point; 8] = [
        Point::Taken,
        Point::Collected,
        Point::Masked,
        Point::HalfApplied,
        Point::Applied,
        Point::Synced,
        Point::Published,
        Point::Answered,
    ];
}

/// The failpoint of a point, where it has one.
fn reach(point: Point) {
    match point {
        Point::Collected => failpoint::reach("commit.collected"),
        Point::Masked => failpoint::reach("commit.masked"),
        Point::Applied => failpoint::reach("commit.applied"),
        Point::Synced => failpoint::reach("commit.synced"),
        Point::Published => failpoint::reach("commit.published"),
        Point::Taken | Point::HalfApplied | Point::Answered => {}
    }
}

/// Where the group under way stands, in a store that is stepped.
#[derive(Debug, Default)]
pub(super) struct Points {
    #[cfg(any(test, feature = "schedule"))]
    held_at: OnceLock<Mutex<Point>>,
}

impl Points {
    /// Goes on at once, unless the store is stepped: then when it is told to.
    #[cfg(any(test, feature = "schedule"))]
    pub(super) async fn pass(&self, point: Point) {
        reach(point);
        let Some(held_at) = self.held_at.get() else {
            return;
        };
        *held_at.lock() = point;
        let mut was_held = false;
        std::future::poll_fn(|_| match std::mem::replace(&mut was_held, true) {
            true => std::task::Poll::Ready(()),
            // Nobody wakes it: whoever steps polls again.
            false => std::task::Poll::Pending,
        })
        .await;
    }

    /// Goes on at once.
    #[cfg(not(any(test, feature = "schedule")))]
    pub(super) async fn pass(&self, point: Point) {
        reach(point);
    }

    /// Holds every group at every point from now on.
    #[cfg(any(test, feature = "schedule"))]
    pub(super) fn hold(&self) {
        // A store is made to be stepped once.
        let _ = self.held_at.set(Mutex::new(Point::Answered));
    }

    /// Whether groups are held.
    pub(super) fn are_held(&self) -> bool {
        #[cfg(any(test, feature = "schedule"))]
        return self.held_at.get().is_some();
        #[cfg(not(any(test, feature = "schedule")))]
        false
    }

    /// Where the group under way is held.
    #[cfg(any(test, feature = "schedule"))]
    pub(super) fn held_at(&self) -> Point {
        self.held_at
            .get()
            .map_or(Point::Answered, |held_at| *held_at.lock())
    }
}
