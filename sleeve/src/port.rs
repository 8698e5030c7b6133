//! The port: what the workers may ask of a storage account. They see nothing else.
//!
//! One [`Storage`] is one account with one credential. Every call takes a [`CallContext`] (who
//! asks, muted or not) and returns the facts that the workers decide by, the service's own `Date`
//! among them. Errors are typed ([`PortError`]): a worker never looks at a status.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use smalt_protocol::Timestamp;

mod queue;

pub use self::queue::{MessageTtl, QueueMessage, QueueMessages, QueueProperties, Receipt};
pub use crate::error::{ErrorKind, PortError};
use crate::redact::without_query;

/// Shorthand for the port's results.
pub type PortResult<T> = Result<T, PortError>;

/// Metadata: names keep their case, comparisons ignore it ([`metadata_value`]).
pub type Metadata = BTreeMap<String, String>;

/// The value of a metadata name, compared without case as Azure does (DS26).
pub fn metadata_value<'a>(metadata: &'a Metadata, name: &str) -> Option<&'a str> {
    let mut all = metadata.iter();
    let found = all.find(|(key, _)| key.eq_ignore_ascii_case(name));
    found.map(|(_, value)| value.as_str())
}

/// A blob of the account that the [`Storage`] stands for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlobId {
    /// Container name.
    pub container: String,
    /// Blob name, unescaped.
    pub name: String,
}

impl BlobId {
    /// The blob `name` of `container`.
    pub fn new(container: impl Into<String>, name: impl Into<String>) -> Self {
        BlobId {
            container: container.into(),
            name: name.into(),
        }
    }
}

/// An ETag as the service sent it; the workers never look inside.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tag(pub String);

/// The operation context of one call (Gridwich: `x-ms-client-request-id` and muting).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallContext {
    /// What goes into `x-ms-client-request-id`: JSON of at most 1 KiB (G6, DG6); empty for none.
    pub client_request_id: String,
    /// Muted: notifications of this call are not published (G8). Travels inside the request id.
    pub muted: bool,
}

/// Conditions of one call. Passed per call and never shared (DG5).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conditions {
    /// `If-Match`.
    pub if_match: Option<Tag>,
    /// `If-None-Match: *`: only when nothing is there.
    pub if_absent: bool,
    /// `x-ms-lease-id`.
    pub lease_id: Option<String>,
    /// `x-ms-if-tags`, as `"kind" = 'temporary'`: index tags change without the ETag.
    pub if_tags: Option<String>,
}

impl Conditions {
    /// Only this version.
    pub fn matching(tag: &Tag) -> Self {
        Conditions {
            if_match: Some(tag.clone()),
            ..Self::default()
        }
    }

    /// Only when nothing is there yet.
    pub fn absent() -> Self {
        Conditions {
            if_absent: true,
            ..Self::default()
        }
    }
}

/// State of a copy whose destination a blob is or was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyState {
    /// `x-ms-copy-id`.
    pub id: String,
    /// `x-ms-copy-status`.
    pub status: CopyStatus,
    /// `x-ms-copy-source`, where the service still tells it.
    pub source: Option<String>,
    /// `x-ms-copy-status-description`.
    pub description: Option<String>,
}

/// `x-ms-copy-status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyStatus {
    /// Still running.
    Pending,
    /// Done.
    Success,
    /// Stopped by a client: the destination is empty.
    Aborted,
    /// Failed: the destination is empty.
    Failed,
}

/// Whether a blob is leased at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseState {
    /// Writes need no lease id.
    Unlocked,
    /// Writes need the lease id.
    Locked,
}

/// What a blob is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlobKind {
    /// Block blob.
    Block,
    /// Page blob.
    Page,
    /// Append blob.
    Append,
}

/// Properties and metadata of one blob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobProperties {
    /// Tag of this version.
    pub etag: Tag,
    /// Last change, in seconds.
    pub last_modified: Timestamp,
    /// Length in bytes.
    pub length: u64,
    /// Stored MD5, base64, where there is one.
    pub content_md5: Option<String>,
    /// `Content-Type`.
    pub content_type: Option<String>,
    /// User metadata.
    pub metadata: Metadata,
    /// Lease.
    pub lease: LeaseState,
    /// Kind.
    pub kind: BlobKind,
    /// The last copy into this blob.
    pub copy: Option<CopyState>,
    /// `x-ms-access-tier`.
    pub access_tier: Option<String>,
    /// Number of index tags (`x-ms-tag-count`).
    pub tag_count: u32,
    /// The index tags, when the listing was asked for them and the blob has some.
    pub tags: Option<Metadata>,
}

