//! The blobs of payloads: put, fetched, dropped, kept. Each step is one small rule of LS6.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use smalt_protocol::Timestamp;
use smalt_sleeve::port::{
    BlobId, BlobProperties, CallContext, Conditions, DeleteSnapshots, ErrorKind, Metadata,
    PortError, PortResult, PutBlob, Storage, Tag, Written, metadata_value,
};

use super::codec::{self, Damage};
use super::envelope::{self, Claim, Reading};
use super::{Compression, Offload};

/// Metadata by which a sweeper knows when a blob's time is over, as RFC 3339.
pub const TTL_KEY: &str = "TimeToLive";
/// Metadata of a payload whose message went to a poison queue.
const POISONED_KEY: &str = "Poisoned";
/// Attempts to describe a blob that others change meanwhile.
const KEEP_ATTEMPTS: u32 = 5;

/// Why a payload could not be had.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FetchError {
    /// Its blob is not there.
    #[error("the payload is missing")]
    Missing,
    /// Its blob is something else.
    #[error("{0}")]
    Damaged(String),
    /// Storage does not answer well.
    #[error("the payload cannot be read: {0}")]
    Storage(PortError),
}

impl From<Damage> for FetchError {
    fn from(damage: Damage) -> Self {
        FetchError::Damaged(damage.to_string())
    }
}

/// The payloads of one queue, in the one container that it is configured for.
pub struct PayloadStore {
    storage: Arc<dyn Storage>,
    offload: Offload,
    requests: AtomicU64,
}

impl PayloadStore {
    /// The payloads in the container of `offload`.
    pub fn new(storage: Arc<dyn Storage>, offload: Offload) -> Self {
        PayloadStore {
            storage,
            offload,
            requests: AtomicU64::new(0),
        }
    }

    /// The settings.
    pub fn offload(&self) -> &Offload {
        &self.offload
    }

    /// Requests so far.
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Deletes the payload of a message that is thrown away, as by a purge of a poison queue:
    /// `body` is the message's body. Says whether it has one.
    ///
    /// # Errors
    /// When storage refuses; a blob that is gone already is no error.
    pub async fn discard(&self, body: &[u8]) -> PortResult<bool> {
        let Reading::Claim(claim) = envelope::read(body, &self.offload.bounds()) else {
            return Ok(false);
        };
        let dropped = self.delete(&claim, &Conditions::default()).await;
        unless(dropped, &[ErrorKind::NotFound]).map(|()| true)
    }

    /// Puts a new blob, due for the sweeper at `due`.
    pub(crate) async fn put(
        &self,
        name: &str,
        packed: Bytes,
        due: Option<Timestamp>,
    ) -> PortResult<Written> {
        let mut metadata = Metadata::new();
        if let Some(due) = due {
            metadata.insert(TTL_KEY.to_owned(), due.iso_s());
        }
        let put = PutBlob {
            content_type: Some("application/octet-stream".to_owned()),
            metadata,
            // Never over another message's payload.
            conditions: Conditions::absent(),
        };
        let blob = self.blob(name);
        let cx = self.context();
        self.storage.put_blob(&cx, &blob, packed, &put).await
    }

    /// Gives a blob another `TimeToLive`, as the only metadata.
    pub(crate) async fn postpone(&self, name: &str, due: Timestamp, tag: &Tag) -> PortResult<()> {
        let metadata = Metadata::from([(TTL_KEY.to_owned(), due.iso_s())]);
        let described = self.describe(&self.blob(name), &metadata, tag).await;
        described.map(|_| ())
    }

    /// A blob of our own.
    pub(crate) async fn seen(&self, name: &str) -> PortResult<(BlobProperties, Timestamp)> {
        let blob = self.blob(name);
        self.storage.blob_properties(&self.context(), &blob).await
    }

    /// Creates the container.
    pub(crate) async fn create_container(&self) -> PortResult<()> {
        let cx = self.context();
        let created = self.storage.create_container(&cx, &self.offload.container);
        created.await.map(|_| ())
    }

