//! The cells of the matrix.

use std::fmt;

/// The most axes of an area.
const AXES: usize = 4;

/// The values of a cell on the axes of its area.
pub type At = [&'static str; AXES];

/// A part of the matrix: the cells that its axes span.
pub struct Area {
    /// What the cells are about.
    pub(super) name: &'static str,
    /// The values on each axis.
    pub(super) axes: [&'static [&'static str]; AXES],
    /// Whether a cell can exist.
    pub(super) exists: fn(&At) -> bool,
    /// Whether an operation counts that is rejected.
    pub(super) counts_refusals: bool,
}

/// An axis that an area does not have.
pub(super) const NONE: &[&str] = &[""];

/// One cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The name of the area.
    pub area: &'static str,
    /// The values on its axes.
    pub at: At,
}

impl Area {
    pub(super) fn places(&'static self) -> impl Iterator<Item = Place> {
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

    pub(super) fn place(&self, at: At) -> Place {
        Place {
            area: self.name,
            at,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.at.into_iter().filter(|value| !value.is_empty());
        let line = format!("{}: {}", self.area, at.collect::<Vec<_>>().join(", "));
        f.pad(&line)
    }
}
