//! Planted bugs: deliberate mistakes in a copy of smalt. The products contain none of them.
//!
//! A check that has never failed proves nothing. So each bug of the closed list ([`bugs`]) is
//! switched on in turn, and the project's checks must catch it (`harness planted`,
//! `docs/planted.md`). A bug is data in `fixtures/planted`: code of the products and its
//! replacement in the copy that this package's program writes. The copy contains every bug, and
//! [`is_on`] says which one is on: at most one, named by the environment variable [`VARIABLE`].
//!
//! # Layout
//! - [`patch`]: inserts the bugs into a file.
//! - [`switch`]: the switch of the active bug.

pub mod patch;
pub mod switch;

use std::sync::LazyLock;

use serde::Deserialize;

pub use switch::{IS_SWITCHED, VARIABLE, is_on, struck};

/// A planted bug.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bug {
    /// The name, in lower case with hyphens.
    pub id: String,
    /// A sentence that says what is wrong.
    pub wrong: String,
    /// The origin of the idea: a defect in a source (`DS4`, `DL7`), a promise (`SS3`, `C1`), a rule
    /// of a document, or a mistake that was really made.
    pub source: String,
    /// The checks that must catch it, tried in this order until one does.
    pub caught_by: Vec<Detector>,
    /// The changes that insert it.
    pub change: Vec<Change>,
}

/// Code of a product and its replacement.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// The file, relative to the root of the tree.
    pub file: String,
    /// The replaced code, which must occur exactly once.
    pub text: String,
    /// The code in the copy; `BUG` stands for an expression that is true while the bug is on.
    pub with: String,
}

/// A check of the harness that can catch a bug. Seeds and budgets are the same for every bug, those
/// of `ci/check.sh`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Detector {
    /// Random histories of one client in memory, compared with the model.
    Histories,
    /// Random histories of tables, compared with the model.
    Tables,
    /// Random histories of a hierarchical account, compared with the model.
    Lake,
    /// Random histories of blobs and queues on disk, with restarts.
    Restarts,
    /// Concurrent clients; a search looks for an order that the model accepts.
    Bursts,
    /// The project's own recorded traces, replayed.
    Traces,
    /// The store on a disk that loses what was not synced, and that fails.
    StoreCrash,
    /// The tests of the emulator, the store's among them.
    EmulatorTests,
    /// The tests of the storage client.
    SleeveTests,
    /// The tests of the sweeper.
    SweeperTests,
    /// The tests of the listener.
    ListenerTests,
    /// The sweeper in simulation; its history is checked.
    Sweep,
    /// The listener in simulation; its history is checked.
    Listen,
}

impl Detector {
    /// Every detector.
    pub const ALL: [Detector; 13] = [
        Detector::Histories,
        Detector::Tables,
        Detector::Lake,
        Detector::Restarts,
        Detector::Bursts,
        Detector::Traces,
        Detector::StoreCrash,
        Detector::EmulatorTests,
        Detector::SleeveTests,
        Detector::SweeperTests,
        Detector::ListenerTests,
        Detector::Sweep,
        Detector::Listen,
    ];

    /// Returns the name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Detector::Histories => "histories",
            Detector::Tables => "tables",
            Detector::Lake => "lake",
            Detector::Restarts => "restarts",
            Detector::Bursts => "bursts",
            Detector::Traces => "traces",
            Detector::StoreCrash => "store-crash",
            Detector::EmulatorTests => "emulator-tests",
            Detector::SleeveTests => "sleeve-tests",
            Detector::SweeperTests => "sweeper-tests",
            Detector::ListenerTests => "listener-tests",
            Detector::Sweep => "sweep",
            Detector::Listen => "listen",
        }
    }

    /// Returns the package and the prefix of the test names, if the check consists of a package's
    /// tests.
    pub fn tests(self) -> Option<(&'static str, &'static str)> {
        match self {
            Detector::StoreCrash => Some(("smalt", "store::")),
            Detector::EmulatorTests => Some(("smalt", "")),
            Detector::SleeveTests => Some(("smalt-sleeve", "")),
            Detector::SweeperTests => Some(("smalt-sweeper", "")),
            Detector::ListenerTests => Some(("smalt-listener", "")),
            _ => None,
        }
    }
}

