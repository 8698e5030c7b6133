//! Operations of the Data Lake interface on the paths of a hierarchical account.

use super::{BlobId, Condition, Content, Guard, LeaseAction, LeaseId, Metadata};

/// An operation on a path.
#[derive(Clone, Debug, PartialEq)]
pub enum PathOperation {
    /// Path - Create.
    Create {
        /// `resource=directory`, not `resource=file`.
        directory: bool,
        /// `x-ms-meta-...`.
        metadata: Metadata,
        /// Lease and condition.
        guard: Guard,
    },
    /// Path - Update, append.
    Append {
        /// The bytes.
        content: Content,
        /// `position`.
        position: u64,
        /// `flush=true`.
        flush: bool,
        /// `x-ms-lease-id`.
        lease: Option<LeaseId>,
    },
    /// Path - Update, flush.
    Flush {
        /// `position`.
        position: u64,
        /// `retainUncommittedData=true`.
        retain: bool,
        /// Lease and condition.
        guard: Guard,
    },
    /// Path - Create with `x-ms-rename-source`.
    Rename(Rename),
    /// Path - Delete.
    Delete {
        /// `recursive=true`.
        recursive: bool,
        /// Lease and condition.
        guard: Guard,
    },
    /// Set Blob Expiry: so many seconds from now on, or never.
    Expire(Option<u64>, Guard),
    /// Path - Get Properties, getStatus.
    Status(Guard),
    /// Path - Lease.
    Lease(LeaseAction, Option<Condition>),
    /// Path - List, every page of it, of this directory or, if it is empty, of the file system.
    List {
        /// `recursive=true`.
        recursive: bool,
        /// `maxResults`.
        page: u32,
    },
}

/// The source of a rename, and the conditions on both sides.
#[derive(Clone, Debug, PartialEq)]
pub struct Rename {
    /// The path that moves.
    pub source: BlobId,
    /// `x-ms-source-if-...`.
    pub source_condition: Option<Condition>,
    /// `x-ms-source-lease-id`.
    pub source_lease: Option<LeaseId>,
    /// Lease and condition of the destination.
    pub guard: Guard,
}
