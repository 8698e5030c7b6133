//! The circumstances in which operations must meet: a closed list of states, parameters, boundaries
//! and neighbours.
//!
//! The [`outcomes`](crate::outcomes) count answers. Two histories with the same answers can differ
//! in what the service had to do for them: an update replaces a long text or a short one, a page
//! ends next to a delimiter or not. A [`Watch`] derives these cells from the state before an
//! operation, the operation and its answer. Generators do not know them.
//!
//! - `access`: windows and permissions of signatures.
//! - `blobs`: soft delete, tiers, searches by tags.
//! - `lists`: pages and batches.
//! - `messages`: texts.

mod access;
mod blobs;
mod lists;
mod messages;

use std::fmt;

use crate::expected::Expected;
use crate::state::Model;
use crate::vocabulary::Operation;

/// The most axes of an area.
const AXES: usize = 4;

/// The values of a cell on the axes of its area.
pub type At = [&'static str; AXES];

/// A part of the matrix: the cells that its axes span.
pub struct Area {
    /// What the cells are about.
    name: &'static str,
    /// The values on each axis.
    axes: [&'static [&'static str]; AXES],
    /// Whether a cell can exist.
    exists: fn(&At) -> bool,
    /// Whether an operation counts that is rejected.
    counts_refusals: bool,
}

/// An axis that an area does not have.
const NONE: &[&str] = &[""];

const AREAS: [&Area; 11] = [
    &messages::TEXTS,
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
];

/// One cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The name of the area.
    pub area: &'static str,
    /// The values on its axes.
    pub at: At,
}

impl Area {
    fn places(&'static self) -> impl Iterator<Item = Place> {
        let [a, b, c, d] = self.axes;
        let all = a.iter().flat_map(move |a| {
            let rest = b.iter().flat_map(move |b| {
                let rest = c.iter().flat_map(move |c| d.iter().map(move |d| (*c, *d)));
                rest.map(move |(c, d)| (*b, c, d))
            });
            rest.map(move |(b, c, d)| [*a, b, c, d])
        });
        all.filter(|at| (self.exists)(at)).map(|at| self.place(at))
    }

    fn place(&self, at: At) -> Place {
        Place {
            area: self.name,
            at,
        }
    }
}

/// Returns every cell.
pub fn places() -> impl Iterator<Item = Place> {
    AREAS.into_iter().flat_map(Area::places)
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.at.into_iter().filter(|value| !value.is_empty());
        let line = format!("{}: {}", self.area, at.collect::<Vec<_>>().join(", "));
        f.pad(&line)
    }
}

/// Derives the cells of the steps of one history.
#[derive(Debug, Default)]
pub struct Watch {
    /// The cells of the current step so far; the flag says that a rejection counts.
    found: Vec<(Place, bool)>,
    trail: blobs::Trail,
}

impl Watch {
    /// Looks at the state before an operation.
    pub fn before(&mut self, model: &Model, operation: &Operation) {
        self.found.clear();
        match operation {
            Operation::Queue(name, operation) => self.message(model, name, operation),
            Operation::Blob(id, operation) => self.blob(model, id, operation),
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
        match operation {
            Operation::Queue(_, operation) => self.read_messages(operation, expected),
            Operation::Container(_, operation) => self.listed(operation, expected),
            Operation::Table(name, operation) => self.table(model, name, operation, expected),
            _ => {}
        }
        let is_done = expected.is_done();
        let counted = self.found.drain(..);
        counted.filter_map(move |(place, refused)| (is_done || refused).then_some(place))
    }

    fn saw(&mut self, area: &Area, at: At) {
        self.found.push((area.place(at), area.counts_refusals));
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
