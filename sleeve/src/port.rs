//! The port: the only calls that workers make on a storage account.
//!
//! A [`Storage`] is one account with one credential. Every call takes a [`CallContext`] (caller and
//! muting) and returns the facts that workers decide by, including the service's own `Date`. Errors
//! are typed ([`PortError`]), so a worker never inspects a status.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use smalt_protocol::Timestamp;

mod copy;
mod queue;
mod sleeves;

pub use self::copy::{CopyStarted, CopyState, CopyStatus, StartCopy};
pub use self::queue::{MessageTtl, QueueMessage, QueueMessages, QueueProperties, Receipt};
pub use self::sleeves::{BlobHeaders, ContainerProperties, PublicAccess};
pub use crate::error::{ErrorKind, PortError};

/// Result of the port's calls.
pub type PortResult<T> = Result<T, PortError>;

/// Metadata by name. Names keep their case; [`metadata_value`] compares them case-insensitively.
pub type Metadata = BTreeMap<String, String>;

/// Returns a metadata value by its case-insensitive name, as Azure compares them (DS26).
pub fn metadata_value<'a>(metadata: &'a Metadata, name: &str) -> Option<&'a str> {
    let mut all = metadata.iter();
    let found = all.find(|(key, _)| key.eq_ignore_ascii_case(name));
    found.map(|(_, value)| value.as_str())
}

/// A blob in the account of a [`Storage`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlobId {
    /// Container name.
    pub container: String,
    /// Blob name, unescaped.
    pub name: String,
}

impl fmt::Display for BlobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.container, self.name)
    }
}

impl BlobId {
    /// Creates the id of the blob `name` in `container`.
    pub fn new(container: impl Into<String>, name: impl Into<String>) -> Self {
        BlobId {
            container: container.into(),
            name: name.into(),
        }
    }
}

/// An ETag as the service sent it; opaque to the workers.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tag(pub String);

impl Tag {
    /// Returns the tag in the quoted form of headers. Listings and notifications omit the quotes,
    /// but conditions and comparisons need one form.
    pub(crate) fn from_text(text: &str) -> Self {
        match text.starts_with('"') || text.starts_with("W/") {
            true => Tag(text.to_owned()),
            false => Tag(format!("\"{text}\"")),
        }
    }
}

/// The operation context of one call (Gridwich: `x-ms-client-request-id` and muting).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct CallContext {
    /// Value of `x-ms-client-request-id`: JSON of at most 1 KiB (G6, DG6); empty for none.
    pub client_request_id: String,
    /// Whether notifications of this call are suppressed (G8). Sent as part of the request id.
    pub muted: bool,
}

/// Conditions of one call, never shared between calls (DG5).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conditions {
    /// `If-Match`.
    pub if_match: Option<Tag>,
    /// `If-None-Match: *`: succeeds only if the resource does not exist.
    pub if_absent: bool,
    /// `x-ms-lease-id`.
    pub lease_id: Option<String>,
    /// `x-ms-if-tags`, such as `"kind" = 'temporary'`. Index tags change without the ETag.
    pub if_tags: Option<String>,
}

impl Conditions {
    /// Returns the condition that only this version exists.
    pub fn matching(tag: &Tag) -> Self {
        Conditions {
            if_match: Some(tag.clone()),
            ..Self::default()
        }
    }

    /// Returns the condition that the resource does not exist.
    pub fn absent() -> Self {
        Conditions {
            if_absent: true,
            ..Self::default()
        }
    }
}

/// Whether a blob is currently leased.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseState {
    /// Writes need no lease id.
    Unlocked,
    /// Writes need the lease id.
    Locked,
}

/// Type of a blob.
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
    /// ETag of this version.
    pub etag: Tag,
    /// Time of the last modification, in whole seconds.
    pub last_modified: Timestamp,
    /// Length in bytes.
    pub length: u64,
    /// Stored MD5 in Base64, if any.
    pub content_md5: Option<String>,
    /// `Content-Type`.
    pub content_type: Option<String>,
    /// User metadata.
    pub metadata: Metadata,
    /// Whether the blob is leased.
    pub lease: LeaseState,
    /// Type of the blob.
    pub kind: BlobKind,
    /// The last copy into this blob, if any.
    pub copy: Option<CopyState>,
    /// `x-ms-access-tier`.
    pub access_tier: Option<String>,
    /// Number of index tags (`x-ms-tag-count`).
    pub tag_count: u32,
    /// Index tags; `None` if they were not requested or the blob has none.
    pub tags: Option<Metadata>,
}

/// One blob of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobItem {
    /// Blob name, unescaped.
    pub name: String,
    /// Properties and metadata of the blob.
    pub properties: BlobProperties,
}

