//! The circumstances in which operations must meet: a closed list of states, parameters, boundaries
//! and neighbours.
//!
//! The [`outcomes`](crate::outcomes) count answers. Two histories with the same answers can differ
//! in what the service had to do for them: an update replaces a long text or a short one, a page
//! ends next to a delimiter or not. A [`Watch`] derives these cells from the state before an
//! operation, the operation and its answer. Generators do not know them.
//!
//! - `area`: cells. `watch`: what was seen of one history.
//! - `access`: windows and permissions of signatures.
//! - `blobs`: soft delete, tiers, searches by tags.
//! - `lake`: paths that one interface makes and the other uses, renames.
//! - `lists`: pages and batches.
//! - `moments`: requests around the ends of leases, timeouts, times to live and retention.
//! - `sizes`: texts, contents and entities that are stored in another way when they are large.

mod access;
mod area;
mod blobs;
mod lake;
mod lists;
mod moments;
mod sizes;
mod watch;

pub use area::{Area, At, Place};
pub use watch::Watch;

use crate::expected::Expected;
use crate::state::Model;
use crate::vocabulary::Operation;

const AREAS: [&Area; 16] = [
    &sizes::TEXTS,
    &sizes::CONTENTS,
    &sizes::ENTITIES,
    &moments::ENDS,
    &blobs::DELETION,
    &blobs::RESTORED,
    &blobs::TIERS,
    &blobs::REHYDRATION,
    &blobs::SEARCHES,
    &lists::PAGES,
    &lists::SCANS,
    &lists::BATCHES,
    &access::WINDOWS,
    &access::RIGHTS,
    &lake::FACES,
    &lake::RENAMES,
];

/// Returns every cell.
pub fn places() -> impl Iterator<Item = Place> {
    AREAS.into_iter().flat_map(Area::places)
}

impl Watch {
    /// Looks at the state before an operation.
    pub fn before(&mut self, model: &Model, operation: &Operation) {
        self.found.clear();
        self.lake(model, operation);
        match operation {
            Operation::Queue(name, operation) => {
                self.message(model, name, operation);
                self.message_ends(model, name, operation);
            }
            Operation::Container(name, operation) => self.container_ends(model, name, operation),
            Operation::Blob(id, operation) => {
                self.content_before(model, id);
                self.blob(model, id, operation);
                self.blob_ends(model, id, operation);
            }
            Operation::Table(name, operation) => self.entities_before(model, name, operation),
            Operation::Access(service, name, operation) => {
                self.access(model, *service, name, operation);
            }
            _ => {}
        }
        self.trail.before(model, operation);
    }

    /// Returns the cells of the operation. `model` is the state after it.
    pub fn after(
        &mut self,
        model: &Model,
        operation: &Operation,
        expected: &Expected,
    ) -> impl Iterator<Item = Place> {
        if expected.is_done() {
            self.searched(operation);
            self.trail.after(model, operation);
        }
        self.lake_after(model, operation, expected);
        match operation {
            Operation::Blob(id, operation) => self.content_after(model, id, operation),
            Operation::Queue(_, operation) => self.read_messages(operation, expected),
            Operation::Container(_, operation) if !model.is_hierarchical() => {
                self.listed(operation, expected);
            }
            Operation::Table(name, operation) => self.table(model, name, operation, expected),
            _ => {}
        }
        let is_done = expected.is_done();
        let counted = self.found.drain(..);
        counted.filter_map(move |(place, refused)| (is_done || refused).then_some(place))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Names are the keys of counts, so no two cells may have the same one.
    #[test]
    fn every_cell_has_its_own_name() {
        let all: BTreeSet<String> = places().map(|place| place.to_string()).collect();
        assert_eq!(all.len(), places().count());
        let areas: BTreeSet<&str> = places().map(|place| place.area).collect();
        assert_eq!(areas.len(), AREAS.len(), "an area without cells");
    }
}
