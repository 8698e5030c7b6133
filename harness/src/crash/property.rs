//! What must hold after a crash. docs/crash.md says who checks each.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A property of the store after a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Property {
    /// Every acknowledged operation is there.
    C1,
    /// An operation without an acknowledgement happened whole or not at all.
    C2,
    /// No content is short, mixed or another's.
    C3,
    /// Nothing that names is given twice; receipts and leases are honoured until they expire.
    C4,
    /// What nobody refers to is given back to the disk within one round of maintenance.
    C5,
    /// The store opens, in bounded time.
    C6,
    /// Opening once more changes nothing.
    C7,
}

impl Property {
    /// All of them.
    pub const ALL: [Property; 7] = [
        Property::C1,
        Property::C2,
        Property::C3,
        Property::C4,
        Property::C5,
        Property::C6,
        Property::C7,
    ];
}

impl fmt::Display for Property {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flaw {
    /// What does not hold.
    pub property: Property,
    /// What was found.
    pub text: String,
}

impl Flaw {
    /// A flaw.
    pub fn new(property: Property, text: impl Into<String>) -> Self {
        Flaw {
            property,
            text: text.into(),
        }
    }
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.property, self.text)
    }
}