/// One page of a flat listing with metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobPage {
    /// The blobs, in Azure's order.
    pub blobs: Vec<BlobItem>,
    /// Marker of the next page; `None` after the last page.
    pub next_marker: Option<String>,
    /// The service's `Date`, by which expiry is decided (DS15).
    pub server_time: Timestamp,
}

/// Parameters of a listing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListBlobs {
    /// Lists only names with this prefix.
    pub prefix: String,
    /// Marker to continue from.
    pub marker: Option<String>,
    /// Entries per page, 1..=5000; 0 means the service's default.
    pub page_size: u32,
    /// Whether to include index tags; requires a separate permission (`t` of a SAS).
    pub tags: bool,
}

/// Result of a successful write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// ETag of the new version.
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

/// Parameters of a put, besides the content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PutBlob {
    /// `Content-Type`.
    pub content_type: Option<String>,
    /// Metadata of the new version.
    pub metadata: Metadata,
    /// Conditions on the existing blob.
    pub conditions: Conditions,
}

/// How a delete treats snapshots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeleteSnapshots {
    /// Deleting a blob with snapshots fails (409 `SnapshotsPresent`).
    #[default]
    Refuse,
    /// Deletes the blob with its snapshots.
    Include,
}

/// An acquired or renewed lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// `x-ms-lease-id`.
    pub id: String,
    /// The service's `Date`.
    pub server_time: Timestamp,
}

fn unsupported<T>(operation: &'static str, resource: impl fmt::Display) -> PortResult<T> {
    let why = "this storage does not support the operation";
    let resource = resource.to_string();
    Err(PortError::new(ErrorKind::Refused, operation, resource, why))
}

