//! Operations and their parameters.

mod access;
mod malformed;
mod numbers;
mod paths;
pub mod tables;
mod tiers;

use std::collections::BTreeMap;

use smalt_protocol::Service;

pub use access::{AccessOperation, Right, Terms};
pub use malformed::Malformed;
pub use numbers::{LeaseId, MessageId, Moment, Numbers, PROPOSED_LEASES, Receipt, Tag};
pub use paths::{PathOperation, Rename};
pub use tiers::{Priority, Tier};

/// User metadata or index tags, by name.
pub type Metadata = BTreeMap<String, String>;

/// What a request says of the blob that it creates, besides the content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels {
    /// User metadata.
    pub metadata: Metadata,
    /// Index tags.
    pub tags: Metadata,
}

impl From<Metadata> for Labels {
    fn from(metadata: Metadata) -> Self {
        Labels {
            metadata,
            tags: Metadata::new(),
        }
    }
}

/// A blob's address.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BlobId {
    /// The container's name.
    pub container: String,
    /// The blob's name.
    pub blob: String,
}

/// One step of a history.
#[derive(Clone, Debug, PartialEq)]
pub enum Operation {
    /// An operation on the named container.
    Container(String, ContainerOperation),
    /// An operation on a blob.
    Blob(BlobId, BlobOperation),
    /// An operation of the Data Lake interface on a path.
    Path(BlobId, PathOperation),
    /// An operation on the named queue.
    Queue(String, QueueOperation),
    /// An operation on the named table.
    Table(String, tables::TableOperation),
    /// An operation on the account.
    Account(AccountOperation),
    /// An operation on the access to the named container, queue or table.
    Access(Service, String, AccessOperation),
    /// A malformed request.
    Malformed(Malformed),
    /// Advances the clock.
    Advance {
        /// The duration, in seconds.
        seconds: u64,
    },
    /// Stops and starts the service.
    Restart,
}

/// An operation on a container.
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

/// An operation on a blob.
#[derive(Clone, Debug, PartialEq)]
pub enum BlobOperation {
    /// Put Blob of a block blob.
    Put(Content, Labels, Guard),
    /// Get Blob.
    Get {
        /// `snapshot`.
        snapshot: Option<Moment>,
        /// First byte, and last byte or `None` for the end of the blob.
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
    PutBlockList(Vec<(BlockSource, Vec<u8>)>, Labels, Guard),
    /// Get Block List, both lists.
    GetBlockList {
        /// `x-ms-lease-id`.
        lease: Option<LeaseId>,
    },
    /// Copy Blob from the same account.
    Copy {
        /// The source blob.
        source: BlobId,
        /// A snapshot of the source.
        snapshot: Option<Moment>,
        /// `x-ms-source-if-...`.
        source_condition: Option<Condition>,
        /// Metadata that replaces the source's, and the tags.
        labels: Labels,
        /// Lease and condition of the destination.
        guard: Guard,
    },
    /// Set Blob Tags.
    SetTags(Metadata, Option<LeaseId>),
    /// Get Blob Tags.
    GetTags(Option<LeaseId>),
    /// Put Blob of an append blob or a page blob.
    Create(NewBlob, Labels, Guard),
    /// Set Blob Properties.
    SetProperties(Property, Guard),
    /// Put Blob From URL or, with `sync`, Copy Blob From URL; from the same account.
    FromUrl {
        /// Selects Copy Blob From URL.
        sync: bool,
        /// The source blob.
        source: BlobId,
        /// `x-ms-source-if-...`.
        source_condition: Option<Condition>,
        /// Metadata that replaces the source's, and the tags.
        labels: Labels,
        /// Lease and condition of the destination.
        guard: Guard,
    },
    /// Append Block.
    Append(Content, Option<Position>, Guard),
    /// Append Blob Seal.
    Seal(Option<Position>, Guard),
    /// Put Page, as update or clear.
    WritePages {
        /// The index of the first page.
        first: u64,
        /// Number of pages, at least one.
        count: u64,
        /// The new value of every byte; `None` clears the pages.
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
    /// Set Blob Tier, with `x-ms-rehydrate-priority`.
    SetTier(Tier, Option<Priority>),
}

/// The type of an empty blob for Put Blob.
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

/// A change by Set Blob Properties.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Property {
    /// All content headers.
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

/// Content headers, which a read returns as they were stored.
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

/// An operation on the whole blob or queue service of the account.
#[derive(Clone, Debug, PartialEq)]
pub enum AccountOperation {
    /// List Containers, every page of it.
    Containers(Names),
    /// List Queues, every page of it.
    Queues(Names),
    /// Set Blob Service Properties: days of soft delete, or `None` to disable it.
    Retain(Option<u64>),
    /// Find Blobs by Tags, every page of it: the tag [`TAG`] compares so with this value.
    Find {
        /// The container to search; `None` for the account.
        container: Option<String>,
        /// `=`, `<`, `<=`, `>` or `>=`.
        sign: &'static str,
        /// The value.
        value: &'static str,
        /// `maxresults`.
        page: u32,
    },
}

/// The parameters of a listing of names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    /// `prefix`.
    pub prefix: String,
    /// `maxresults`.
    pub page: u32,
    /// `include=metadata`.
    pub metadata: bool,
}

/// An operation on a queue.
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
        /// The message text.
        text: String,
        /// `messagettl` in seconds; `None` for the default of seven days, `-1` for no expiry.
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
        /// The message id.
        id: MessageId,
        /// The pop receipt.
        receipt: Receipt,
        /// `visibilitytimeout`.
        visibility_timeout_s: u64,
        /// The new text, if it changes.
        text: Option<String>,
    },
    /// Delete Message.
    DeleteMessage {
        /// The message id.
        id: MessageId,
        /// The pop receipt.
        receipt: Receipt,
    },
    /// Clear Messages.
    Clear,
}

