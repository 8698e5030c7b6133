//! The blobs of payloads: put, fetched, deleted or kept. Each step implements one rule of LS6.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use smalt_protocol::Timestamp;
use tokio::time::Instant;

use smalt_sleeve::port::{
    BlobId, BlobProperties, CallContext, Conditions, DeleteSnapshots, ErrorKind, MessageTtl,
    Metadata, PortError, PortResult, PutBlob, Storage, Tag, Written, metadata_value,
};

use super::binding::{self, BOUND_KEY, Bond};
use super::codec::{self, Damage};
use super::envelope::{self, Claim, Reading};
use super::{Compression, Offload};
use crate::observers::Observers;
use crate::throttle::{AccountLimit, Priority};

/// Metadata name for the time after which a sweeper deletes a blob, as RFC 3339.
pub const TTL_KEY: &str = "TimeToLive";
/// Metadata name that marks a payload whose message went to a poison queue.
const POISONED_KEY: &str = "Poisoned";
/// Payloads up to this length are packed and unpacked in place, which is faster than switching
/// threads.
pub(crate) const INLINE_BYTES_MAX: u64 = 64 * 1024;
/// Attempts to change the metadata of a blob that others change as well.
const KEEP_ATTEMPTS: u32 = 5;

/// Why a payload could not be fetched.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FetchError {
    #[error("the payload is missing")]
    Missing,
    /// The blob is not bound to this message: it is another message's payload, or not a payload.
    #[error(
        "the payload's blob is bound to another message than this one, and so it is left unchanged"
    )]
    Foreign,
    #[error("{0}")]
    Damaged(String),
    #[error("the payload cannot be read: {0}")]
    Storage(PortError),
}

impl From<Damage> for FetchError {
    fn from(damage: Damage) -> Self {
        FetchError::Damaged(damage.to_string())
    }
}

#[derive(Clone, Debug)]
pub(crate) struct BlobVersion {
    pub(crate) tag: Tag,
    /// Whether it has a time after which the sweeper deletes it.
    pub(crate) is_due: bool,
    /// Whether it is kept for a copy of its message in a poison queue.
    pub(crate) is_kept: bool,
    metadata: Metadata,
    /// The service's time of the answer, and when it arrived.
    told: (Timestamp, Instant),
}

impl BlobVersion {
    fn of(properties: &BlobProperties, server_time: Timestamp) -> Self {
        let has = |key| metadata_value(&properties.metadata, key).is_some();
        BlobVersion {
            tag: properties.etag.clone(),
            is_due: has(TTL_KEY),
            is_kept: has(POISONED_KEY),
            metadata: properties.metadata.clone(),
            told: (server_time, Instant::now()),
        }
    }

    fn server_now(&self) -> Timestamp {
        let (time, at) = self.told;
        time.plus(at.elapsed())
    }
}

/// The payloads of one queue, in its configured container.
pub struct PayloadStore {
    storage: Arc<dyn Storage>,
    offload: Offload,
    queue: String,
    account: Option<AccountLimit>,
    observers: Observers,
    requests: AtomicU64,
}

impl PayloadStore {
    /// Creates the store for payloads of messages in `queue`, in the container of `offload`.
    pub fn new(storage: Arc<dyn Storage>, offload: Offload, queue: &str) -> Self {
        PayloadStore {
            storage,
            offload,
            queue: queue.to_owned(),
            account: None,
            observers: Observers::default(),
            requests: AtomicU64::new(0),
        }
    }

    /// Limits its requests by a limit that others on the account share.
    #[must_use]
    pub fn within(mut self, account: AccountLimit) -> Self {
        self.account = Some(account);
        self
    }

    /// Reports each request to `observers`.
    #[must_use]
    pub(crate) fn observed_by(mut self, observers: Observers) -> Self {
        self.observers = observers;
        self
    }

    /// Returns the settings.
    pub fn offload(&self) -> &Offload {
        &self.offload
    }

    /// Returns the number of requests so far.
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Prepares the payload of a message for its discard, as in a purge of a poison queue: sets a
    /// time after which the sweeper deletes it if [`PayloadStore::discard`] is not called. Returns
    /// whether `body`, the message's body, refers to a payload. Never changes a blob that belongs
    /// to another message; nor do the methods below.
    ///
    /// # Errors
    /// Storage fails; a blob that is already gone is not an error.
    pub async fn before_discard(&self, body: &[u8]) -> PortResult<bool> {
        let Reading::Claim(claim) = envelope::read(body, &self.offload.bounds()) else {
            return Ok(false);
        };
        let end = |now: Timestamp| Some((TTL_KEY, now.plus(self.offload.margin)));
        self.end(&claim, end).await.map(|()| true)
    }