/// A part of the project that has planted bugs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Area {
    /// The service: rules and operations.
    Emulator,
    /// The service's store.
    Store,
    /// The workers' storage client.
    Sleeve,
    /// The sweeper.
    Sweeper,
    /// The listener.
    Listener,
}

impl Area {
    /// Every area.
    pub const ALL: [Area; 5] = [
        Area::Emulator,
        Area::Store,
        Area::Sleeve,
        Area::Sweeper,
        Area::Listener,
    ];

    /// Returns the name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Area::Emulator => "emulator",
            Area::Store => "store",
            Area::Sleeve => "sleeve",
            Area::Sweeper => "sweeper",
            Area::Listener => "listener",
        }
    }

    /// Returns the path of the area's file of bugs.
    pub fn file(self) -> String {
        format!("fixtures/planted/{}.toml", self.name())
    }

    /// Returns the area's bugs.
    pub fn bugs(self) -> &'static [Bug] {
        &BUGS[self as usize]
    }

    fn text(self) -> &'static str {
        match self {
            Area::Emulator => include_str!("../../../fixtures/planted/emulator.toml"),
            Area::Store => include_str!("../../../fixtures/planted/store.toml"),
            Area::Sleeve => include_str!("../../../fixtures/planted/sleeve.toml"),
            Area::Sweeper => include_str!("../../../fixtures/planted/sweeper.toml"),
            Area::Listener => include_str!("../../../fixtures/planted/listener.toml"),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    bug: Vec<Bug>,
}

/// The bugs of each area, in the order of [`Area::ALL`].
static BUGS: LazyLock<[Vec<Bug>; 5]> = LazyLock::new(|| Area::ALL.map(read));

#[expect(
    clippy::panic,
    reason = "the files are part of the program, and a test reads them"
)]
fn read(area: Area) -> Vec<Bug> {
    match toml::from_str::<File>(area.text()) {
        Ok(file) => file.bug,
        Err(error) => panic!("{}: {error}", area.file()),
    }
}

/// Returns every bug with its area.
pub fn bugs() -> impl Iterator<Item = (Area, &'static Bug)> {
    let areas = Area::ALL.into_iter();
    areas.flat_map(|area| area.bugs().iter().map(move |bug| (area, bug)))
}

/// Returns the bug with this name.
pub fn find(id: &str) -> Option<&'static Bug> {
    bugs().map(|(_, bug)| bug).find(|bug| bug.id == id)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_bug_is_described_once() {
        let ids: BTreeSet<_> = bugs().map(|(_, bug)| &bug.id).collect();
        assert_eq!(ids.len(), bugs().count(), "an id occurs twice");
        for (area, bug) in bugs() {
            let id = &bug.id;
            let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            assert!(!id.is_empty() && id.chars().all(plain), "{id}");
            assert!(bug.wrong.ends_with('.'), "{id}: `wrong` is not a sentence");
            assert!(!bug.wrong.contains('|'), "{id}: `wrong` contains `|`");
            assert!(!bug.source.is_empty(), "{id}: no source");
            assert!(!bug.caught_by.is_empty(), "{id}: no check catches it");
            let folder = match area {
                Area::Emulator => "emulator/src/",
                Area::Store => "emulator/src/store/",
                Area::Sleeve => "sleeve/src/",
                Area::Sweeper => "sweeper/src/",
                Area::Listener => "listener/src/",
            };
            for change in &bug.change {
                assert!(change.file.starts_with(folder), "{id}: {}", change.file);
            }
        }
    }

    #[test]
    fn a_bug_is_found_by_its_name() {
        assert_eq!(find("no-such-bug"), None);
        for (_, bug) in bugs() {
            assert_eq!(find(&bug.id), Some(bug));
        }
    }
}
