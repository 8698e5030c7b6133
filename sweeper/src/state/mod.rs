//! The state document: one XML blob that says what is swept and how far the fleet has come (S15).
//!
//! Version 1 is the document of the original design, edited by people and loaded unchanged; its
//! `uri` may carry a SAS. Version 2 names credentials instead and never holds a secret. Either may
//! carry the ledger of pages in flight. Attributes and elements that this program does not know,
//! and comments, are written back as they were read.

pub mod ledger;
mod read;
mod write;
pub mod xml;

#[cfg(test)]
mod tests;

use smalt_protocol::Timestamp;

pub use read::read;
pub use write::write;

use self::xml::Node;
use crate::budget::Spent;

/// Newest version that is understood.
pub const VERSION_NEWEST: u32 = 2;
/// Largest document that is read or written, in bytes.
pub const DOCUMENT_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Most pages in flight in one document (D1): bounds its size whatever the size of the fleet.
pub const PAGES_MAX: usize = 64;

/// Why a document cannot be used. It is never overwritten then.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    /// No well-formed document of bounded size.
    #[error("the state document is broken: {0}")]
    Broken(String),
    /// Written by a newer program.
    #[error("the state document has version {0}; this program knows {VERSION_NEWEST} at most")]
    TooNew(u32),
    /// An attribute that this program needs cannot be read.
    #[error("the state document says {attribute}=\"{value}\", which cannot be read")]
    Attribute {
        /// Name of the attribute.
        attribute: &'static str,
        /// Value of the attribute.
        value: String,
    },
    /// A secret stands in a version that may not hold one.
    #[error("container `{0}` carries a SAS in its uri; version 2 names a credential instead")]
    Secret(String),
    /// A value that XML cannot carry.
    #[error("the character {0:?} cannot stand in the state document")]
    Unwritable(char),
    /// Larger than [`DOCUMENT_BYTES_MAX`].
    #[error("the state document would be larger than {DOCUMENT_BYTES_MAX} bytes")]
    TooLarge,
}

/// Unknown parts, kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extra {
    /// Attributes in order.
    pub attributes: Vec<(String, String)>,
    /// Elements, texts and comments in order.
    pub nodes: Vec<Node>,
}

/// The whole document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Document {
    /// 1 or 2. A document without the attribute is version 1.
    pub version: u32,
    /// Number of the cycle that runs or is due next.
    pub cycle: u64,
    /// Rises by one with every accepted write (SS6).
    pub fence: u64,
    /// The worker that wrote last: with the fence it tells a worker whether its write arrived.
    pub writer: String,
    /// When the last cycle was completed, as written (version 1 wrote it in some culture).
    pub timestamp: String,
    /// When the next cycle starts; absent for at once.
    pub next_due: Option<Timestamp>,
    /// Blobs removed by the last completed cycle.
    pub purged: u64,
    /// Charged calls of all workers on the last day that anything was written, where a budget
    /// counts them.
    pub spent: Option<Spent>,
    /// What is swept, in the order of the document.
    pub containers: Vec<Container>,
    /// Unknown parts.
    pub extra: Extra,
}

/// How far a container is in this cycle (S19).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Status {
    /// Not started in this cycle.
    #[default]
    Init,
    /// Started; `token` says where to go on.
    Current,
    /// The only page was handed out.
    FirstAndLast,
    /// The last page was handed out.
    Last,
    /// Not swept.
    Off,
}

impl Status {
    /// All of them.
    pub const ALL: [Status; 5] = [
        Status::Init,
        Status::Current,
        Status::FirstAndLast,
        Status::Last,
        Status::Off,
    ];

    /// The word of the document.
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

/// One swept container or part of one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Container {
    /// Label; in version 2 also the container's name unless `container` or `uri` says otherwise.
    pub name: String,
    /// Progress.
    pub status: Status,
    /// Only blobs with this prefix.
    pub prefix: String,
    /// URI of the container; in version 1 with its SAS.
    pub uri: Option<String>,
    /// Name of an account in the worker's configuration.
    pub credential: Option<String>,
    /// Container name where the label is not it.
    pub container: Option<String>,
    /// Continuation marker of the next page.
    pub token: String,
    /// Fence of its last hand-out: the smallest is served next (round-robin, DS12).
    pub order: u64,
    /// Failures in a row.
    pub failures: u32,
    /// Not before.
    pub retry_at: Option<Timestamp>,
    /// What the last failure was.
    pub last_error: Option<String>,
    /// Marker of the page that was handed out last.
    pub last_token: String,
    /// Counters of this cycle, or of the last one while the status is `Init`.
    pub tally: Tally,
    /// Pages in flight.
    pub pages: Vec<Page>,
    /// Unknown parts.
    pub extra: Extra,
}

/// Counters of one container in one cycle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Blobs listed.
    pub seen: u64,
    /// Blobs deleted, or found gone.
    pub deleted: u64,
    /// Blobs moved.
    pub moved: u64,
    /// Blobs that stay rightly.
    pub skipped: u64,
    /// Blobs that should have gone.
    pub failed: u64,
    /// Bytes removed from the container.
    pub bytes: u64,
}

impl Tally {
    /// Adds counters.
    pub fn add(&mut self, other: &Tally) {
        self.seen = self.seen.saturating_add(other.seen);
        self.deleted = self.deleted.saturating_add(other.deleted);
        self.moved = self.moved.saturating_add(other.moved);
        self.skipped = self.skipped.saturating_add(other.skipped);
        self.failed = self.failed.saturating_add(other.failed);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }

    /// Blobs removed.
    pub const fn removed(&self) -> u64 {
        self.deleted.saturating_add(self.moved)
    }
}

/// A page in flight: claimed by a worker, not yet completed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// `cycle/container/fence`, unique.
    pub id: String,
    /// Marker that it was listed from.
    pub start: String,
    /// Marker after it; empty when it was the last.
    pub end: String,
    /// Name of its first blob.
    pub first: String,
    /// Name of its last blob: where re-listing ends.
    pub last: String,
    /// The worker.
    pub owner: String,
    /// Fence of the claim.
    pub fence: u64,
    /// When it was claimed.
    pub claimed: Option<Timestamp>,
    /// Free for others from here on; absent counts as past.
    pub deadline: Option<Timestamp>,
    /// How often it was claimed.
    pub attempt: u32,
    /// Blobs that it would remove: what the guard counts as in flight.
    pub due: u64,
    /// Unknown parts.
    pub extra: Extra,
}

impl Container {
    /// Name of the container in its account.
    pub fn container_name(&self) -> String {
        if let Some(name) = &self.container {
            return name.clone();
        }
        let of_uri = self.uri.as_deref().and_then(crate::uri::parse);
        of_uri.map_or_else(|| self.name.clone(), |uri| uri.container)
    }
}
