//! The blobs of payloads: put, fetched, dropped, kept. Each step is one small rule of LS6.

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

/// Metadata by which a sweeper knows when a blob's time is over, as RFC 3339.
pub const TTL_KEY: &str = "TimeToLive";
/// Metadata of a payload whose message went to a poison queue.
const POISONED_KEY: &str = "Poisoned";
/// Payloads up to this length are packed and unpacked where they are: a change of threads takes
/// longer than they do.
pub(crate) const INLINE_BYTES_MAX: u64 = 64 * 1024;
/// Attempts to describe a blob that others change meanwhile.
const KEEP_ATTEMPTS: u32 = 5;

/// Why a payload could not be had.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FetchError {
    /// The blob does not exist.
    #[error("the payload is missing")]
    Missing,
    /// The blob is not bound to this message: it is another message's payload, or none.
    #[error(
        "the payload is not this message's: its blob is bound to another one, and is left alone"
    )]
    Foreign,
    /// The blob holds something else.
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

/// One version of a payload's blob, as it was seen.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) tag: Tag,
    /// Whether it has a time at which the sweeper takes it.
    pub(crate) is_due: bool,
    /// A copy of its message stands in a poison queue.
    pub(crate) is_kept: bool,
    metadata: Metadata,
    /// The service's time, and when it was told.
    told: (Timestamp, Instant),
}

