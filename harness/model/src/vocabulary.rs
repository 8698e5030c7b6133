//! Operations and what they name.

mod malformed;
mod numbers;
pub mod tables;

use std::collections::BTreeMap;

pub use malformed::Malformed;
pub use numbers::{LeaseId, MessageId, Moment, Numbers, PROPOSED_LEASES, Receipt, Tag};

/// User metadata.
pub type Metadata = BTreeMap<String, String>;

/// A blob's address.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BlobId {
    /// Container.
    pub container: String,
    /// Blob.
    pub blob: String,
}

/// One step of a history.
#[derive(Clone, Debug, PartialEq)]
pub enum Operation {
    /// On a container.
    Container(String, ContainerOperation),
    /// On a blob.
    Blob(BlobId, BlobOperation),
    /// On a queue.
    Queue(String, QueueOperation),
    /// On a table.
    Table(String, tables::TableOperation),
    /// On the account.
    Account(AccountOperation),
    /// A request that breaks a rule of syntax.
    Malformed(Malformed),
    /// Time passes.
    Advance {
        /// How much of it, in seconds.
        seconds: u64,
    },
    /// The service stops and starts again.
    Restart,
}

/// On a container.
#[derive(Clone, Debug, PartialEq)]
pub enum ContainerOperation {
    /// Create Container.
    Create(Metadata),
    /// Delete Container.
    Delete(Guard),
    /// Get Container Properties.
    Get {
        /// `x-ms-lease-id`.
        lease: Option<LeaseId>,
    },
    /// Set Container Metadata.
    SetMetadata(Metadata, Guard),
    /// Lease Container.
    Lease(LeaseAction, Option<Condition>),
    /// List Blobs, every page of it.
    List {
        /// `prefix`.
        prefix: String,
        /// `delimiter=/`.
        delimited: bool,
        /// `maxresults`.
        page: u32,
        /// `include=snapshots`.
        snapshots: bool,
        /// `include=uncommittedblobs`.
        uncommitted: bool,
        /// `include=deleted`.
        deleted: bool,
    },
}

/// On a blob.
#[derive(Clone, Debug, PartialEq)]
pub enum BlobOperation {
    /// Put Blob, of a block blob.
    Put(Content, Metadata, Guard),
    /// Get Blob.
    Get {
        /// `snapshot`.
        snapshot: Option<Moment>,
        /// First byte and, unless to the end, last byte.
        range: Option<(u64, Option<u64>)>,
        /// Lease and condition.
        guard: Guard,
    },
    /// Get Blob Properties.
    Head {
        /// `snapshot`.
        snapshot: Option<Moment>,
        /// Lease and condition.
        guard: Guard,
    },
    /// Set Blob Metadata.
    SetMetadata(Metadata, Guard),
    /// Delete Blob.
    Delete {
        /// `snapshot`.
        snapshot: Option<Moment>,
        /// `x-ms-delete-snapshots`.
        snapshots: Option<Snapshots>,
        /// Lease and condition.
        guard: Guard,
    },
    /// Snapshot Blob.
    Snapshot(Metadata, Guard),
    /// Lease Blob.
    Lease(LeaseAction, Option<Condition>),
    /// Put Block.
    PutBlock(Vec<u8>, Content, Option<LeaseId>),
    /// Put Block List.
    PutBlockList(Vec<(BlockSource, Vec<u8>)>, Metadata, Guard),
    /// Get Block List, both lists.
    GetBlockList {
        /// `x-ms-lease-id`.
        lease: Option<LeaseId>,
    },
    /// Copy Blob from the same account.
    Copy {
        /// What is copied.
        source: BlobId,
        /// A snapshot of it.
        snapshot: Option<Moment>,
        /// `x-ms-source-if-...`.
        source_condition: Option<Condition>,
        /// Metadata in place of the source's.
        metadata: Metadata,
        /// Lease and condition of the destination.
        guard: Guard,
    },
    /// Set Blob Tags.
    SetTags(Metadata, Option<LeaseId>),
    /// Get Blob Tags.
    GetTags(Option<LeaseId>),
    /// Put Blob, of an append blob or a page blob.
    Create(NewBlob, Metadata, Guard),
    /// Set Blob Properties.
    SetProperties(Property, Guard),
    /// Put Blob From URL or, where it is `sync`, Copy Blob From URL; from the same account.
    FromUrl {
        /// Copy Blob From URL.
        sync: bool,
        /// What is copied.
        source: BlobId,
        /// `x-ms-source-if-...`.
        source_condition: Option<Condition>,
        /// Metadata in place of the source's.
        metadata: Metadata,
        /// Lease and condition of the destination.
        guard: Guard,
    },
    /// Append Block.
    Append(Content, Option<Position>, Guard),
    /// Append Blob Seal.
    Seal(Option<Position>, Guard),
    /// Put Page: as update or as clear.
    WritePages {
        /// First page.
        first: u64,
        /// Number of pages, at least one.
        count: u64,
        /// What every byte becomes; absent: clear.
        fill: Option<u8>,
        /// `x-ms-if-sequence-number-...`.
        sequence: Option<Sequence>,
        /// Lease and condition.
        guard: Guard,
    },
    /// Get Page Ranges.
    GetPages {
        /// `snapshot`.
        snapshot: Option<Moment>,
        /// Lease and condition.
        guard: Guard,
    },
    /// Undelete Blob.
    Undelete,
}