/// One storage account with one credential. Futures may be dropped at any time; the dropped call
/// may or may not have been executed. A storage that does not implement a call refuses it.
#[async_trait]
pub trait Storage: Send + Sync + 'static {
    /// Returns the account name, for comparing places (DS5).
    fn account(&self) -> &str;

    /// Returns the URL of a blob without credentials, as stored in `SourceUri` metadata.
    fn blob_url(&self, blob: &BlobId) -> String;

    /// Returns a URL with which another account can read a blob: with a SAS of this `lifetime` if
    /// the credential can create one, otherwise with the SAS that opened this account.
    fn readable_url(&self, blob: &BlobId, _lifetime: Duration) -> PortResult<String> {
        unsupported("Get Blob by URL", blob)
    }

    /// Returns whether [`Storage::readable_url`] with this lifetime needs
    /// [`Storage::fetch_signing_key`] first, because an Entra ID token cannot sign.
    fn lacks_signing_key(&self, _lifetime: Duration) -> bool {
        false
    }

    /// Get User Delegation Key, for URLs with this lifetime. The key is kept until it no longer
    /// lasts that long.
    async fn fetch_signing_key(&self, _: &CallContext, _lifetime: Duration) -> PortResult<()> {
        Ok(())
    }

    /// List Blobs: one page of a flat listing with metadata and copy state, without snapshots.
    async fn list_blobs(
        &self,
        _: &CallContext,
        container: &str,
        _list: &ListBlobs,
    ) -> PortResult<BlobPage> {
        unsupported("List Blobs", container)
    }

    /// Get Blob Properties, with the service's `Date`.
    async fn blob_properties(
        &self,
        _: &CallContext,
        blob: &BlobId,
    ) -> PortResult<(BlobProperties, Timestamp)> {
        unsupported("Get Blob Properties", blob)
    }

    /// Get Blob, at most `most_bytes`; a larger blob is an error, never truncated.
    async fn get_blob(
        &self,
        _: &CallContext,
        blob: &BlobId,
        _most_bytes: u64,
    ) -> PortResult<Downloaded> {
        unsupported("Get Blob", blob)
    }

    /// Get Blob: `bytes` bytes of one version, beginning at `from`.
    async fn get_blob_range(
        &self,
        _: &CallContext,
        blob: &BlobId,
        _version: &Tag,
        _from: u64,
        _bytes: u64,
    ) -> PortResult<Bytes> {
        unsupported("Get Blob", blob)
    }

    /// Put Blob, as a block blob in a single request.
    async fn put_blob(
        &self,
        cx: &CallContext,
        blob: &BlobId,
        content: Bytes,
        put: &PutBlob,
    ) -> PortResult<Written>;

    /// Set Blob Metadata; replaces all metadata.
    async fn set_blob_metadata(
        &self,
        _: &CallContext,
        blob: &BlobId,
        _metadata: &Metadata,
        _conditions: &Conditions,
    ) -> PortResult<Written> {
        unsupported("Set Blob Metadata", blob)
    }

    /// Delete Blob.
    async fn delete_blob(
        &self,
        _: &CallContext,
        blob: &BlobId,
        _conditions: &Conditions,
        _snapshots: DeleteSnapshots,
    ) -> PortResult<()> {
        unsupported("Delete Blob", blob)
    }

    /// Copy Blob or Copy Blob From URL; this account is the destination.
    async fn start_copy(
        &self,
        _: &CallContext,
        blob: &BlobId,
        _copy: &StartCopy,
    ) -> PortResult<CopyStarted> {
        unsupported("Copy Blob", blob)
    }

    /// Abort Copy Blob.
    async fn abort_copy(&self, _: &CallContext, blob: &BlobId, _copy_id: &str) -> PortResult<()> {
        unsupported("Abort Copy Blob", blob)
    }

    /// Acquire Lease on a blob, for 15 to 60 s, with a proposed id.
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
        _: &CallContext,
        blob: &BlobId,
        _lease_id: &str,
    ) -> PortResult<Lease> {
        unsupported("Renew Lease", blob)
    }

    /// Release Lease.
    async fn release_lease(
        &self,
        cx: &CallContext,
        blob: &BlobId,
        lease_id: &str,
    ) -> PortResult<()>;

    /// Break Lease immediately. Returns `false` if there was none.
    async fn break_lease(&self, _: &CallContext, blob: &BlobId) -> PortResult<bool> {
        unsupported("Break Lease", blob)
    }

    /// Returns whether the blob has snapshots. Costs one listing.
    async fn has_snapshots(&self, _: &CallContext, blob: &BlobId) -> PortResult<bool> {
        unsupported("List Blobs with snapshots", blob)
    }

    /// Get Blob Tags.
    async fn blob_tags(&self, _: &CallContext, blob: &BlobId) -> PortResult<Metadata> {
        unsupported("Get Blob Tags", blob)
    }

    /// Create Container. Returns `false` if it already exists.
    async fn create_container(&self, cx: &CallContext, container: &str) -> PortResult<bool>;

    /// Create Queue. Returns `false` if it already exists.
    async fn create_queue(&self, _: &CallContext, queue: &str) -> PortResult<bool> {
        unsupported("Create Queue", queue)
    }

    /// List Queues: the names of all queues that begin with `prefix`, in order.
    async fn list_queues(&self, _: &CallContext, prefix: &str) -> PortResult<Vec<String>> {
        unsupported("List Queues", prefix)
    }

    /// Delete Queue, with all messages.
    async fn delete_queue(&self, _: &CallContext, queue: &str) -> PortResult<()> {
        unsupported("Delete Queue", queue)
    }

    /// Get Queue Metadata.
    async fn queue_properties(&self, _: &CallContext, queue: &str) -> PortResult<QueueProperties> {
        unsupported("Get Queue Metadata", queue)
    }

    /// Put Message. Never repeated blindly: an unknown outcome has its own error
    /// ([`ErrorKind::OutcomeUnknown`]).
    async fn put_message(
        &self,
        _: &CallContext,
        queue: &str,
        _text: &str,
        _ttl: MessageTtl,
        _visibility_timeout: Duration,
    ) -> PortResult<Receipt> {
        unsupported("Put Message", queue)
    }

    /// Get Messages, 1 to 32, hidden for `visibility_timeout` (1 s to 7 d).
    async fn get_messages(
        &self,
        _: &CallContext,
        queue: &str,
        _count: u32,
        _visibility_timeout: Duration,
    ) -> PortResult<QueueMessages> {
        unsupported("Get Messages", queue)
    }

    /// Peek Messages, 1 to 32.
    async fn peek_messages(
        &self,
        _: &CallContext,
        queue: &str,
        _count: u32,
    ) -> PortResult<QueueMessages> {
        unsupported("Peek Messages", queue)
    }

    /// Update Message: sets the visibility timeout and, if given, the text. The pop receipt
    /// changes.
    async fn update_message(
        &self,
        _: &CallContext,
        queue: &str,
        _id: &str,
        _pop_receipt: &str,
        _visibility_timeout: Duration,
        _text: Option<&str>,
    ) -> PortResult<Receipt> {
        unsupported("Update Message", queue)
    }

    /// Delete Message.
    async fn delete_message(
        &self,
        _: &CallContext,
        queue: &str,
        _id: &str,
        _pop_receipt: &str,
    ) -> PortResult<()> {
        unsupported("Delete Message", queue)
    }

    /// Clear Messages, repeated while the service reports that it has not finished (Q16).
    async fn clear_messages(&self, _: &CallContext, queue: &str) -> PortResult<()> {
        unsupported("Clear Messages", queue)
    }
}
