//! Bugs of the listener.

use crate::{Bug, Detector};

/// The list.
pub const BUGS: &[Bug] = &[Bug {
    id: "deleted-without-its-copy",
    place: "listener/src/poison.rs",
    wrong: "A message is deleted although its copy could not be put into the poison queue.",
    source: "LS1",
    caught_by: &[Detector::Listen],
}];