    /// Sets the expiry of the payload of a message that was put back from a poison queue with this
    /// time to live. Returns whether the body refers to a payload.
    ///
    /// # Errors
    /// As of [`PayloadStore::before_discard`].
    pub async fn requeued(&self, body: &[u8], life: MessageTtl) -> PortResult<bool> {
        let Reading::Claim(claim) = envelope::read(body, &self.offload.bounds()) else {
            return Ok(false);
        };
        let end = |now: Timestamp| match life {
            MessageTtl::After(life) => Some((TTL_KEY, now.plus(life + self.offload.margin))),
            MessageTtl::Never => None,
        };
        self.end(&claim, end).await.map(|()| true)
    }

    /// Allows the payload to be read from another queue, before its message is put there.
    ///
    /// # Errors
    /// Storage fails, or an earlier release put the payload, which is bound to its queue by its
    /// name.
    pub async fn admit(&self, body: &[u8], queue: &str) -> PortResult<()> {
        let Reading::Claim(claim) = envelope::read(body, &self.offload.bounds()) else {
            return Ok(());
        };
        if queue == self.queue {
            return Ok(());
        }
        if claim.reference.key.is_none() {
            let why = format!(
                "an earlier release put the payload, which binds it to its queue; put the message \
                 back into {} without --to",
                self.queue
            );
            let (kind, operation) = (ErrorKind::Invalid, "Set Blob Metadata");
            return Err(PortError::new(kind, operation, claim.reference.blob, why));
        }
        self.change(&claim, |seen, _| {
            let value = metadata_value(seen, BOUND_KEY).unwrap_or_default();
            if let Some(value) = binding::bound_also(value, queue) {
                seen.retain(|name, _| !is_key(name, BOUND_KEY));
                seen.insert(BOUND_KEY.to_owned(), value);
            }
        })
        .await
    }

    /// Deletes the payload of a message that was discarded; `body` is the message's body. Returns
    /// whether it refers to a payload.
    ///
    /// # Errors
    /// Storage fails; a blob that is already gone is not an error.
    pub async fn discard(&self, body: &[u8]) -> PortResult<bool> {
        let Reading::Claim(claim) = envelope::read(body, &self.offload.bounds()) else {
            return Ok(false);
        };
        if let Some(seen) = self.look(&claim).await? {
            self.drop_read(&claim, &seen.tag).await?;
        }
        Ok(true)
    }

    /// Returns the metadata of a new blob, bound to the queue and to `key`, with its expiry at
    /// `due`.
    pub(crate) fn metadata(&self, key: &str, due: Option<Timestamp>) -> Metadata {
        let bound = (BOUND_KEY.to_owned(), binding::bound(&self.queue, key));
        let due = due.map(|due| (TTL_KEY.to_owned(), due.iso_s()));
        [bound].into_iter().chain(due).collect()
    }

    pub(crate) async fn put(
        &self,
        name: &str,
        packed: Bytes,
        metadata: &Metadata,
    ) -> PortResult<Written> {
        let put = PutBlob {
            content_type: Some("application/octet-stream".to_owned()),
            metadata: metadata.clone(),
            // Never overwrites another message's payload.
            conditions: Conditions::absent(),
        };
        let (cx, blob) = (CallContext::housekeeping(), self.blob(name));
        let call = self.storage.put_blob(&cx, &blob, packed, &put);
        self.ask("Put Blob", call).await
    }

    /// Replaces the metadata of a blob that this process put.
    pub(crate) async fn postpone(
        &self,
        name: &str,
        metadata: &Metadata,
        tag: &Tag,
    ) -> PortResult<()> {
        let described = self.describe(&self.blob(name), metadata, tag).await;
        described.map(|_| ())
    }

    /// Returns the properties of a blob that this process put.
    pub(crate) async fn seen(&self, name: &str) -> PortResult<(BlobProperties, Timestamp)> {
        self.properties(&self.blob(name)).await
    }

    pub(crate) async fn create_container(&self) -> PortResult<()> {
        let cx = CallContext::housekeeping();
        let call = self.storage.create_container(&cx, &self.offload.container);
        self.ask("Create Container", call).await.map(|_| ())
    }

