//! The state document: one XML blob that lists the swept containers and the fleet's progress (S15).
//!
//! Version 1 is the document of the original design, edited by people and loaded unchanged; its
//! `uri` may carry a SAS. Version 2 names credentials instead and never holds a secret. Either may
//! carry the ledger of pages in flight. Unknown attributes and elements, and comments, are written
//! back as they were read.

pub mod ledger;
mod read;
mod write;
pub mod xml;

#[cfg(test)]
mod tests;

use serde::Serialize;
use smalt_protocol::Timestamp;

pub use read::read;
pub use write::write;

use self::xml::Node;
use crate::budget::Spent;

/// Newest supported version.
pub const VERSION_NEWEST: u32 = 2;
/// Maximum size of a document that is read or written, in bytes.
pub const DOCUMENT_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Maximum number of pages in flight in one document (D1), which bounds its size for any fleet.
pub const PAGES_MAX: usize = 64;

/// Why a document cannot be used. Such a document is never overwritten.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    /// The document is not well-formed, or exceeds a limit.
    #[error("the state document is broken: {0}")]
    Broken(String),
    /// The document was written by a newer program; the value is its version.
    #[error("the state document has version {0}; this program supports at most {VERSION_NEWEST}")]
    TooNew(u32),
    /// A required attribute is invalid.
    #[error("the state document has an invalid attribute {attribute}=\"{value}\"")]
    Attribute {
        /// Name of the attribute.
        attribute: &'static str,
        /// Value of the attribute.
        value: String,
    },
    /// Version 2 contains a secret, in the named container.
    #[error("container `{0}` has a SAS in its uri; version 2 requires a credential name")]
    Secret(String),
    /// A value contains a character that XML cannot represent.
    #[error("the state document cannot contain the character {0:?}")]
    Unwritable(char),
    /// The document would exceed [`DOCUMENT_BYTES_MAX`].
    #[error("the state document would be larger than {DOCUMENT_BYTES_MAX} bytes")]
    TooLarge,
}

/// Unknown parts of an element, which are preserved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extra {
    /// Unknown attributes, in order.
    pub attributes: Vec<(String, String)>,
    /// Unknown elements, texts and comments, in order.
    pub nodes: Vec<Node>,
}

/// A parsed state document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Document {
    /// 1 or 2; version 1 if the attribute is missing.
    pub version: u32,
    /// Number of the cycle that is running or due next.
    pub cycle: u64,
    /// Counter that increases by one with every accepted write (SS6).
    pub fence: u64,
    /// Id of the worker that wrote last; with the fence it shows a worker whether its write
    /// arrived.
    pub writer: String,
    /// When the last cycle was completed, as written (version 1 used some local culture).
    pub timestamp: String,
    /// When the next cycle starts; `None` means at once.
    pub next_due: Option<Timestamp>,
    /// Blobs removed by the last completed cycle.
    pub purged: u64,
    /// Charged calls of all workers on the last day with a write; `None` without a budget.
    pub spent: Option<Spent>,
    /// Swept containers, in the order of the document.
    pub containers: Vec<Container>,
    /// Unknown parts, which are preserved.
    pub extra: Extra,
}

/// Progress of a container in this cycle (S19).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Status {
    /// Not started in this cycle.
    #[default]
    Init,
    /// Started; `token` is the marker of the next page.
    Current,
    /// The only page was handed out.
    FirstAndLast,
    /// The last page was handed out.
    Last,
    /// Switched off: not swept.
    Off,
}

impl Status {
    /// All statuses.
    pub const ALL: [Status; 5] = [
        Status::Init,
        Status::Current,
        Status::FirstAndLast,
        Status::Last,
        Status::Off,
    ];

    /// Returns the name used in the document.
    pub const fn name(self) -> &'static str {
        match self {
            Status::Init => "Init",
            Status::Current => "Current",
            Status::FirstAndLast => "FirstAndLast",
            Status::Last => "Last",
            Status::Off => "Off",
        }
    }
}

/// A swept container, or a part of one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Container {
    /// Label; in version 2 also the container's name unless `container` or `uri` is set.
    pub name: String,
    /// Progress in this cycle.
    pub status: Status,
    /// Includes only blobs with this prefix; empty for the whole container.
    pub prefix: String,
    /// URI of the container; in version 1 with its SAS.
    pub uri: Option<String>,
    /// Name of an account in the worker's configuration.
    pub credential: Option<String>,
    /// Container name, if it differs from the label.
    pub container: Option<String>,
    /// Continuation marker of the next page.
    pub token: String,
    /// Fence of its last hand-out; the container with the smallest is served next (round-robin,
    /// DS12).
    pub order: u64,
    /// Number of consecutive failures.
    pub failures: u32,
    /// Earliest time of the next attempt.
    pub retry_at: Option<Timestamp>,
    /// Kind of the last failure.
    pub last_error: Option<String>,
    /// Marker of the page that was handed out last.
    pub last_token: String,
    /// Counters of this cycle, or of the last one while the status is `Init`.
    pub tally: Tally,
    /// Pages in flight.
    pub pages: Vec<Page>,
    /// Unknown parts, which are preserved.
    pub extra: Extra,
}

/// Counters of one container in one cycle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Blobs listed.
    pub seen: u64,
    /// Blobs deleted or found missing.
    pub deleted: u64,
    /// Blobs moved.
    pub moved: u64,
    /// Blobs that stay as intended.
    #[serde(rename = "kept")]
    pub skipped: u64,
    /// Blobs that should have been removed but were not.
    pub failed: u64,
    /// Bytes removed from the container.
    pub bytes: u64,
}

impl Tally {
    /// Adds the counters of `other`.
    pub fn add(&mut self, other: &Tally) {
        self.seen = self.seen.saturating_add(other.seen);
        self.deleted = self.deleted.saturating_add(other.deleted);
        self.moved = self.moved.saturating_add(other.moved);
        self.skipped = self.skipped.saturating_add(other.skipped);
        self.failed = self.failed.saturating_add(other.failed);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }

    /// Returns the number of removed blobs.
    pub const fn removed(&self) -> u64 {
        self.deleted.saturating_add(self.moved)
    }
}

/// A page in flight: claimed by a worker, not yet completed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// Unique id, `cycle/container/fence`.
    pub id: String,
    /// Marker from which the page was listed.
    pub start: String,
    /// Marker of the following page; empty for the last page.
    pub end: String,
    /// Name of its first blob.
    pub first: String,
    /// Name of its last blob, where listing it again ends.
    pub last: String,
    /// Id of the worker that claimed the page.
    pub owner: String,
    /// Fence of the claim.
    pub fence: u64,
    /// When the page was claimed.
    pub claimed: Option<Timestamp>,
    /// When other workers may take the page; `None` means it has passed.
    pub deadline: Option<Timestamp>,
    /// Number of claims.
    pub attempt: u32,
    /// Blobs to remove, which the circuit breaker counts as in flight.
    pub due: u64,
    /// Unknown parts, which are preserved.
    pub extra: Extra,
}

impl Container {
    /// Returns the container's name within its account.
    pub fn container_name(&self) -> String {
        if let Some(name) = &self.container {
            return name.clone();
        }
        let of_uri = self.uri.as_deref().and_then(crate::uri::parse);
        of_uri.map_or_else(|| self.name.clone(), |uri| uri.container)
    }
}
