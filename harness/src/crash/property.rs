//! The properties of a store after a crash. docs/crash.md says who checks each.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A property of the store after a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Property {
    /// Every acknowledged operation is there.
    C1,
    /// An operation without an acknowledgement happened completely or not at all.
    C2,
    /// No content is truncated, mixed or another's.
    C3,
    /// No identifying value is given twice; receipts and leases are honoured until they expire.
    C4,
    /// One round of maintenance returns everything unreferenced to the disk.
    C5,
    /// The store opens, in bounded time.
    C6,
    /// Opening the store once more changes nothing.
    C7,
    /// Every referenced record exists, and every count of references is right.
    C8,
}

impl fmt::Display for Property {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// A violation of a property.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flaw {
    /// The property.
    pub property: Property,
    /// Description of what was found.
    pub text: String,
}

impl Flaw {
    /// Creates a flaw.
    pub fn new(property: Property, text: impl Into<String>) -> Self {
        Flaw {
            property,
            text: text.into(),
        }
    }
}

/// Counts and flaws of an examination.
#[derive(Debug, Default)]
pub struct Verified {
    /// Number of blobs, and of names that must be free.
    pub blobs: u64,
    /// Number of messages.
    pub messages: u64,
    /// Number of entities, and of rows that must be free.
    pub entities: u64,
    /// Blobs and partitions that exist and cannot be read.
    pub unreadable: Vec<Flaw>,
    /// All other flaws.
    pub flaws: Vec<Flaw>,
}

impl Verified {
    /// Returns all flaws, for a disk that can be read.
    pub fn all_flaws(self) -> impl Iterator<Item = Flaw> {
        self.unreadable.into_iter().chain(self.flaws)
    }
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.property, self.text)
    }
}
