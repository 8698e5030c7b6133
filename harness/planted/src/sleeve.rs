//! Bugs of the workers' storage client.

use crate::{Bug, Detector};

/// The list.
pub const BUGS: &[Bug] = &[Bug {
    id: "put-message-repeated",
    place: "sleeve/src/policy/retry.rs",
    wrong: "Put Message goes out again though the first try may have been executed.",
    source: "Put Message is not idempotent; no message twice",
    caught_by: &[Detector::Listen],
}];