    /// Fetches a payload, checks it, and says which version of the blob it was.
    pub(crate) async fn fetch(&self, claim: &Claim) -> Result<(Bytes, Tag), FetchError> {
        let reference = &claim.reference;
        let most = match claim.enc {
            Compression::None => reference.len,
            _ => codec::stored_bytes_max(reference.len),
        };
        let blob = self.blob(&reference.blob);
        let got = self.storage.get_blob(&self.context(), &blob, most).await;
        let got = got.map_err(|error| match error.kind {
            ErrorKind::NotFound => FetchError::Missing,
            ErrorKind::Invalid => FetchError::Damaged(error.to_string()),
            _ => FetchError::Storage(error),
        })?;
        let (enc, len, sha256) = (claim.enc, reference.len, reference.sha256.clone());
        let stored = got.content;
        // Off the runtime's threads: the message's lock is renewed meanwhile.
        let unpacked =
            tokio::task::spawn_blocking(move || codec::unpack(&stored, enc, len, &sha256)).await;
        let unpacked = unpacked.map_err(|error| FetchError::Damaged(error.to_string()))??;
        Ok((Bytes::from(unpacked), got.properties.etag))
    }

    /// After its message was deleted: deletes the version that was read. One that was changed since
    /// belongs to a copy of the message in a poison queue, and stays.
    pub(crate) async fn drop_read(&self, claim: &Claim, tag: &Tag) -> PortResult<()> {
        let dropped = self.delete(claim, &Conditions::matching(tag)).await;
        unless(dropped, &[ErrorKind::NotFound, ErrorKind::ConditionNotMet])
    }

    /// The same where this process has not read the blob.
    pub(crate) async fn drop_unread(&self, claim: &Claim) -> PortResult<()> {
        let blob = self.blob(&claim.reference.blob);
        let seen = self.storage.blob_properties(&self.context(), &blob).await;
        match seen {
            Ok((seen, _)) if metadata_value(&seen.metadata, POISONED_KEY).is_some() => Ok(()),
            Ok((seen, _)) => self.drop_read(claim, &seen.etag).await,
            Err(error) => unless(Err(error), &[ErrorKind::NotFound]),
        }
    }

    /// Before a copy of its message is put into a poison queue, where it never expires: the blob
    /// neither. Each change is made to the version that was seen.
    pub(crate) async fn keep(&self, claim: &Claim) -> PortResult<()> {
        let blob = self.blob(&claim.reference.blob);
        let mut attempts = 0;
        loop {
            let seen = self.storage.blob_properties(&self.context(), &blob).await;
            let (seen, now) = match seen {
                Ok(seen) => seen,
                // It cannot be kept any more, and its message is worth keeping all the same.
                Err(error) => return unless(Err(error), &[ErrorKind::NotFound]),
            };
            let mut metadata = seen.metadata;
            // Names come back in lower case.
            let replaced = |name: &String| {
                let is = |key| name.eq_ignore_ascii_case(key);
                is(TTL_KEY) || is(POISONED_KEY)
            };
            metadata.retain(|name, _| !replaced(name));
            metadata.insert(POISONED_KEY.to_owned(), now.iso_s());
            let kept = self.describe(&blob, &metadata, &seen.etag).await;
            attempts += 1;
            match kept {
                Err(error)
                    if error.kind == ErrorKind::ConditionNotMet && attempts < KEEP_ATTEMPTS => {}
                kept => return unless(kept.map(|_| ()), &[ErrorKind::NotFound]),
            }
        }
    }

    /// Deletes a blob of our own that no message refers to.
    pub(crate) async fn take_back(&self, claim: &Claim) -> PortResult<()> {
        let dropped = self.delete(claim, &Conditions::default()).await;
        unless(dropped, &[ErrorKind::NotFound])
    }

    async fn describe(&self, blob: &BlobId, with: &Metadata, tag: &Tag) -> PortResult<Written> {
        let (cx, only) = (self.context(), Conditions::matching(tag));
        self.storage.set_blob_metadata(&cx, blob, with, &only).await
    }

    async fn delete(&self, claim: &Claim, conditions: &Conditions) -> PortResult<()> {
        let blob = self.blob(&claim.reference.blob);
        let cx = self.context();
        let snapshots = DeleteSnapshots::Include;
        self.storage
            .delete_blob(&cx, &blob, conditions, snapshots)
            .await
    }

    /// References were checked to name this container; whatever they name, this is where we look.
    fn blob(&self, name: &str) -> BlobId {
        BlobId::new(&self.offload.container, name)
    }

    /// Counts a request.
    fn context(&self) -> CallContext {
        self.requests.fetch_add(1, Ordering::Relaxed);
        CallContext {
            client_request_id: String::new(),
            muted: true,
        }
    }
}

/// A result in which these errors count as done.
fn unless(result: PortResult<()>, done: &[ErrorKind]) -> PortResult<()> {
    match result {
        Err(error) if done.contains(&error.kind) => Ok(()),
        result => result,
    }
}
