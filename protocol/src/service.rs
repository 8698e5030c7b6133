//! The three services of an account.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A service of a storage account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Service {
    /// Blobs in containers.
    Blob,
    /// Queues of messages.
    Queue,
    /// Tables of entities.
    Table,
}

impl Service {
    /// Every service, in the order blob, queue, table.
    pub const ALL: [Service; 3] = [Service::Blob, Service::Queue, Service::Table];

    /// Returns `blob`, `queue` or `table`, as in host names and signed resources.
    pub const fn as_str(self) -> &'static str {
        match self {
            Service::Blob => "blob",
            Service::Queue => "queue",
            Service::Table => "table",
        }
    }

    /// Returns the letter in `ss` of an account SAS.
    pub const fn letter(self) -> char {
        match self {
            Service::Blob => 'b',
            Service::Queue => 'q',
            Service::Table => 't',
        }
    }
}

impl fmt::Display for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