/// One blob of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobItem {
    /// Name, unescaped.
    pub name: String,
    /// The rest.
    pub properties: BlobProperties,
}

/// One page of a flat listing with metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobPage {
    /// The blobs, in Azure's order.
    pub blobs: Vec<BlobItem>,
    /// Where the next page starts; `None` when this was the last.
    pub next_marker: Option<String>,
    /// The service's `Date`: the time that expiry is decided by (DS15).
    pub server_time: Timestamp,
}

/// What to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListBlobs {
    /// Only names with this prefix.
    pub prefix: String,
    /// Continue here.
    pub marker: Option<String>,
    /// Entries per page, 1..=5000; 0 leaves it to the service.
    pub page_size: u32,
    /// Bring the index tags along, too; needs a permission of its own (`t` of a SAS).
    pub tags: bool,
}

/// A write that was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// Tag of the new version.
    pub etag: Tag,
    /// The service's `Date`.
    pub server_time: Timestamp,
}

/// A downloaded blob, read whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Downloaded {
    /// Properties of the blob.
    pub properties: BlobProperties,
    /// Content of the blob.
    pub content: Bytes,
    /// The service's `Date`.
    pub server_time: Timestamp,
}

/// What to put.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PutBlob {
    /// `Content-Type`.
    pub content_type: Option<String>,
    /// Metadata of the new version.
    pub metadata: Metadata,
    /// Conditions.
    pub conditions: Conditions,
}

/// What happens to snapshots when a blob goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeleteSnapshots {
    /// A blob with snapshots is refused (409 `SnapshotsPresent`).
    #[default]
    Refuse,
    /// Blob and snapshots go together.
    Include,
}

/// A copy to start. Its `Debug` leaves out the query of the source, where a SAS may stand.
#[derive(Clone, PartialEq, Eq)]
pub struct StartCopy {
    /// URL of the source; it carries its SAS when the destination's account cannot read it.
    pub source_url: String,
    /// `x-ms-source-if-match`.
    pub source_if_match: Option<Tag>,
    /// Metadata of the destination; when given it replaces the source's.
    pub metadata: Option<Metadata>,
    /// Conditions on the destination.
    pub conditions: Conditions,
    /// Synchronous form (Copy Blob From URL, at most 256 MiB).
    pub synchronous: bool,
    /// Index tags of the destination (`x-ms-tags`); a copy has none otherwise.
    pub tags: Option<Metadata>,
    /// Tier of the destination (`x-ms-access-tier`); the account's default otherwise.
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
    /// Status at the start.
    pub status: CopyStatus,
    /// Tag of the destination.
    pub etag: Tag,
}

/// A held lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// `x-ms-lease-id`.
    pub id: String,
    /// The service's `Date`.
    pub server_time: Timestamp,
}

