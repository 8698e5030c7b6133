//! Bugs of the workers' storage client.

use crate::{Bug, Detector};

/// The list.
pub const BUGS: &[Bug] = &[
    Bug {
        id: "put-message-repeated",
        place: "sleeve/src/policy/retry.rs",
        wrong: "Put Message goes out again though the first try may have been executed.",
        source: "Put Message is not idempotent; no message twice",
        caught_by: &[Detector::SleeveTests, Detector::Listen],
    },
    Bug {
        id: "metadata-name-exact",
        place: "sleeve/src/port.rs",
        wrong: "Metadata names are compared by case.",
        source: "DS26",
        caught_by: &[Detector::Sweep],
    },
    Bug {
        id: "source-condition-not-sent",
        place: "sleeve/src/storage/copies.rs",
        wrong: "A copy does not say which version of its source it is to take.",
        source: "DS6, SS3",
        caught_by: &[Detector::Sweep],
    },
    Bug {
        id: "retry-after-ignored",
        place: "sleeve/src/policy/backoff.rs",
        wrong: "A call is tried again before the time that the service asked for.",
        source: "D4",
        caught_by: &[Detector::Sweep],
    },
];
