//! Planted bugs: mistakes put into smalt on purpose, behind the feature `planted` of its crates.
//!
//! A check that has never failed proves nothing. So each bug of the closed list ([`bugs`]) is
//! switched on in turn, and the checks of the project have to catch it (`harness planted`,
//! `docs/planted.md`). At its place the bug is one line, `planted` with its id in a condition;
//! without the feature that is the constant `false`, and nothing of this package is in a product.
//!
//! At most one bug is switched on: on a thread ([`plant`]), so that tests can run side by side, or
//! in the whole process, where the environment names it ([`VARIABLE`]).
//!
//! # Layout
//! - [`emulator`], [`store`], [`sleeve`], [`sweeper`], [`listener`]: the list, one file per area.
//! - [`switch`]: which one is on.

pub mod emulator;
pub mod listener;
pub mod sleeve;
pub mod store;
pub mod sweeper;
pub mod switch;

pub use switch::{Active, Planted, VARIABLE, is_active, plant, struck};

/// One mistake.
#[derive(Debug, PartialEq, Eq)]
pub struct Bug {
    /// Its name, in lower case with hyphens; at its place `planted("name")`.
    pub id: &'static str,
    /// The one file that has it, from the root of the tree.
    pub place: &'static str,
    /// What is wrong, in a sentence.
    pub wrong: &'static str,
    /// Where the idea comes from: a defect of a source (`DS4`, `DL7`), a promise (`SS3`, `C1`), a
    /// rule of a document, a mistake that was really made.
    pub source: &'static str,
    /// What has to catch it, tried in this order until one does.
    pub caught_by: &'static [Detector],
}

/// A check of the harness that can catch a bug. Seeds and budgets are the runner's: the same for
/// every bug, those of `ci/check.sh`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Detector {
    /// Random histories of one client in memory, judged by the model.
    Histories,
    /// The same of tables.
    Tables,
    /// Those of blobs and queues on disk, stopped and started in between.
    Restarts,
    /// Clients at once, judged by a search for an order that the model agrees to.
    Bursts,
    /// The project's own recorded traces, replayed.
    Traces,
    /// The store on a disk that loses what was not synced, and that fails.
    StoreCrash,
    /// The storage client's own tests.
    SleeveTests,
    /// The sweeper's own tests.
    SweeperTests,
    /// The listener's own tests.
    ListenerTests,
    /// The sweeper in simulation, judged by its history.
    Sweep,
    /// The listener in simulation, judged by its history.
    Listen,
}

impl Detector {
    /// All of them.
    pub const ALL: [Detector; 11] = [
        Detector::Histories,
        Detector::Tables,
        Detector::Restarts,
        Detector::Bursts,
        Detector::Traces,
        Detector::StoreCrash,
        Detector::SleeveTests,
        Detector::SweeperTests,
        Detector::ListenerTests,
        Detector::Sweep,
        Detector::Listen,
    ];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Detector::Histories => "histories",
            Detector::Tables => "tables",
            Detector::Restarts => "restarts",
            Detector::Bursts => "bursts",
            Detector::Traces => "traces",
            Detector::StoreCrash => "store-crash",
            Detector::SleeveTests => "sleeve-tests",
            Detector::SweeperTests => "sweeper-tests",
            Detector::ListenerTests => "listener-tests",
            Detector::Sweep => "sweep",
            Detector::Listen => "listen",
        }
    }

    /// Where the check is tests of a package: its name, and what the names of the tests begin with.
    pub fn tests(self) -> Option<(&'static str, &'static str)> {
        match self {
            Detector::StoreCrash => Some(("smalt", "store::")),
            Detector::SleeveTests => Some(("smalt-sleeve", "")),
            Detector::SweeperTests => Some(("smalt-sweeper", "")),
            Detector::ListenerTests => Some(("smalt-listener", "")),
            _ => None,
        }
    }
}

/// Parts of the project that bugs are planted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Area {
    /// The service: rules and operations.
    Emulator,
    /// Its store.
    Store,
    /// The workers' storage client.
    Sleeve,
    /// The sweeper.
    Sweeper,
    /// The listener.
    Listener,
}

impl Area {
    /// All of them.
    pub const ALL: [Area; 5] = [
        Area::Emulator,
        Area::Store,
        Area::Sleeve,
        Area::Sweeper,
        Area::Listener,
    ];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Area::Emulator => "emulator",
            Area::Store => "store",
            Area::Sleeve => "sleeve",
            Area::Sweeper => "sweeper",
            Area::Listener => "listener",
        }
    }

    /// Its bugs.
    pub fn bugs(self) -> &'static [Bug] {
        match self {
            Area::Emulator => emulator::BUGS,
            Area::Store => store::BUGS,
            Area::Sleeve => sleeve::BUGS,
            Area::Sweeper => sweeper::BUGS,
            Area::Listener => listener::BUGS,
        }
    }
}

/// Every bug with its area.
pub fn bugs() -> impl Iterator<Item = (Area, &'static Bug)> {
    let areas = Area::ALL.into_iter();
    areas.flat_map(|area| area.bugs().iter().map(move |bug| (area, bug)))
}

/// The bug of this name.
pub fn find(id: &str) -> Option<&'static Bug> {
    bugs().map(|(_, bug)| bug).find(|bug| bug.id == id)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_bug_is_described_once() {
        let ids: BTreeSet<_> = bugs().map(|(_, bug)| bug.id).collect();
        assert_eq!(ids.len(), bugs().count(), "an id is there twice");
        for (area, bug) in bugs() {
            let id = bug.id;
            let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            assert!(!id.is_empty() && id.chars().all(plain), "{id}");
            assert!(bug.wrong.ends_with('.'), "{id}: no sentence");
            assert!(!bug.wrong.contains('|'), "{id}: breaks the table");
            assert!(!bug.source.is_empty(), "{id}: no source");
            assert!(!bug.caught_by.is_empty(), "{id}: nothing is to catch it");
            let folder = match area {
                Area::Emulator => "emulator/src/",
                Area::Store => "emulator/src/store/",
                Area::Sleeve => "sleeve/src/",
                Area::Sweeper => "sweeper/src/",
                Area::Listener => "listener/src/",
            };
            assert!(bug.place.starts_with(folder), "{id}: {}", bug.place);
        }
    }

    #[test]
    fn a_bug_is_found_by_its_name() {
        assert_eq!(find("no-such-bug"), None);
        for (_, bug) in bugs() {
            assert_eq!(find(bug.id), Some(bug));
        }
    }
}