/// The preconditions of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Guard {
    /// `x-ms-lease-id`.
    pub lease: Option<LeaseId>,
    /// At most one conditional header.
    pub condition: Option<Condition>,
}

/// A conditional header.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Condition {
    /// `If-Match`; `None` is `*`.
    IfMatch(Option<Tag>),
    /// `If-None-Match`; `None` is `*`.
    IfNoneMatch(Option<Tag>),
    /// `If-Modified-Since`, in seconds of the Unix epoch.
    IfModifiedSince(u64),
    /// `If-Unmodified-Since`, in seconds of the Unix epoch.
    IfUnmodifiedSince(u64),
    /// `x-ms-if-tags`: the tag [`TAG`] equals (true) or does not equal (false) this value.
    IfTags(&'static str, bool),
}

/// The longest content that smalt keeps in the record of its blob, in bytes; it keeps a longer one
/// as a payload.
pub const INLINE_BYTES: u16 = 16_384;
/// The longest message text that smalt keeps in the record of its message, in bytes; it keeps a
/// longer one as a payload.
pub const INLINE_TEXT_BYTES: usize = 15_872;
/// The index tag that conditions and searches use.
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
        /// `x-ms-lease-duration` in seconds; `None` is infinite.
        duration_s: Option<u32>,
    },
    /// Renew the lease with this id.
    Renew(LeaseId),
    /// Change the first lease id to the second.
    Change(LeaseId, LeaseId),
    /// Release the lease with this id.
    Release(LeaseId),
    /// Break.
    Break {
        /// `x-ms-lease-break-period`, in seconds.
        period_s: Option<u32>,
    },
}

/// `x-ms-delete-snapshots`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Snapshots {
    /// `include`: delete the blob and its snapshots.
    Include,
    /// `only`: delete only the snapshots.
    Only,
}

/// The list in which Put Block List looks for a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockSource {
    /// `Committed`: only the committed blocks.
    Committed,
    /// `Uncommitted`: only the uncommitted blocks.
    Uncommitted,
    /// `Latest`: the uncommitted blocks, then the committed ones.
    Latest,
}

/// Content, as the rule that generates it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Content {
    /// The first byte, from which the further ones follow.
    pub seed: u8,
    /// Length in bytes.
    pub length: u16,
}

impl Content {
    /// Returns the generated bytes.
    pub fn bytes(self) -> Vec<u8> {
        // Without the high byte, pieces of a long content could change places unseen.
        let step = |i: u16| {
            let [low, high] = i.to_le_bytes();
            self.seed.wrapping_add(low).wrapping_add(high)
        };
        (0..self.length).map(step).collect()
    }
}
