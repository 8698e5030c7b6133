//! Records of blobs, snapshots and blocks.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use smalt_protocol::limits::BLOCKS_UNCOMMITTED_DAYS;
use smalt_protocol::time::DAY_S;
use smalt_protocol::{ETag, Metadata, Timestamp};

use super::is_default;
use crate::keys::Generation;
use crate::rules::acl::{self, Posix};
use crate::rules::encryption::Encryption;
use crate::rules::immutability::Protection;
use crate::rules::lease::LeaseState;
use crate::store::PayloadId;

/// A blob, a snapshot or a version.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BlobRecord {
    /// Block, page or append blob.
    pub kind: BlobKind,
    /// When a blob was first created under this name.
    pub created: Timestamp,
    /// `ETag` of the last change.
    pub etag: ETag,
    /// When the blob was last changed.
    pub last_modified: Timestamp,
    /// Length in bytes.
    pub length: u64,
    /// Location of the content.
    pub content: BlobContent,
    /// HTTP content headers.
    #[serde(default, skip_serializing_if = "is_default")]
    pub headers: ContentHeaders,
    /// Metadata set by the client.
    #[serde(default, skip_serializing_if = "is_default")]
    pub metadata: Metadata,
    /// Index tags, as key and value.
    #[serde(default, skip_serializing_if = "is_default")]
    pub tags: Vec<(String, String)>,
    /// State of the lease; always available in a snapshot.
    #[serde(default, skip_serializing_if = "is_default")]
    pub lease: LeaseState,
    /// The last copy into this blob; `None` if there was none.
    #[serde(default, skip_serializing_if = "is_default")]
    pub copy: Option<CopyRecord>,
    /// Access tier and pending rehydration.
    #[serde(default, skip_serializing_if = "is_default")]
    pub access: Access,
    /// Number of snapshots of the base blob.
    #[serde(default, skip_serializing_if = "is_default")]
    pub snapshots: u64,
    /// Encryption that the client requested; `None` for the account's key.
    #[serde(default, skip_serializing_if = "is_default")]
    pub encryption: Option<Encryption>,
    /// `x-ms-blob-sequence-number`, for page blobs.
    #[serde(default, skip_serializing_if = "is_default")]
    pub sequence_number: u64,
    /// Tick of the write that created or replaced the blob. A snapshot has that of its blob: pages
    /// can be compared only while it is the same.
    #[serde(default, skip_serializing_if = "is_default")]
    pub origin: u64,
    /// The last Incremental Copy Blob into the blob.
    #[serde(default, skip_serializing_if = "is_default")]
    pub incremental: Option<IncrementalCopy>,
    /// Whether Append Blob Seal was called.
    #[serde(default, skip_serializing_if = "is_default")]
    pub sealed: bool,
    /// `x-ms-version-id`; `None` if versioning was off at the last write.
    #[serde(default, skip_serializing_if = "is_default")]
    pub version_id: Option<Timestamp>,
    /// Whether this is a previous version, so that the current one is another or absent.
    #[serde(default, skip_serializing_if = "is_default")]
    pub is_previous: bool,
    /// Set if the blob is soft-deleted.
    #[serde(default, skip_serializing_if = "is_default")]
    pub deleted: Option<Deleted>,
    /// Immutability policy of the version.
    #[serde(default, skip_serializing_if = "is_default")]
    pub immutability: Option<Immutability>,
    /// Legal hold: the version can be neither changed nor deleted.
    #[serde(default, skip_serializing_if = "is_default")]
    pub legal_hold: Option<bool>,
    /// When the blob expires (Set Blob Expiry); `None` if it never does.
    #[serde(default, skip_serializing_if = "is_default")]
    pub expires: Option<Timestamp>,
    /// Protection at the time of the look-up; not stored.
    #[serde(skip)]
    pub protection: Option<Protection>,
    /// The part of it that the container gives all of its blobs; not stored.
    #[serde(skip)]
    pub worm: Option<Protection>,
    /// Last recorded read, if the account tracks access times. Writes count as access as well.
    #[serde(default, skip_serializing_if = "is_default")]
    pub last_access: Option<Timestamp>,
    /// Pending copies that read from this blob.
    #[serde(default, skip_serializing_if = "is_default")]
    pub copied_to: Vec<CopyReader>,
    /// Id of a directory, which keys its contents; `None` for a blob.
    #[serde(default, skip_serializing_if = "is_default")]
    pub directory: Option<Generation>,
    /// Owner, group and permissions in a hierarchical container; `None` in a flat one.
    #[serde(default, skip_serializing_if = "is_default")]
    pub posix: Option<Box<Posix>>,
    /// `x-ms-encryption-context` of a file: what its owner needs to find the file's key.
    #[serde(default, skip_serializing_if = "is_default")]
    pub encryption_context: Option<String>,
}

