//! Named points of the commit path, at which a group of commits can be held and the process can be
//! told to die ([`failpoint`]).
//!
//! A concurrency test must choose the order of events. A *stepped* store stops at every point until
//! it is told to continue ([`Store::step`](super::Store::step)); every other store passes them
//! without delay, and without the feature `schedule` they do nothing.

#[cfg(any(test, feature = "schedule"))]
use std::sync::OnceLock;

#[cfg(any(test, feature = "schedule"))]
use parking_lot::Mutex;

use super::failpoint;

/// The points in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Point {
    /// The group is formed; no operation has run.
    Taken,
    /// The operations have run; their writes are collected.
    Collected,
    /// Payloads are synced; the log has the writes, and readers do not see them.
    Logged,
    /// The log is synced; readers still do not see the writes.
    Synced,
    /// Readers see the writes; no commit is answered.
    Published,
    /// All commits are answered.
    Answered,
}

impl Point {
    /// All points in their order.
    pub const ALL: [Point; 6] = [
        Point::Taken,
        Point::Collected,
        Point::Logged,
        Point::Synced,
        Point::Published,
        Point::Answered,
    ];
}

/// Reaches the failpoint of a point, if it has one.
fn reach(point: Point) {
    match point {
        Point::Collected => failpoint::reach("commit.collected"),
        Point::Logged => failpoint::reach("commit.logged"),
        Point::Synced => failpoint::reach("commit.synced"),
        Point::Published => failpoint::reach("commit.published"),
        Point::Taken | Point::Answered => {}
    }
}

/// The current point of the group in a stepped store.
#[derive(Debug, Default)]
pub(super) struct Points {
    #[cfg(any(test, feature = "schedule"))]
    held_at: OnceLock<Mutex<Point>>,
}

impl Points {
    /// Continues at once; in a stepped store when it is told to.
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
            // Nothing wakes the task: the stepping test polls it again.
            false => std::task::Poll::Pending,
        })
        .await;
    }

    /// Continues at once.
    #[cfg(not(any(test, feature = "schedule")))]
    pub(super) async fn pass(&self, point: Point) {
        reach(point);
    }

    /// Holds every group at every point from now on.
    #[cfg(any(test, feature = "schedule"))]
    pub(super) fn hold(&self) {
        // This is called once per store.
        let _ = self.held_at.set(Mutex::new(Point::Answered));
    }

    /// Returns whether groups are held.
    pub(super) fn are_held(&self) -> bool {
        #[cfg(any(test, feature = "schedule"))]
        return self.held_at.get().is_some();
        #[cfg(not(any(test, feature = "schedule")))]
        false
    }

    /// Returns the point at which the group is held.
    #[cfg(any(test, feature = "schedule"))]
    pub(super) fn held_at(&self) -> Point {
        self.held_at
            .get()
            .map_or(Point::Answered, |held_at| *held_at.lock())
    }
}
