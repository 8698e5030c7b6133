//! The names and operations that a history uses.

use smalt_model::Model;

use super::dice::{DICE, TABLE_DICE};
use super::themes::Theme;

pub(super) const CONTAINERS: [&str; 3] = ["con0", "con1", "con2"];
/// Names inside of a folder, and on both sides of it in the order of names.
pub(super) const BLOBS: [&str; 5] = ["b0", "b0/b0", "b0-", "b00", "b0/b1"];
/// Directories in directories, and names beside them.
pub(super) const PATHS: [&str; 8] = [
    "b0", "b0/b0", "b0-", "b00", "b0/b1", "b00/b1", "b0/b0/b1", "b0-/b0",
];
pub(super) const QUEUES: [&str; 2] = ["que0", "que1"];

/// The names and operations that a history uses.
#[derive(Clone, Copy, Debug)]
pub struct Space {
    pub(super) containers: usize,
    pub(super) blobs: usize,
    pub(super) queues: usize,
    /// Whether the operations are those of the Table service, and no others.
    pub(super) tables: bool,
    /// Whether the operations are those of both interfaces on a hierarchical account.
    pub(super) lake: bool,
    /// Append and page blobs, properties, copies by bytes, listings of the account, soft delete,
    /// tiers, policies, long texts, many entities.
    pub(super) wide: bool,
    /// Whether some requests break a rule of syntax.
    pub(super) malformed: bool,
    /// Whether time passes.
    pub(super) advances: bool,
    /// Whether the service is restarted.
    pub(super) restarts: bool,
    /// What the history is about, if it is about something.
    pub(super) theme: Option<&'static Theme>,
}

impl Space {
    /// Few names, and time.
    pub const HISTORY: Space = Space {
        containers: CONTAINERS.len(),
        blobs: BLOBS.len(),
        queues: QUEUES.len(),
        tables: false,
        lake: false,
        wide: true,
        malformed: true,
        advances: true,
        restarts: false,
        theme: None,
    };
    /// Tables and entities.
    pub const TABLES: Space = Space {
        tables: true,
        ..Space::HISTORY
    };
    /// Both interfaces of a hierarchical account.
    pub const LAKE: Space = Space {
        containers: 2,
        blobs: PATHS.len(),
        lake: true,
        malformed: false,
        ..Space::HISTORY
    };
    /// Tables and entities, without time, policies and batches of many entities.
    pub const NARROW_TABLES: Space = Space {
        wide: false,
        advances: false,
        ..Space::TABLES
    };
    /// Only operations on block blobs, containers, leases and queues.
    pub const NARROW: Space = Space {
        wide: false,
        ..Space::HISTORY
    };
    /// One name of each kind, without time, so that all clients use the same entities.
    pub const BURST: Space = Space {
        containers: 1,
        blobs: 1,
        queues: 1,
        tables: false,
        lake: false,
        wide: false,
        malformed: false,
        advances: false,
        restarts: false,
        theme: None,
    };

    /// Returns the same space, with or without restarts.
    #[must_use]
    pub fn restarting(self, restarts: bool) -> Self {
        Space { restarts, ..self }
    }

    /// Returns the state before the first operation, at this time in seconds of the Unix epoch.
    pub fn model(self, now_s: u64) -> Model {
        match self.lake {
            true => Model::hierarchical(now_s),
            false => Model::new(now_s),
        }
    }

    /// Returns the names of blobs.
    pub(super) fn names(self) -> &'static [&'static str] {
        let all: &[&str] = if self.lake { &PATHS } else { &BLOBS };
        &all[..self.blobs]
    }

    /// Returns the number of random bytes that one choice may take.
    pub fn dice(self) -> usize {
        match self.tables {
            true => TABLE_DICE,
            false => DICE,
        }
    }
}