    /// Fetches and checks a payload, and returns it with its blob's version. If the blob has an
    /// expiry although its message `lives_on` forever, a listener prepared a delete that then
    /// failed; the expiry is removed again.
    pub(crate) async fn fetch(
        &self,
        claim: &Claim,
        lives_on: bool,
    ) -> Result<(Bytes, BlobVersion), FetchError> {
        let (payload, mut seen) = self.read(claim).await?;
        if seen.is_due && lives_on {
            seen.metadata.retain(|name, _| !is_key(name, TTL_KEY));
            let blob = self.blob(&claim.reference.blob);
            let kept = self.describe(&blob, &seen.metadata, &seen.tag).await;
            seen.tag = kept.map_err(FetchError::Storage)?.etag;
            seen.is_due = false;
        }
        Ok((payload, seen))
    }

    /// Reads a payload and checks that it is this message's.
    async fn read(&self, claim: &Claim) -> Result<(Bytes, BlobVersion), FetchError> {
        let reference = &claim.reference;
        let most = match claim.enc {
            Compression::None => reference.len,
            _ => codec::stored_bytes_max(reference.len),
        };
        let (cx, blob) = (CallContext::housekeeping(), self.blob(&reference.blob));
        let call = self.storage.get_blob(&cx, &blob, most);
        let got = self.ask("Get Blob", call).await;
        let got = got.map_err(|error| match error.kind {
            ErrorKind::NotFound => FetchError::Missing,
            ErrorKind::Invalid => FetchError::Damaged(error.to_string()),
            _ => FetchError::Storage(error),
        })?;
        let seen = BlobVersion::of(&got.properties, got.server_time);
        if binding::bond(&self.queue, reference, &seen.metadata) == Bond::Foreign {
            return Err(FetchError::Foreign);
        }
        let (enc, len, sha256) = (claim.enc, reference.len, reference.sha256.clone());
        let stored = got.content;
        let unpack = move || codec::unpack(&stored, enc, len, &sha256);
        let unpacked = if len <= INLINE_BYTES_MAX {
            unpack()?
        } else {
            // Unpacks on a blocking thread; the message's lock is renewed meanwhile.
            let unpacked = tokio::task::spawn_blocking(unpack).await;
            unpacked.map_err(|error| FetchError::Damaged(error.to_string()))??
        };
        Ok((Bytes::from(unpacked), seen))
    }

    /// Returns the blob's current version; `None` if it is gone or not this message's. An unbound
    /// blob is read, because only the hash of its content proves that it matches.
    pub(crate) async fn look(&self, claim: &Claim) -> PortResult<Option<BlobVersion>> {
        let blob = self.blob(&claim.reference.blob);
        let seen = match self.properties(&blob).await {
            Ok((properties, now)) => BlobVersion::of(&properties, now),
            Err(error) => return unless(Err(error), &[ErrorKind::NotFound]).map(|()| None),
        };
        let refused = match binding::bond(&self.queue, &claim.reference, &seen.metadata) {
            Bond::Ours => return Ok(Some(seen)),
            Bond::Foreign => FetchError::Foreign,
            Bond::Unbound => match self.read(claim).await {
                Ok((_, seen)) => return Ok(Some(seen)),
                Err(FetchError::Storage(error)) => return Err(error),
                Err(refused) => refused,
            },
        };
        tracing::warn!(
            op = "payload",
            queue = %self.queue,
            blob = %blob.name,
            outcome = "payload_foreign",
            reason = %refused,
            "the blob is not changed"
        );
        Ok(None)
    }

    /// Gives the payload of a message that never expires a time after which the sweeper deletes it,
    /// before the message is deleted, so that it does not remain if this process then dies. Returns
    /// `None` if the blob is gone or belongs to another message.
    pub(crate) async fn schedule(
        &self,
        claim: &Claim,
        seen: Option<BlobVersion>,
    ) -> PortResult<Option<BlobVersion>> {
        let seen = match seen {
            Some(seen) => seen,
            None => match self.look(claim).await? {
                Some(seen) => seen,
                None => return Ok(None),
            },
        };
        if seen.is_due || seen.is_kept {
            return Ok(Some(seen));
        }
        let due = seen.server_now().plus(self.offload.margin);
        let mut metadata = seen.metadata.clone();
        metadata.insert(TTL_KEY.to_owned(), due.iso_s());
        let blob = self.blob(&claim.reference.blob);
        match self.describe(&blob, &metadata, &seen.tag).await {
            Ok(written) => Ok(Some(BlobVersion {
                tag: written.etag,
                is_due: true,
                metadata,
                ..seen
            })),
            Err(error) => {
                let others = [ErrorKind::NotFound, ErrorKind::ConditionNotMet];
                unless(Err(error), &others).map(|()| None)
            }
        }
    }

