//! Bugs of the service: its rules and operations.

use crate::{Bug, Detector};

/// The list.
pub const BUGS: &[Bug] = &[Bug {
    id: "if-none-match-ignored",
    place: "emulator/src/rules/conditions.rs",
    wrong: "A creation with `If-None-Match: *` replaces the blob that is there.",
    source: "Specifying Conditional Headers",
    caught_by: &[Detector::Histories],
}];