/// One storage account with one credential. Futures are cancel-safe in the sense of the service: a
/// dropped call may or may not have happened.
#[async_trait]
pub trait Storage: Send + Sync + 'static {
    /// Account name, for comparing places (DS5).
    fn account(&self) -> &str;

    /// URL of a blob without credentials: what `SourceUri` metadata may say.
    fn blob_url(&self, blob: &BlobId) -> String;

    /// URL of a blob that another account may read: with a SAS of `lifetime` when the credential
    /// can make one, else with the SAS that this account was opened with.
    fn readable_url(&self, blob: &BlobId, lifetime: Duration) -> PortResult<String>;

    /// Whether [`Storage::readable_url`] of that lifetime waits for
    /// [`Storage::fetch_signing_key`]: a token of Entra ID signs nothing by itself.
    fn lacks_signing_key(&self, _lifetime: Duration) -> bool {
        false
    }

    /// Get User Delegation Key, for URLs of that lifetime. It is kept, and lacks again when it no
    /// longer lasts as long.
    async fn fetch_signing_key(&self, _: &CallContext, _lifetime: Duration) -> PortResult<()> {
        Ok(())
    }

    /// One page of a flat listing with metadata, copy state and no snapshots.
    async fn list_blobs(
        &self,
        cx: &CallContext,
        container: &str,
        list: &ListBlobs,
    ) -> PortResult<BlobPage>;

    /// Get Blob Properties, with the service's `Date`.
    async fn blob_properties(
        &self,
        cx: &CallContext,
        blob: &BlobId,
    ) -> PortResult<(BlobProperties, Timestamp)>;

    /// Get Blob, at most `most_bytes` (more is an error, never a truncated answer).
    async fn get_blob(
        &self,
        cx: &CallContext,
        blob: &BlobId,
        most_bytes: u64,
    ) -> PortResult<Downloaded>;

    /// Put Blob (block blob, one shot).
    async fn put_blob(
        &self,
        cx: &CallContext,
        blob: &BlobId,
        content: Bytes,
        put: &PutBlob,
    ) -> PortResult<Written>;

    /// Set Blob Metadata: replaces all.
    async fn set_blob_metadata(
        &self,
        cx: &CallContext,
        blob: &BlobId,
        metadata: &Metadata,
        conditions: &Conditions,
    ) -> PortResult<Written>;

    /// Delete Blob.
    async fn delete_blob(
        &self,
        cx: &CallContext,
        blob: &BlobId,
        conditions: &Conditions,
        snapshots: DeleteSnapshots,
    ) -> PortResult<()>;

    /// Copy Blob or Copy Blob From URL; this account is the destination.
    async fn start_copy(
        &self,
        cx: &CallContext,
        blob: &BlobId,
        copy: &StartCopy,
    ) -> PortResult<CopyStarted>;

    /// Abort Copy Blob.
    async fn abort_copy(&self, cx: &CallContext, blob: &BlobId, copy_id: &str) -> PortResult<()>;

    /// Acquire Lease on a blob, 15 to 60 s, under a proposed id.
    async fn acquire_lease(
        &self,
        cx: &CallContext,
        blob: &BlobId,
        proposed_id: &str,
        duration_s: u32,
    ) -> PortResult<Lease>;

    /// Renew Lease.
    async fn renew_lease(
        &self,
        cx: &CallContext,
        blob: &BlobId,
        lease_id: &str,
    ) -> PortResult<Lease>;

    /// Release Lease.
    async fn release_lease(
        &self,
        cx: &CallContext,
        blob: &BlobId,
        lease_id: &str,
    ) -> PortResult<()>;

    /// Break Lease, at once; `false` when there was none.
    async fn break_lease(&self, _: &CallContext, blob: &BlobId) -> PortResult<bool> {
        Err(PortError::unsupported("Break Lease", blob))
    }

    /// Whether the blob has snapshots. Costs a listing.
    async fn has_snapshots(&self, _: &CallContext, blob: &BlobId) -> PortResult<bool> {
        Err(PortError::unsupported("List Blobs with snapshots", blob))
    }

    /// Get Blob Tags.
    async fn blob_tags(&self, _: &CallContext, blob: &BlobId) -> PortResult<Metadata> {
        Err(PortError::unsupported("Get Blob Tags", blob))
    }

    /// Create Container; `false` when it was there already.
    async fn create_container(&self, cx: &CallContext, container: &str) -> PortResult<bool>;

    /// Create Queue; `false` when it was there already.
    async fn create_queue(&self, cx: &CallContext, queue: &str) -> PortResult<bool>;

    /// Get Queue Metadata.
    async fn queue_properties(&self, cx: &CallContext, queue: &str) -> PortResult<QueueProperties>;

    /// Put Message. Never repeated blindly: an unknown outcome is an error of its own
    /// ([`ErrorKind::OutcomeUnknown`]).
    async fn put_message(
        &self,
        cx: &CallContext,
        queue: &str,
        text: &str,
        ttl: MessageTtl,
        visibility_timeout: Duration,
    ) -> PortResult<Receipt>;

    /// Get Messages, 1 to 32, hidden for `visibility_timeout` (1 s to 7 d).
    async fn get_messages(
        &self,
        cx: &CallContext,
        queue: &str,
        count: u32,
        visibility_timeout: Duration,
    ) -> PortResult<QueueMessages>;

    /// Peek Messages, 1 to 32.
    async fn peek_messages(
        &self,
        cx: &CallContext,
        queue: &str,
        count: u32,
    ) -> PortResult<QueueMessages>;

    /// Update Message: new visibility and, when given, new text. The receipt changes.
    async fn update_message(
        &self,
        cx: &CallContext,
        queue: &str,
        id: &str,
        pop_receipt: &str,
        visibility_timeout: Duration,
        text: Option<&str>,
    ) -> PortResult<Receipt>;

    /// Delete Message.
    async fn delete_message(
        &self,
        cx: &CallContext,
        queue: &str,
        id: &str,
        pop_receipt: &str,
    ) -> PortResult<()>;

    /// Clear Messages; repeats while the service says that it is not done (Q16).
    async fn clear_messages(&self, cx: &CallContext, queue: &str) -> PortResult<()>;
}
