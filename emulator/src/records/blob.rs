//! Blobs, snapshots, blocks.

use serde::{Deserialize, Serialize};
use smalt_protocol::limits::BLOCKS_UNCOMMITTED_DAYS;
use smalt_protocol::time::DAY_S;
use smalt_protocol::{ETag, Metadata, Timestamp};

use super::is_default;
use crate::rules::encryption::Encryption;
use crate::rules::immutability::Protection;
use crate::rules::lease::LeaseState;
use crate::store::PayloadId;

/// A blob or a snapshot of one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BlobRecord {
    /// Kind.
    pub kind: BlobKind,
    /// First creation under this name.
    pub created: Timestamp,
    /// Tag of this version.
    pub etag: ETag,
    /// Last change.
    pub last_modified: Timestamp,
    /// Length in bytes.
    pub length: u64,
    /// Where the bytes are.
    pub content: BlobContent,
    /// Content headers.
    #[serde(default, skip_serializing_if = "is_default")]
    pub headers: ContentHeaders,
    /// User metadata.
    #[serde(default, skip_serializing_if = "is_default")]
    pub metadata: Metadata,
    /// Index tags.
    #[serde(default, skip_serializing_if = "is_default")]
    pub tags: Vec<(String, String)>,
    /// Lease; always available in a snapshot.
    #[serde(default, skip_serializing_if = "is_default")]
    pub lease: LeaseState,
    /// The last copy into this blob.
    #[serde(default, skip_serializing_if = "is_default")]
    pub copy: Option<CopyRecord>,
    /// Access tier.
    #[serde(default, skip_serializing_if = "is_default")]
    pub access: Access,
    /// How many snapshots stand beside the base blob.
    #[serde(default, skip_serializing_if = "is_default")]
    pub snapshots: u64,
    /// What the client had it encrypted with.
    #[serde(default, skip_serializing_if = "is_default")]
    pub encryption: Option<Encryption>,
    /// `x-ms-blob-sequence-number` of a page blob.
    #[serde(default, skip_serializing_if = "is_default")]
    pub sequence_number: u64,
    /// The tick of the write that made the blob anew. Snapshots have that of their blob: pages can
    /// be compared as long as it is the same.
    #[serde(default, skip_serializing_if = "is_default")]
    pub origin: u64,
    /// What Incremental Copy Blob copied into the blob.
    #[serde(default, skip_serializing_if = "is_default")]
    pub incremental: Option<IncrementalCopy>,
    /// Append Blob Seal was called.
    #[serde(default, skip_serializing_if = "is_default")]
    pub sealed: bool,
    /// `x-ms-version-id`; absent where the account kept no versions at the last write.
    #[serde(default, skip_serializing_if = "is_default")]
    pub version_id: Option<Timestamp>,
    /// A previous version: another one, or none, is the current one.
    #[serde(default, skip_serializing_if = "is_default")]
    pub is_previous: bool,
    /// Deleted softly: when, and how long it is kept.
    #[serde(default, skip_serializing_if = "is_default")]
    pub deleted: Option<Deleted>,
    /// Immutability policy of the version.
    #[serde(default, skip_serializing_if = "is_default")]
    pub immutability: Option<Immutability>,
    /// Legal hold: neither changed nor deleted.
    #[serde(default, skip_serializing_if = "is_default")]
    pub legal_hold: Option<bool>,
    /// Set Blob Expiry: from then on it is gone.
    #[serde(default, skip_serializing_if = "is_default")]
    pub expires: Option<Timestamp>,
    /// What protects it at the time of the look-up.
    #[serde(skip)]
    pub protection: Option<Protection>,
    /// The last read that was noted, where the account tracks reads; writes count besides.
    #[serde(default, skip_serializing_if = "is_default")]
    pub last_access: Option<Timestamp>,
    /// Pending copies that read from this blob.
    #[serde(default, skip_serializing_if = "is_default")]
    pub copied_to: Vec<CopyReader>,
}

/// The last incremental copy into a page blob.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IncrementalCopy {
    /// Account, container and name of the source.
    pub source: String,
    /// [`BlobRecord::origin`] of the source.
    pub source_origin: u64,
    /// Which snapshot of the source it was.
    pub source_snapshot: Timestamp,
    /// `x-ms-copy-destination-snapshot`: the snapshot that the copy made.
    pub snapshot: Timestamp,
}

impl BlobRecord {
    /// Whether it has not expired.
    pub fn is_there(&self, now: Timestamp) -> bool {
        self.expires.is_none_or(|expires| now < expires)
    }

    /// An empty blob that was made at this time and has nothing else to it.
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
            last_access: None,
            copied_to: Vec::new(),
        }
    }
}

/// What was deleted and can be undeleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deleted {
    /// When it was deleted.
    pub at: Timestamp,
    /// How long it is kept after that, in days.
    pub retention_days: u32,
}

impl Deleted {
    /// When it is gone for good.
    pub const fn until(self) -> Timestamp {
        self.at.plus_s(self.retention_days as u64 * DAY_S)
    }

    /// Whether it is gone for good.
    pub fn is_over(self, now: Timestamp) -> bool {
        now >= self.until()
    }

    /// `RemainingRetentionDays`: whole days that are left. Recorded: one of two days at once.
    pub fn remaining_days(self, now: Timestamp) -> u32 {
        let left_s = self.until().since(now).as_secs();
        let whole = u32::try_from(left_s / DAY_S).unwrap_or(u32::MAX);
        whole.min(self.retention_days.saturating_sub(1))
    }
}