/// A blob that Put Blob makes empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewBlob {
    /// `AppendBlob`.
    Append,
    /// `PageBlob`.
    Pages {
        /// `x-ms-blob-content-length`, in pages.
        pages: u64,
        /// `x-ms-blob-sequence-number`.
        number: u64,
    },
}

/// What Set Blob Properties changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Property {
    /// The content headers, all of them.
    Content(ContentHeaders),
    /// `x-ms-blob-content-length` of a page blob, in pages.
    Pages(u64),
    /// `x-ms-sequence-number-action: max`.
    NumberMax(u64),
    /// `x-ms-sequence-number-action: update`.
    NumberUpdate(u64),
    /// `x-ms-sequence-number-action: increment`.
    NumberIncrement,
}

/// Headers that a read shows as they were stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ContentHeaders {
    /// `Content-Type`.
    pub content_type: &'static str,
    /// `Cache-Control`.
    pub cache_control: Option<&'static str>,
    /// `Content-Disposition`.
    pub disposition: Option<&'static str>,
}

impl Default for ContentHeaders {
    fn default() -> Self {
        ContentHeaders {
            content_type: "application/octet-stream",
            cache_control: None,
            disposition: None,
        }
    }
}

/// `x-ms-blob-condition-...` of an append blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// `appendpos`, in bytes.
    At(u64),
    /// `maxsize`, in bytes.
    Most(u64),
}

/// `x-ms-if-sequence-number-...` of a page blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sequence {
    /// `le`.
    Most(u64),
    /// `lt`.
    Below(u64),
    /// `eq`.
    Is(u64),
}

/// On all of the account's blob or queue service.
#[derive(Clone, Debug, PartialEq)]
pub enum AccountOperation {
    /// List Containers, every page of it.
    Containers(Names),
    /// List Queues, every page of it.
    Queues(Names),
    /// Set Blob Service Properties: for how many days what is deleted is kept, if at all.
    Retain(Option<u64>),
}

/// Which names a listing shows, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    /// `prefix`.
    pub prefix: String,
    /// `maxresults`.
    pub page: u32,
    /// `include=metadata`.
    pub metadata: bool,
}

/// On a queue.
#[derive(Clone, Debug, PartialEq)]
pub enum QueueOperation {
    /// Create Queue.
    Create(Metadata),
    /// Delete Queue.
    Delete,
    /// Get Queue Metadata.
    Get,
    /// Set Queue Metadata.
    SetMetadata(Metadata),
    /// Put Message.
    Put {
        /// Text.
        text: String,
        /// `messagettl`; absent: seven days, `-1`: for ever.
        ttl_s: Option<i64>,
        /// `visibilitytimeout`.
        visibility_timeout_s: u64,
    },
    /// Get Messages.
    Receive {
        /// `numofmessages`.
        most: u32,
        /// `visibilitytimeout`.
        visibility_timeout_s: u64,
    },
    /// Peek Messages.
    Peek {
        /// `numofmessages`.
        most: u32,
    },
    /// Update Message.
    Update {
        /// Message.
        id: MessageId,
        /// Receipt.
        receipt: Receipt,
        /// `visibilitytimeout`.
        visibility_timeout_s: u64,
        /// New text.
        text: Option<String>,
    },
    /// Delete Message.
    DeleteMessage {
        /// Message.
        id: MessageId,
        /// Receipt.
        receipt: Receipt,
    },
    /// Clear Messages.
    Clear,
}

/// What a request demands of the resource that it is for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Guard {
    /// `x-ms-lease-id`.
    pub lease: Option<LeaseId>,
    /// One conditional header.
    pub condition: Option<Condition>,
}

/// A conditional header.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Condition {
    /// `If-Match`; absent: `*`.
    IfMatch(Option<Tag>),
    /// `If-None-Match`; absent: `*`.
    IfNoneMatch(Option<Tag>),
    /// `If-Modified-Since`, in seconds of the Unix epoch.
    IfModifiedSince(u64),
    /// `If-Unmodified-Since`, in seconds of the Unix epoch.
    IfUnmodifiedSince(u64),
    /// `x-ms-if-tags`: the tag [`TAG`] is, or is not, this value.
    IfTags(&'static str, bool),
}

/// The index tag that conditions ask for.
pub const TAG: &str = "mark";
/// Bytes of a page.
pub const PAGE_BYTES: u64 = 512;

/// A lease operation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LeaseAction {
    /// Acquire.
    Acquire {
        /// `x-ms-proposed-lease-id`.
        proposed: Option<LeaseId>,
        /// `x-ms-lease-duration`; absent: infinite.
        duration_s: Option<u32>,
    },
    /// Renew.
    Renew(LeaseId),
    /// Change.
    Change(LeaseId, LeaseId),
    /// Release.
    Release(LeaseId),
    /// Break.
    Break {
        /// `x-ms-lease-break-period`.
        period_s: Option<u32>,
    },
}

/// `x-ms-delete-snapshots`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Snapshots {
    /// With the blob.
    Include,
    /// Without the blob.
    Only,
}

/// Where Put Block List looks for a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockSource {
    /// Among the committed ones.
    Committed,
    /// Among the uncommitted ones.
    Uncommitted,
    /// Among the uncommitted ones, then among the committed ones.
    Latest,
}

/// Bytes, as a rule to make them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Content {
    /// The first byte; each further one is one more.
    pub seed: u8,
    /// Length in bytes.
    pub length: u16,
}

impl Content {
    /// The bytes.
    pub fn bytes(self) -> Vec<u8> {
        let step = |i: u16| self.seed.wrapping_add(i.to_le_bytes()[0]);
        (0..self.length).map(step).collect()
    }
}