impl Seen {
    fn of(properties: &BlobProperties, server_time: Timestamp) -> Self {
        let has = |key| metadata_value(&properties.metadata, key).is_some();
        Seen {
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

/// The payloads of one queue, in the one container that it is configured for.
pub struct PayloadStore {
    storage: Arc<dyn Storage>,
    offload: Offload,
    queue: String,
    account: Option<AccountLimit>,
    observers: Observers,
    requests: AtomicU64,
}

impl PayloadStore {
    /// The payloads of messages in `queue`, in the container of `offload`.
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

    /// Draws its requests from a budget that others on the account share.
    #[must_use]
    pub fn within(mut self, account: AccountLimit) -> Self {
        self.account = Some(account);
        self
    }

    /// Shows each request to these.
    #[must_use]
    pub(crate) fn observed_by(mut self, observers: Observers) -> Self {
        self.observers = observers;
        self
    }

    /// The settings.
    pub fn offload(&self) -> &Offload {
        &self.offload
    }

    /// Requests so far.
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Before a message is thrown away, as by a purge of a poison queue: gives its payload a time
    /// at which the sweeper takes it, should nobody come to [`PayloadStore::discard`] it. `body` is
    /// the message's body. Says whether it has a payload. A blob that is another message's is left
    /// alone, here and in all that follows.
    ///
    /// # Errors
    /// When storage refuses; a blob that is gone already is no error.
    pub async fn before_discard(&self, body: &[u8]) -> PortResult<bool> {
        let Reading::Claim(claim) = envelope::read(body, &self.offload.bounds()) else {
            return Ok(false);
        };
        let end = |now: Timestamp| Some((TTL_KEY, now.plus(self.offload.margin)));
        self.end(&claim, end).await.map(|()| true)
    }

    /// A copy of a message has left the poison queue for a queue in which it lives so long: its
    /// payload lives on with it, and no longer. Says whether it has one.
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

    /// Before a message is put into another queue than its own: its payload may be read there, too.
    ///
    /// # Errors
    /// When storage refuses, or when an earlier release put the payload: that is bound to its queue
    /// by its name.
    pub async fn admit(&self, body: &[u8], queue: &str) -> PortResult<()> {
        let Reading::Claim(claim) = envelope::read(body, &self.offload.bounds()) else {
            return Ok(());
        };
        if queue == self.queue {
            return Ok(());
        }
        if claim.reference.key.is_none() {
            return Err(PortError {
                kind: ErrorKind::Invalid,
                status: None,
                code: None,
                retry_after: None,
                operation: "Set Blob Metadata",
                resource: claim.reference.blob,
                message: format!(
                    "an earlier release put the payload, which binds it to its queue: put the \
                     message back into {} without --to",
                    self.queue
                ),
            });
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

    /// Deletes the payload of a message that was thrown away: `body` is the message's body. Says
    /// whether it has one.
    ///
    /// # Errors
    /// When storage refuses; a blob that is gone already is no error.
    pub async fn discard(&self, body: &[u8]) -> PortResult<bool> {
        let Reading::Claim(claim) = envelope::read(body, &self.offload.bounds()) else {
            return Ok(false);
        };
        if let Some(seen) = self.look(&claim).await? {
            self.drop_read(&claim, &seen.tag).await?;
        }
        Ok(true)
    }

    /// Metadata of a new blob: bound to the queue and to a key, due for the sweeper at `due`.
    pub(crate) fn metadata(&self, key: &str, due: Option<Timestamp>) -> Metadata {
        let bound = (BOUND_KEY.to_owned(), binding::bound(&self.queue, key));
        let due = due.map(|due| (TTL_KEY.to_owned(), due.iso_s()));
        [bound].into_iter().chain(due).collect()
    }

    /// Puts a new blob.
    pub(crate) async fn put(
        &self,
        name: &str,
        packed: Bytes,
        metadata: &Metadata,
    ) -> PortResult<Written> {
        let put = PutBlob {
            content_type: Some("application/octet-stream".to_owned()),
            metadata: metadata.clone(),
            // Never over another message's payload.
            conditions: Conditions::absent(),
        };
        let (cx, blob) = (context(), self.blob(name));
        let call = self.storage.put_blob(&cx, &blob, packed, &put);
        self.ask("Put Blob", call).await
    }

    /// Gives a blob of our own other metadata.
    pub(crate) async fn postpone(
        &self,
        name: &str,
        metadata: &Metadata,
        tag: &Tag,
    ) -> PortResult<()> {
        let described = self.describe(&self.blob(name), metadata, tag).await;
        described.map(|_| ())
    }

    /// A blob of our own.
    pub(crate) async fn seen(&self, name: &str) -> PortResult<(BlobProperties, Timestamp)> {
        self.properties(&self.blob(name)).await
    }

    /// Creates the container.
    pub(crate) async fn create_container(&self) -> PortResult<()> {
        let cx = context();
        let call = self.storage.create_container(&cx, &self.offload.container);
        self.ask("Create Container", call).await.map(|_| ())
    }

    /// Fetches a payload, checks it, and says which version of the blob it was. One that is due
    /// although its message `lives_on` for ever was about to be dropped by somebody who then could
    /// not delete the message: it is kept again.
    pub(crate) async fn fetch(
        &self,
        claim: &Claim,
        lives_on: bool,
    ) -> Result<(Bytes, Seen), FetchError> {
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
    async fn read(&self, claim: &Claim) -> Result<(Bytes, Seen), FetchError> {
        let reference = &claim.reference;
        let most = match claim.enc {
            Compression::None => reference.len,
            _ => codec::stored_bytes_max(reference.len),
        };
        let (cx, blob) = (context(), self.blob(&reference.blob));
        let call = self.storage.get_blob(&cx, &blob, most);
        let got = self.ask("Get Blob", call).await;
        let got = got.map_err(|error| match error.kind {
            ErrorKind::NotFound => FetchError::Missing,
            ErrorKind::Invalid => FetchError::Damaged(error.to_string()),
            _ => FetchError::Storage(error),
        })?;
        let seen = Seen::of(&got.properties, got.server_time);
        if binding::bond(&self.queue, reference, &seen.metadata) == Bond::Foreign {
            return Err(FetchError::Foreign);
        }
        let (enc, len, sha256) = (claim.enc, reference.len, reference.sha256.clone());
        let stored = got.content;
        let unpack = move || codec::unpack(&stored, enc, len, &sha256);
        let unpacked = if len <= INLINE_BYTES_MAX {
            unpack()?
        } else {
            // Off the runtime's threads: the message's lock is renewed meanwhile.
            let unpacked = tokio::task::spawn_blocking(unpack).await;
            unpacked.map_err(|error| FetchError::Damaged(error.to_string()))??
        };
        Ok((Bytes::from(unpacked), seen))
    }

    /// Its blob as it is now; `None` when it is gone, or not this message's. One that nothing binds
    /// is read: the hash of its content is the proof.
    pub(crate) async fn look(&self, claim: &Claim) -> PortResult<Option<Seen>> {
        let blob = self.blob(&claim.reference.blob);
        let seen = match self.properties(&blob).await {
            Ok((properties, now)) => Seen::of(&properties, now),
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
            "nothing of this blob is changed"
        );
        Ok(None)
    }

    /// Before a message that never expires is deleted: its payload gets a time at which the sweeper
    /// takes it, so that it is not left for good when nobody comes to drop it. `None` when it is
    /// gone, or somebody else's by now.
    pub(crate) async fn schedule(
        &self,
        claim: &Claim,
        seen: Option<Seen>,
    ) -> PortResult<Option<Seen>> {
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
            Ok(written) => Ok(Some(Seen {
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

    /// After its message was deleted: deletes the version that was read. One that was changed since
    /// belongs to a copy of the message in a poison queue, and stays.
    pub(crate) async fn drop_read(&self, claim: &Claim, tag: &Tag) -> PortResult<()> {
        let dropped = self.delete(claim, &Conditions::matching(tag)).await;
        unless(dropped, &[ErrorKind::NotFound, ErrorKind::ConditionNotMet])
    }

    /// The same where this process has not read the blob.
    pub(crate) async fn drop_unread(&self, claim: &Claim) -> PortResult<()> {
        match self.look(claim).await? {
            Some(seen) if !seen.is_kept => self.drop_read(claim, &seen.tag).await,
            _ => Ok(()),
        }
    }

    /// Before a copy of its message is put into a poison queue, where it never expires: the blob
    /// neither.
    pub(crate) async fn keep(&self, claim: &Claim) -> PortResult<()> {
        self.end(claim, |now| Some((POISONED_KEY, now))).await
    }

    /// Replaces what a blob's metadata say about its end.
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

    /// Changes a blob's metadata. Each change is made to the version that was seen.
    async fn change(&self, claim: &Claim, to: impl Fn(&mut Metadata, Timestamp)) -> PortResult<()> {
        let blob = self.blob(&claim.reference.blob);
        let mut attempts = 0;
        loop {
            // Of one that is gone or another's nothing is changed; its message may be worth keeping
            // all the same.
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

    /// Deletes a blob of our own that no message refers to.
    pub(crate) async fn take_back(&self, claim: &Claim) -> PortResult<()> {
        let dropped = self.delete(claim, &Conditions::default()).await;
        unless(dropped, &[ErrorKind::NotFound])
    }

    async fn describe(&self, blob: &BlobId, with: &Metadata, tag: &Tag) -> PortResult<Written> {
        let (cx, only) = (context(), Conditions::matching(tag));
        let call = self.storage.set_blob_metadata(&cx, blob, with, &only);
        self.ask("Set Blob Metadata", call).await
    }

    async fn delete(&self, claim: &Claim, conditions: &Conditions) -> PortResult<()> {
        let (cx, blob) = (context(), self.blob(&claim.reference.blob));
        let snapshots = DeleteSnapshots::Include;
        let call = self.storage.delete_blob(&cx, &blob, conditions, snapshots);
        self.ask("Delete Blob", call).await
    }

    /// References were checked to name this container; whatever they name, this is where we look.
    fn blob(&self, name: &str) -> BlobId {
        BlobId::new(&self.offload.container, name)
    }

    async fn properties(&self, blob: &BlobId) -> PortResult<(BlobProperties, Timestamp)> {
        let cx = context();
        let call = self.storage.blob_properties(&cx, blob);
        self.ask("Get Blob Properties", call).await
    }

    /// Sends a request when it may be sent, counts it, and shows what came of it.
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

fn context() -> CallContext {
    CallContext {
        client_request_id: String::new(),
        muted: true,
    }
}

/// Whether this is the name of a piece of metadata: names come back in lower case.
fn is_key(name: &str, key: &str) -> bool {
    name.eq_ignore_ascii_case(key)
}

/// A result in which these errors count as done.
fn unless(result: PortResult<()>, done: &[ErrorKind]) -> PortResult<()> {
    match result {
        Err(error) if done.contains(&error.kind) => Ok(()),
        result => result,
    }
}