/// The last incremental copy into a page blob.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IncrementalCopy {
    /// Account, container and name of the source blob.
    pub source: String,
    /// [`BlobRecord::origin`] of the source.
    pub source_origin: u64,
    /// The snapshot of the source that was copied.
    pub source_snapshot: Timestamp,
    /// `x-ms-copy-destination-snapshot`: the snapshot of this blob that the copy created.
    pub snapshot: Timestamp,
}

impl BlobRecord {
    /// Returns `true` if the blob has not expired.
    pub fn is_there(&self, now: Timestamp) -> bool {
        self.expires.is_none_or(|expires| now < expires)
    }

    /// Returns owner, group and permissions in a hierarchical account.
    pub fn posix(&self) -> Posix {
        let usual = || Posix::of_new(self.directory.is_some(), None, acl::UMASK_DEFAULT, None);
        self.posix.as_deref().cloned().unwrap_or_else(usual)
    }

    /// Returns the metadata as the Blob service shows them.
    pub fn shown_metadata(&self) -> Cow<'_, Metadata> {
        match self.directory {
            Some(_) => Cow::Owned(self.metadata.of_directory()),
            None => Cow::Borrowed(&self.metadata),
        }
    }

    /// Creates an empty blob with default properties.
    pub fn new(kind: BlobKind, etag: ETag, created: Timestamp) -> Self {
        BlobRecord {
            kind,
            created,
            etag,
            last_modified: created,
            length: 0,
            content: BlobContent::Empty,
            headers: ContentHeaders::default(),
            metadata: Metadata::default(),
            tags: Vec::new(),
            lease: LeaseState::default(),
            copy: None,
            access: Access::default(),
            snapshots: 0,
            encryption: None,
            sequence_number: 0,
            origin: 0,
            incremental: None,
            sealed: false,
            version_id: None,
            is_previous: false,
            deleted: None,
            immutability: None,
            legal_hold: None,
            expires: None,
            protection: None,
            worm: None,
            last_access: None,
            copied_to: Vec::new(),
            directory: None,
            posix: None,
            encryption_context: None,
        }
    }
}

/// When something was soft-deleted and how long it can be restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deleted {
    /// Time of the deletion.
    pub at: Timestamp,
    /// Retention in days.
    pub retention_days: u32,
}

impl Deleted {
    /// Returns the end of the retention.
    pub const fn until(self) -> Timestamp {
        self.at.plus_s(self.retention_days as u64 * DAY_S)
    }

    /// Returns `true` if the retention has ended.
    pub fn is_over(self, now: Timestamp) -> bool {
        now >= self.until()
    }

    /// Returns `RemainingRetentionDays`: the remaining whole days. Recorded: right after the
    /// deletion, a retention of two days shows 1.
    pub fn remaining_days(self, now: Timestamp) -> u32 {
        let left_s = self.until().since(now).as_secs();
        let whole = u32::try_from(left_s / DAY_S).unwrap_or(u32::MAX);
        whole.min(self.retention_days.saturating_sub(1))
    }
}

/// `x-ms-immutability-policy-until-date` and `-mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Immutability {
    /// Time until which the version can be neither changed nor deleted.
    pub until: Timestamp,
    /// Whether the policy is locked, so that it can only be extended.
    pub locked: bool,
}

/// `x-ms-blob-type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BlobKind {
    /// `BlockBlob`.
    Block,
    /// `PageBlob`.
    Page,
    /// `AppendBlob`.
    Append,
}

impl BlobKind {
    /// Returns the wire name.
    pub const fn as_str(self) -> &'static str {
        match self {
            BlobKind::Block => "BlockBlob",
            BlobKind::Page => "PageBlob",
            BlobKind::Append => "AppendBlob",
        }
    }
}

/// Location of a blob's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BlobContent {
    /// No content; a page blob then consists of zeros.
    Empty,
    /// A single payload.
    Payload(PayloadId),
    /// A committed block list, shared by the blob, its snapshots and copies.
    Blocks {
        /// Content id of the list.
        id: u64,
        /// Number of blocks.
        count: u32,
    },
    /// The page map of a page blob, shared by the blob, its snapshots and copies.
    Pages {
        /// Id of the root node.
        root: u64,
    },
}

impl BlobContent {
    /// Returns the number of blocks: `x-ms-blob-committed-block-count` of an append blob.
    pub const fn blocks(self) -> u32 {
        match self {
            BlobContent::Blocks { count, .. } => count,
            BlobContent::Empty | BlobContent::Payload(_) | BlobContent::Pages { .. } => 0,
        }
    }
}

/// Content type of a blob when the request gives none. "Put Blob".
pub const CONTENT_TYPE_DEFAULT: &str = "application/octet-stream";

/// The six content headers, which Set Blob Properties treats as a unit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContentHeaders {
    /// `Content-Type`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub content_type: Option<String>,
    /// `Content-Encoding`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub content_encoding: Option<String>,
    /// `Content-Language`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub content_language: Option<String>,
    /// `Content-MD5`, in base64.
    #[serde(default, skip_serializing_if = "is_default")]
    pub content_md5: Option<String>,
    /// `Cache-Control`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub cache_control: Option<String>,
    /// `Content-Disposition`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub content_disposition: Option<String>,
}