    /// Deletes the version that was read, after its message was deleted. A version that was changed
    /// since belongs to a copy of the message in a poison queue and stays.
    pub(crate) async fn drop_read(&self, claim: &Claim, tag: &Tag) -> PortResult<()> {
        let dropped = self.delete(claim, &Conditions::matching(tag)).await;
        unless(dropped, &[ErrorKind::NotFound, ErrorKind::ConditionNotMet])
    }

    /// Like [`PayloadStore::drop_read`], for a blob that this process has not read.
    pub(crate) async fn drop_unread(&self, claim: &Claim) -> PortResult<()> {
        match self.look(claim).await? {
            Some(seen) if !seen.is_kept => self.drop_read(claim, &seen.tag).await,
            _ => Ok(()),
        }
    }

    /// Removes the blob's expiry before a copy of its message is put into a poison queue, where
    /// messages never expire.
    pub(crate) async fn keep(&self, claim: &Claim) -> PortResult<()> {
        self.end(claim, |now| Some((POISONED_KEY, now))).await
    }

    /// Replaces the expiry and the poison mark in a blob's metadata.
    async fn end(
        &self,
        claim: &Claim,
        says: impl Fn(Timestamp) -> Option<(&'static str, Timestamp)>,
    ) -> PortResult<()> {
        self.change(claim, |metadata, now| {
            metadata.retain(|name, _| !is_key(name, TTL_KEY) && !is_key(name, POISONED_KEY));
            metadata.extend(says(now).map(|(key, at)| (key.to_owned(), at.iso_s())));
        })
        .await
    }

    /// Changes a blob's metadata, under the ETag of the version that was read.
    async fn change(&self, claim: &Claim, to: impl Fn(&mut Metadata, Timestamp)) -> PortResult<()> {
        let blob = self.blob(&claim.reference.blob);
        let mut attempts = 0;
        loop {
            // A blob that is gone or belongs to another message is not changed; the message may
            // still be worth keeping.
            let Some(seen) = self.look(claim).await? else {
                return Ok(());
            };
            let mut metadata = seen.metadata.clone();
            to(&mut metadata, seen.server_now());
            let kept = self.describe(&blob, &metadata, &seen.tag).await;
            attempts += 1;
            match kept {
                Err(error)
                    if error.kind == ErrorKind::ConditionNotMet && attempts < KEEP_ATTEMPTS => {}
                kept => return unless(kept.map(|_| ()), &[ErrorKind::NotFound]),
            }
        }
    }

    /// Deletes a blob that this process put and that no message refers to.
    pub(crate) async fn take_back(&self, claim: &Claim) -> PortResult<()> {
        let dropped = self.delete(claim, &Conditions::default()).await;
        unless(dropped, &[ErrorKind::NotFound])
    }

    async fn describe(&self, blob: &BlobId, with: &Metadata, tag: &Tag) -> PortResult<Written> {
        let (cx, only) = (CallContext::housekeeping(), Conditions::matching(tag));
        let call = self.storage.set_blob_metadata(&cx, blob, with, &only);
        self.ask("Set Blob Metadata", call).await
    }

    async fn delete(&self, claim: &Claim, conditions: &Conditions) -> PortResult<()> {
        let (cx, blob) = (
            CallContext::housekeeping(),
            self.blob(&claim.reference.blob),
        );
        let snapshots = DeleteSnapshots::Include;
        let call = self.storage.delete_blob(&cx, &blob, conditions, snapshots);
        self.ask("Delete Blob", call).await
    }

    /// Always uses the configured container, which references were checked to name.
    fn blob(&self, name: &str) -> BlobId {
        BlobId::new(&self.offload.container, name)
    }

    async fn properties(&self, blob: &BlobId) -> PortResult<(BlobProperties, Timestamp)> {
        let cx = CallContext::housekeeping();
        let call = self.storage.blob_properties(&cx, blob);
        self.ask("Get Blob Properties", call).await
    }

    /// Sends a request when the rate limit allows it, counts it, and reports the result.
    async fn ask<T>(
        &self,
        operation: &'static str,
        call: impl Future<Output = PortResult<T>>,
    ) -> PortResult<T> {
        if let Some(account) = &self.account {
            account.take(Priority::Settle).await;
        }
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.observers.see(operation, call).await
    }
}

/// Compares metadata names, ignoring case because the service returns them in lower case.
fn is_key(name: &str, key: &str) -> bool {
    name.eq_ignore_ascii_case(key)
}

/// Treats these errors as success.
fn unless(result: PortResult<()>, done: &[ErrorKind]) -> PortResult<()> {
    match result {
        Err(error) if done.contains(&error.kind) => Ok(()),
        result => result,
    }
}
