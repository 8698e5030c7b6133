//! Checks what is left at the end: due blobs (SL1), pages (SL2), cycles beyond their limit (SS10).

use smalt_protocol::Timestamp;
use smalt_sweeper::Collision;

use super::super::model::{Key, Version};
use super::super::plan::converges_s;
use super::{Judge, unquoted};
use crate::scenario::campaign::Violation;

impl Judge<'_> {
    /// SL1 and SL2 of the fleet: checks that blobs which were due long enough are gone, and that no
    /// page is left.
    pub(super) fn converged(&mut self, number: usize, at: Timestamp) {
        let calm = self.calm.unwrap_or(Timestamp::MIN);
        let found = self.left(|due, made| {
            let since = due.max(made).max(calm);
            since.plus_s(converges_s(self.plan)) <= at
        });
        for what in found {
            self.violated("SL1", number, what);
        }
        for what in self.ledger.left_over(at) {
            self.violated("SL2", number, what);
        }
    }

    /// SL1: checks that every due blob is gone.
    pub(super) fn end(&mut self, now: Timestamp) {
        let found = self.left(|due, _| due.plus_s(3_600) < now);
        let found = found.into_iter().map(|what| Violation::of_run("SL1", what));
        self.violations.extend(found);
        if self.ledger.pages_open() > 0 {
            let what = format!("{} pages are open at the end", self.ledger.pages_open());
            self.violations.push(Violation::of_run("SL2", what));
        }
        for what in self.ledger.beyond(self.plan) {
            self.violations.push(Violation::of_run("SS10", what));
        }
        if self.ledger.tripped {
            self.notes.mark("circuit breaker tripped");
        }
    }

    /// Returns the blobs that should be gone; `late` gets the times at which a blob was due and
    /// made.
    fn left(&self, late: impl Fn(Timestamp, Timestamp) -> bool) -> Vec<String> {
        let blobs = self.model.blobs.iter();
        let left = blobs.filter(|(key, version)| {
            self.is_swept(key)
                && (self.due(key, version))
                    .is_some_and(|due| late(due, version.made.max(version.tagged.1)))
                && self.may_go(key, version)
        });
        let text = |(key, version): (&Key, &Version)| {
            let ttl = version.value("timetolive");
            let dead = version.value("deadblobcontainer");
            format!("{key:?} is left: {ttl:?}, {dead:?}")
        };
        left.map(text).collect()
    }

    /// Whether nothing prevents the removal of a due blob.
    fn may_go(&self, key: &Key, version: &Version) -> bool {
        let kept = self.snapshots.contains(key) && !self.plan.with_snapshots;
        if kept || self.plan.removals_max > 0 {
            return false;
        }
        if version.value("deadblobcontainer").is_none() {
            return true;
        }
        let Some(wanted) = self.destination(key, version) else {
            return false;
        };
        let there = self.model.blobs.get(&wanted);
        // A copy that its owner has truncated does not justify a delete: it is reported each time.
        let this = Some(unquoted(&version.etag));
        let cut_short =
            |copy: &Version| copy.by_owner && copy.value("sourceetag").map(unquoted) == this;
        if there.is_some_and(cut_short) {
            return false;
        }
        there.is_none() || self.plan.on_collision != Collision::Fail
    }
}