/// Access tier of a blob.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Access {
    /// Explicitly set tier; `None` for the account's default, which is then inferred.
    #[serde(default, skip_serializing_if = "is_default")]
    pub tier: Option<String>,
    /// When the tier was last set.
    #[serde(default, skip_serializing_if = "is_default")]
    pub changed: Option<Timestamp>,
    /// Set while the blob is being rehydrated from the archive.
    #[serde(default, skip_serializing_if = "is_default")]
    pub rehydration: Option<Rehydration>,
}

impl Access {
    /// Returns the access of a new blob with an explicit tier or none.
    pub fn given(tier: Option<String>, now: Timestamp) -> Self {
        Access {
            changed: tier.as_ref().map(|_| now),
            tier,
            rehydration: None,
        }
    }
}

/// A pending change from the archive to an online tier.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rehydration {
    /// The target tier.
    pub tier: String,
    /// `x-ms-rehydrate-priority`.
    pub priority: String,
    /// When the rehydration was requested.
    pub since: Timestamp,
}

impl Rehydration {
    /// Returns `x-ms-archive-status`.
    pub fn archive_status(&self) -> String {
        format!("rehydrate-pending-to-{}", self.tier.to_ascii_lowercase())
    }
}

/// The last copy into a blob.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyRecord {
    /// `x-ms-copy-id`.
    pub id: String,
    /// `x-ms-copy-source`, without the SAS signature.
    pub source: String,
    /// `x-ms-copy-status`.
    pub status: CopyStatus,
    /// Bytes copied, and bytes in total.
    pub progress: (u64, u64),
    /// When the copy ended; `None` while it is pending.
    pub completed: Option<Timestamp>,
    /// `x-ms-copy-status-description`; `None` unless the copy failed.
    #[serde(default, skip_serializing_if = "is_default")]
    pub description: Option<String>,
    /// The planned outcome, while the copy is pending.
    #[serde(default, skip_serializing_if = "is_default")]
    pub pending: Option<PendingCopy>,
}

/// A pending copy, as recorded in its source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyReader {
    /// Key of the destination blob.
    #[serde(with = "super::binary")]
    pub destination: Vec<u8>,
    /// `x-ms-copy-id`.
    pub copy_id: String,
}

/// The planned outcome of a pending copy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingCopy {
    /// When the copy began.
    pub began: Timestamp,
    /// When the copy ends.
    pub ends: Timestamp,
    /// Status description of a copy that will fail; `None` if it will succeed.
    pub failure: Option<String>,
    /// The final content, to which this record holds one reference.
    pub content: BlobContent,
    /// The final `Content-MD5`.
    pub content_md5: Option<String>,
    /// Whether the source is archived and has to be rehydrated for the copy.
    #[serde(default, skip_serializing_if = "is_default")]
    pub thaws: bool,
}

/// `x-ms-copy-status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CopyStatus {
    /// The copy is running.
    Pending,
    /// The copy has completed.
    Success,
    /// The copy was aborted.
    Aborted,
    /// The copy has failed.
    Failed,
}

impl CopyStatus {
    /// Returns the wire name.
    pub const fn as_str(self) -> &'static str {
        match self {
            CopyStatus::Pending => "pending",
            CopyStatus::Success => "success",
            CopyStatus::Aborted => "aborted",
            CopyStatus::Failed => "failed",
        }
    }
}

/// An uncommitted block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockRecord {
    /// Length in bytes.
    pub length: u64,
    /// Content; `None` for an empty block.
    pub payload: Option<PayloadId>,
}

/// A part of a committed block list. Its key contains the offset of its first byte, so that a range
/// is found without reading the parts before it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockListChunk {
    /// Offset of the first byte in the blob.
    pub start: u64,
    /// The blocks, in order.
    pub blocks: Vec<CommittedBlock>,
}

/// A block of a committed list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommittedBlock {
    /// Block id, decoded.
    #[serde(with = "super::binary")]
    pub id: Vec<u8>,
    /// Length in bytes.
    pub length: u64,
    /// Content; `None` for an empty block.
    pub payload: Option<PayloadId>,
}

/// The uncommitted blocks of a blob, which may or may not have committed content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UncommittedRecord {
    /// When the first block was added.
    pub created: Timestamp,
    /// When the last block was added; the blocks are discarded a week later.
    pub touched: Timestamp,
    /// Number of uncommitted blocks.
    pub blocks: u32,
    /// Length of every block id of the blob, in bytes.
    pub id_length: u32,
    /// Encryption that the client requested for the blocks.
    #[serde(default, skip_serializing_if = "is_default")]
    pub encryption: Option<Encryption>,
}

impl UncommittedRecord {
    /// Returns `true` if the blocks are still valid: they are discarded a week after the last one.
    /// "Put Block".
    pub fn is_kept(&self, now: Timestamp) -> bool {
        now < self.touched.plus_s(BLOCKS_UNCOMMITTED_DAYS * DAY_S)
    }
}
