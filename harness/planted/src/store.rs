//! Bugs of the store: what must survive a crash.

use crate::{Bug, Detector};

/// The list.
pub const BUGS: &[Bug] = &[Bug {
    id: "acknowledged-before-sync",
    place: "emulator/src/store/committer.rs",
    wrong: "A durable commit is answered before the engine's file is synced.",
    source: "C1",
    caught_by: &[Detector::StoreCrash],
}];
