//! Bugs of the sweeper.

use crate::{Bug, Detector};

/// The list.
pub const BUGS: &[Bug] = &[Bug {
    id: "copy-unverified",
    place: "sweeper/src/mover.rs",
    wrong: "A finished copy counts although its length or MD5 is not the source's.",
    source: "SS4",
    caught_by: &[Detector::Sweep],
}];
