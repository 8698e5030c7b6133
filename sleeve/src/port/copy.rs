//! Values of the operations that copy blobs.

use std::fmt;

use super::{Conditions, Metadata, Tag};
use crate::redact::without_query;

/// State of the last copy into a blob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyState {
    /// `x-ms-copy-id`.
    pub id: String,
    /// `x-ms-copy-status`.
    pub status: CopyStatus,
    /// `x-ms-copy-source`, if the service still returns it.
    pub source: Option<String>,
    /// `x-ms-copy-status-description`.
    pub description: Option<String>,
}

/// Status of a copy, `x-ms-copy-status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyStatus {
    /// The copy is still running.
    Pending,
    /// The copy is complete.
    Success,
    /// A client aborted the copy; the destination is empty.
    Aborted,
    /// The copy failed; the destination is empty.
    Failed,
}

/// Parameters of a copy. `Debug` omits the query of the source, which may be a SAS.
#[derive(Clone, PartialEq, Eq)]
pub struct StartCopy {
    /// URL of the source, with a SAS if the destination's account cannot read it otherwise.
    pub source_url: String,
    /// `x-ms-source-if-match`.
    pub source_if_match: Option<Tag>,
    /// Metadata of the destination; if `None`, the source's are copied.
    pub metadata: Option<Metadata>,
    /// Conditions on the destination.
    pub conditions: Conditions,
    /// Whether to use the synchronous form (Copy Blob From URL, at most 256 MiB).
    pub synchronous: bool,
    /// Index tags of the destination (`x-ms-tags`); if `None`, it has none.
    pub tags: Option<Metadata>,
    /// Tier of the destination (`x-ms-access-tier`); if `None`, the account's default.
    pub tier: Option<String>,
}

impl fmt::Debug for StartCopy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StartCopy")
            .field("source_url", &without_query(&self.source_url))
            .field("source_if_match", &self.source_if_match)
            .field("metadata", &self.metadata)
            .field("conditions", &self.conditions)
            .field("synchronous", &self.synchronous)
            .field("tags", &self.tags)
            .field("tier", &self.tier)
            .finish()
    }
}

/// A started copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyStarted {
    /// `x-ms-copy-id`.
    pub id: String,
    /// Status when the copy was started.
    pub status: CopyStatus,
    /// ETag of the destination.
    pub etag: Tag,
}