/// `x-ms-immutability-policy-until-date` and `-mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Immutability {
    /// Until then it can be neither changed nor deleted.
    pub until: Timestamp,
    /// Whether the policy can only be extended.
    pub locked: bool,
}

/// `x-ms-blob-type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BlobKind {
    /// BlockBlob.
    Block,
    /// PageBlob.
    Page,
    /// AppendBlob.
    Append,
}

impl BlobKind {
    /// Its name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            BlobKind::Block => "BlockBlob",
            BlobKind::Page => "PageBlob",
            BlobKind::Append => "AppendBlob",
        }
    }
}

/// Where the bytes of a blob are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BlobContent {
    /// No bytes; of a page blob, zeros only.
    Empty,
    /// One payload.
    Payload(PayloadId),
    /// A committed block list, shared by the blob, its snapshots and copies.
    Blocks {
        /// Content id of the list.
        id: u64,
        /// Number of blocks.
        count: u32,
    },
    /// The map of a page blob, shared by the blob, its snapshots and copies.
    Pages {
        /// Id of the node at its top.
        root: u64,
    },
}

impl BlobContent {
    /// Number of blocks: `x-ms-blob-committed-block-count` of an append blob.
    pub const fn blocks(self) -> u32 {
        match self {
            BlobContent::Blocks { count, .. } => count,
            BlobContent::Empty | BlobContent::Payload(_) | BlobContent::Pages { .. } => 0,
        }
    }
}

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
    /// `Content-MD5`, base64.
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
    /// Set explicitly; absent: the account's default, inferred.
    #[serde(default, skip_serializing_if = "is_default")]
    pub tier: Option<String>,
    /// When it was last set.
    #[serde(default, skip_serializing_if = "is_default")]
    pub changed: Option<Timestamp>,
    /// On its way from the archive to another tier.
    #[serde(default, skip_serializing_if = "is_default")]
    pub rehydration: Option<Rehydration>,
}

impl Access {
    /// That of a new block blob: the tier that it was given, if any.
    pub fn given(tier: Option<String>, now: Timestamp) -> Self {
        Access {
            changed: tier.as_ref().map(|_| now),
            tier,
            rehydration: None,
        }
    }
}

/// An archived blob that was given an online tier.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rehydration {
    /// Tier that it will have.
    pub tier: String,
    /// `x-ms-rehydrate-priority`.
    pub priority: String,
    /// When it was given it.
    pub since: Timestamp,
}

impl Rehydration {
    /// `x-ms-archive-status`.
    pub fn archive_status(&self) -> String {
        format!("rehydrate-pending-to-{}", self.tier.to_ascii_lowercase())
    }
}

/// The last copy into a blob.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyRecord {
    /// `x-ms-copy-id`.
    pub id: String,
    /// `x-ms-copy-source`, without its signature.
    pub source: String,
    /// `x-ms-copy-status`.
    pub status: CopyStatus,
    /// Bytes copied of bytes to copy.
    pub progress: (u64, u64),
    /// When it ended.
    pub completed: Option<Timestamp>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "is_default")]
    pub description: Option<String>,
    /// What a pending copy will come to.
    #[serde(default, skip_serializing_if = "is_default")]
    pub pending: Option<PendingCopy>,
}

/// A pending copy, as its source knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyReader {
    /// Key of the destination.
    #[serde(with = "super::binary")]
    pub destination: Vec<u8>,
    /// `x-ms-copy-id`.
    pub copy_id: String,
}

/// What a pending copy will come to, unless it is stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingCopy {
    /// When it began.
    pub began: Timestamp,
    /// When it ends.
    pub ends: Timestamp,
    /// Why it fails then; absent: it succeeds.
    pub failure: Option<String>,
    /// Content of the blob then, which this record holds one reference to.
    pub content: BlobContent,
    /// `Content-MD5` of the blob then.
    pub content_md5: Option<String>,
}

/// `x-ms-copy-status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CopyStatus {
    /// Running.
    Pending,
    /// Done.
    Success,
    /// Stopped.
    Aborted,
    /// Failed.
    Failed,
}

impl CopyStatus {
    /// Its name on the wire.
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
    /// Bytes; absent for an empty block.
    pub payload: Option<PayloadId>,
}

/// A part of a committed block list, under the place of its first byte so that a range is found
/// without reading what is before it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockListChunk {
    /// Place of the first byte in the blob.
    pub start: u64,
    /// Blocks in order.
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
    /// Bytes; absent for an empty block.
    pub payload: Option<PayloadId>,
}

/// A blob that has uncommitted blocks, committed or not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UncommittedRecord {
    /// First block.
    pub created: Timestamp,
    /// Last block: uncommitted data is collected a week after it.
    pub touched: Timestamp,
    /// Number of uncommitted blocks.
    pub blocks: u32,
    /// Length that every block id of the blob has, in bytes.
    pub id_length: u32,
    /// What the client had the blocks encrypted with.
    #[serde(default, skip_serializing_if = "is_default")]
    pub encryption: Option<Encryption>,
}

impl UncommittedRecord {
    /// Whether the blocks still count: they do for a week after the last one. "Put Block".
    pub fn is_kept(&self, now: Timestamp) -> bool {
        now < self.touched.plus_s(BLOCKS_UNCOMMITTED_DAYS * DAY_S)
    }
}
