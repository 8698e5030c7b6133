//! Bugs of the store: what must survive a crash.

use crate::{Bug, Detector};

/// The list.
pub const BUGS: &[Bug] = &[
    Bug {
        id: "acknowledged-before-sync",
        place: "emulator/src/store/committer.rs",
        wrong: "A durable commit is answered before the engine's file is synced.",
        source: "C1",
        caught_by: &[Detector::StoreCrash],
    },
    Bug {
        id: "payload-not-synced",
        place: "emulator/src/store/committer.rs",
        wrong: "A commit is acknowledged before the bytes that it names are synced.",
        source: "C1, C3",
        caught_by: &[Detector::StoreCrash],
    },
    Bug {
        id: "unsynced-visible",
        place: "emulator/src/store/committer.rs",
        wrong: "Readers see what is written and not durable yet.",
        source: "architecture: readers see only durable state",
        caught_by: &[Detector::StoreCrash, Detector::Bursts],
    },
    Bug {
        id: "failure-forgotten",
        place: "emulator/src/store/committer.rs",
        wrong: "After a failed write the store goes on as if it knew what is on disk.",
        source: "fsyncgate; architecture",
        caught_by: &[Detector::StoreCrash],
    },
    Bug {
        id: "refused-writes-kept",
        place: "emulator/src/store/commit.rs",
        wrong: "What an operation wrote before it failed is kept.",
        source: "C2; a group keeps its members apart",
        caught_by: &[Detector::StoreCrash],
    },
    Bug {
        id: "time-goes-back",
        place: "emulator/src/store/commit.rs",
        wrong: "The time of commits follows a clock that is set back.",
        source: "architecture: time never goes back",
        caught_by: &[Detector::StoreCrash],
    },
    Bug {
        id: "etags-again-after-restart",
        place: "emulator/src/store/commit.rs",
        wrong: "The counter behind ETags begins anew when the store is opened.",
        source: "a usual mistake; C4",
        caught_by: &[Detector::StoreCrash, Detector::Restarts],
    },
    Bug {
        id: "group-blind",
        place: "emulator/src/store/commit.rs",
        wrong: "Leases and conditions are checked against the state before the group of a commit.",
        source: "a usual mistake",
        caught_by: &[Detector::StoreCrash, Detector::Bursts],
    },
    Bug {
        id: "checksum-unchecked",
        place: "emulator/src/store/extents/segment.rs",
        wrong: "Damaged bytes are handed out.",
        source: "a usual mistake; C3",
        caught_by: &[Detector::StoreCrash],
    },
    Bug {
        id: "failed-sync-forgotten",
        place: "emulator/src/store/extents/segment.rs",
        wrong: "A segment whose sync failed once is trusted after a later sync.",
        source: "fsyncgate",
        caught_by: &[Detector::StoreCrash],
    },
    Bug {
        id: "segment-name-not-synced",
        place: "emulator/src/store/extents/segment.rs",
        wrong: "The directory is not synced after a new segment.",
        source: "C1; LazyFS",
        caught_by: &[Detector::StoreCrash],
    },
    Bug {
        id: "segment-freed-under-readers",
        place: "emulator/src/store/extents/registry.rs",
        wrong: "A segment is deleted while somebody reads it or its commit is under way.",
        source: "a usual mistake: an extent freed before it is durable",
        caught_by: &[Detector::StoreCrash],
    },
    Bug {
        id: "moved-payload-not-held",
        place: "emulator/src/store/maintain.rs",
        wrong: "Compaction commits a copy that is not synced, and then deletes the original.",
        source: "C1, C3",
        caught_by: &[Detector::StoreCrash],
    },
    Bug {
        id: "reference-not-counted",
        place: "emulator/src/store/payload.rs",
        wrong: "A second holder of the same bytes is not counted.",
        source: "C3",
        caught_by: &[Detector::StoreCrash],
    },
    Bug {
        id: "released-bytes-counted",
        place: "emulator/src/store/payload.rs",
        wrong: "Bytes that nobody holds any more still count as live in their segment.",
        source: "C5",
        caught_by: &[Detector::StoreCrash],
    },
    Bug {
        id: "scan-sees-half",
        place: "emulator/src/store/shared.rs",
        wrong: "A scan sees what is written and not published: half of a transaction.",
        source: "T9: a query sees one state of a partition",
        caught_by: &[Detector::Bursts],
    },
];
