//! A storage client with a deliberate mistake. Each bend is a mistake that a worker could make or
//! rely on and that the properties must catch: it tests the checks.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use smalt_protocol::Timestamp;
use smalt_sleeve::port::{
    BlobId, BlobPage, BlobProperties, CallContext, Conditions, CopyStarted, CopyState, CopyStatus,
    DeleteSnapshots, Downloaded, ErrorKind, Lease, ListBlobs, MessageTtl, Metadata, PortResult,
    PutBlob, QueueMessages, QueueProperties, Receipt, StartCopy, Storage, Tag, Written,
};

/// A deliberate mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bend {
    /// Deletes without `If-Match`.
    DeleteUnconditionally,
    /// Reports a copy as complete without making it.
    ClaimCopyEarly,
    /// Uses a clock that is an hour fast.
    FastClock,
    /// Writes the state document without `If-Match`.
    StateUnconditionally,
    /// Marks every source blob as seen.
    WriteToSource,
    /// Overwrites an existing blob at the destination.
    OverwriteDestination,
    /// Deletes messages as soon as it gets them.
    AcknowledgeEarly,
    /// Keeps using the pop receipt of the get after an update.
    OldReceipt,
    /// Gives copies in the poison queue the time to live of ordinary messages.
    PoisonExpires,
    /// Reports a copy in the poison queue that it never put there.
    PoisonForgotten,
    /// Always reports a dequeue count of 1.
    CountForgotten,
}

impl Bend {
    /// Bends that a sweeper scenario must catch.
    pub const OF_THE_SWEEPER: [Bend; 4] = [
        Bend::DeleteUnconditionally,
        Bend::FastClock,
        Bend::StateUnconditionally,
        Bend::WriteToSource,
    ];
    /// Bends that a sweeper scenario must catch where blobs are moved.
    pub const OF_THE_MOVER: [Bend; 2] = [Bend::ClaimCopyEarly, Bend::OverwriteDestination];
    /// Bends that a listener scenario must catch.
    pub const OF_THE_LISTENER: [Bend; 5] = [
        Bend::AcknowledgeEarly,
        Bend::OldReceipt,
        Bend::PoisonExpires,
        Bend::PoisonForgotten,
        Bend::CountForgotten,
    ];
}

/// How far the clock of [`Bend::FastClock`] is ahead.
const FAST_BY: Duration = Duration::from_secs(3_600);

/// A storage client with one bend.
pub struct Bent {
    inner: Arc<dyn Storage>,
    bend: Bend,
    receipts: Mutex<BTreeMap<String, String>>,
    claimed: Mutex<BTreeMap<BlobId, BlobProperties>>,
}

impl Bent {
    /// Wraps `inner` with a bend.
    pub fn new(inner: Arc<dyn Storage>, bend: Bend) -> Self {
        Bent {
            inner,
            bend,
            receipts: Mutex::default(),
            claimed: Mutex::default(),
        }
    }

    fn is(&self, bend: Bend) -> bool {
        self.bend == bend
    }

    fn time(&self, told: Timestamp) -> Timestamp {
        match self.bend {
            Bend::FastClock => told.plus(FAST_BY),
            _ => told,
        }
    }

    /// Returns the pop receipt that a request uses.
    fn receipt(&self, id: &str, given: &str) -> String {
        let receipts = self.receipts.lock().unwrap_or_else(PoisonError::into_inner);
        receipts.get(id).map_or(given, String::as_str).to_owned()
    }

    fn claimed(&self, blob: &BlobId) -> Option<BlobProperties> {
        let claimed = self.claimed.lock().unwrap_or_else(PoisonError::into_inner);
        claimed.get(blob).cloned()
    }

    /// Returns the answer for a copy that was never made.
    fn claim(&self, blob: &BlobId, copy: &StartCopy) -> CopyStarted {
        let state = CopyState {
            id: "claimed".to_owned(),
            status: CopyStatus::Success,
            source: None,
            description: None,
        };
        let properties = BlobProperties {
            etag: Tag("\"0x1\"".to_owned()),
            last_modified: Timestamp::UNIX_EPOCH,
            length: super::sweep::CONTENT_BYTES,
            content_md5: None,
            content_type: None,
            metadata: copy.metadata.clone().unwrap_or_default(),
            lease: smalt_sleeve::port::LeaseState::Unlocked,
            kind: smalt_sleeve::port::BlobKind::Block,
            copy: Some(state),
            access_tier: None,
            tag_count: 0,
            tags: None,
        };
        let mut claimed = self.claimed.lock().unwrap_or_else(PoisonError::into_inner);
        claimed.insert(blob.clone(), properties);
        CopyStarted {
            id: "claimed".to_owned(),
            status: CopyStatus::Success,
            etag: Tag("\"0x1\"".to_owned()),
        }
    }
}

#[async_trait]
impl Storage for Bent {
    fn account(&self) -> &str {
        self.inner.account()
    }

    fn blob_url(&self, blob: &BlobId) -> String {
        self.inner.blob_url(blob)
    }

    fn readable_url(&self, blob: &BlobId, lifetime: Duration) -> PortResult<String> {
        self.inner.readable_url(blob, lifetime)
    }

    fn lacks_signing_key(&self, lifetime: Duration) -> bool {
        self.inner.lacks_signing_key(lifetime)
    }

    async fn fetch_signing_key(&self, cx: &CallContext, lifetime: Duration) -> PortResult<()> {
        self.inner.fetch_signing_key(cx, lifetime).await
    }

    async fn list_blobs(
        &self,
        cx: &CallContext,
        container: &str,
        list: &ListBlobs,
    ) -> PortResult<BlobPage> {
        let mut page = self.inner.list_blobs(cx, container, list).await?;
        page.server_time = self.time(page.server_time);
        if self.is(Bend::WriteToSource) {
            for item in &page.blobs {
                let mut metadata = item.properties.metadata.clone();
                metadata.insert("seen".to_owned(), "yes".to_owned());
                let blob = BlobId::new(container, &item.name);
                let none = Conditions::default();
                let set = self.inner.set_blob_metadata(cx, &blob, &metadata, &none);
                // This mistake ignores the result.
                let _ = set.await;
            }
        }
        Ok(page)
    }

    async fn blob_properties(
        &self,
        cx: &CallContext,
        blob: &BlobId,
    ) -> PortResult<(BlobProperties, Timestamp)> {
        if let Some(claimed) = self.claimed(blob) {
            return Ok((claimed, Timestamp::UNIX_EPOCH));
        }
        let (properties, now) = self.inner.blob_properties(cx, blob).await?;
        Ok((properties, self.time(now)))
    }

    async fn get_blob(
        &self,
        cx: &CallContext,
        blob: &BlobId,
        most_bytes: u64,
    ) -> PortResult<Downloaded> {
        let mut got = self.inner.get_blob(cx, blob, most_bytes).await?;
        got.server_time = self.time(got.server_time);
        Ok(got)
    }

    async fn put_blob(
        &self,
        cx: &CallContext,
        blob: &BlobId,
        content: Bytes,
        put: &PutBlob,
    ) -> PortResult<Written> {
        let mut put = put.clone();
        if self.is(Bend::StateUnconditionally) {
            // The lease condition stays, because such a worker would rely on it.
            put.conditions.if_match = None;
        }
        self.inner.put_blob(cx, blob, content, &put).await
    }

    async fn set_blob_metadata(
        &self,
        cx: &CallContext,
        blob: &BlobId,
        metadata: &Metadata,
        conditions: &Conditions,
    ) -> PortResult<Written> {
        let set = self.inner.set_blob_metadata(cx, blob, metadata, conditions);
        set.await
    }

    async fn delete_blob(
        &self,
        cx: &CallContext,
        blob: &BlobId,
        conditions: &Conditions,
        snapshots: DeleteSnapshots,
    ) -> PortResult<()> {
        let mut conditions = conditions.clone();
        if self.is(Bend::DeleteUnconditionally) {
            conditions.if_match = None;
        }
        let delete = self.inner.delete_blob(cx, blob, &conditions, snapshots);
        delete.await
    }

    async fn start_copy(
        &self,
        cx: &CallContext,
        blob: &BlobId,
        copy: &StartCopy,
    ) -> PortResult<CopyStarted> {
        if self.is(Bend::ClaimCopyEarly) {
            return Ok(self.claim(blob, copy));
        }
        let mut copy = copy.clone();
        if self.is(Bend::OverwriteDestination) {
            copy.conditions = Conditions::default();
        }
        self.inner.start_copy(cx, blob, &copy).await
    }

    async fn abort_copy(&self, cx: &CallContext, blob: &BlobId, copy_id: &str) -> PortResult<()> {
        self.inner.abort_copy(cx, blob, copy_id).await
    }

    async fn acquire_lease(
        &self,
        cx: &CallContext,
        blob: &BlobId,
        proposed_id: &str,
        duration_s: u32,
    ) -> PortResult<Lease> {
        let acquire = self.inner.acquire_lease(cx, blob, proposed_id, duration_s);
        acquire.await
    }

    async fn renew_lease(
        &self,
        cx: &CallContext,
        blob: &BlobId,
        lease_id: &str,
    ) -> PortResult<Lease> {
        self.inner.renew_lease(cx, blob, lease_id).await
    }

    async fn release_lease(
        &self,
        cx: &CallContext,
        blob: &BlobId,
        lease_id: &str,
    ) -> PortResult<()> {
        self.inner.release_lease(cx, blob, lease_id).await
    }

    async fn create_container(&self, cx: &CallContext, container: &str) -> PortResult<bool> {
        self.inner.create_container(cx, container).await
    }

    async fn create_queue(&self, cx: &CallContext, queue: &str) -> PortResult<bool> {
        self.inner.create_queue(cx, queue).await
    }

    async fn list_queues(&self, cx: &CallContext, prefix: &str) -> PortResult<Vec<String>> {
        self.inner.list_queues(cx, prefix).await
    }

    async fn delete_queue(&self, cx: &CallContext, queue: &str) -> PortResult<()> {
        self.inner.delete_queue(cx, queue).await
    }

    async fn queue_properties(&self, cx: &CallContext, queue: &str) -> PortResult<QueueProperties> {
        self.inner.queue_properties(cx, queue).await
    }

    async fn put_message(
        &self,
        cx: &CallContext,
        queue: &str,
        text: &str,
        ttl: MessageTtl,
        visibility_timeout: Duration,
    ) -> PortResult<Receipt> {
        let ttl = match self.bend {
            Bend::PoisonExpires => MessageTtl::After(Duration::from_secs(7 * 86_400)),
            Bend::PoisonForgotten => {
                return Ok(Receipt {
                    id: "claimed".to_owned(),
                    pop_receipt: "claimed".to_owned(),
                    next_visible: Timestamp::UNIX_EPOCH,
                });
            }
            _ => ttl,
        };
        let put = self
            .inner
            .put_message(cx, queue, text, ttl, visibility_timeout);
        put.await
    }

    async fn get_messages(
        &self,
        cx: &CallContext,
        queue: &str,
        count: u32,
        visibility_timeout: Duration,
    ) -> PortResult<QueueMessages> {
        let get = self
            .inner
            .get_messages(cx, queue, count, visibility_timeout);
        let mut got = get.await?;
        for message in &mut got.messages {
            match self.bend {
                Bend::CountForgotten => message.dequeue_count = 1,
                Bend::AcknowledgeEarly => {
                    let (id, receipt) = (&message.id, &message.pop_receipt);
                    let _ = self.inner.delete_message(cx, queue, id, receipt).await;
                }
                Bend::OldReceipt => {
                    let receipts = self.receipts.lock();
                    let mut receipts = receipts.unwrap_or_else(PoisonError::into_inner);
                    receipts.insert(message.id.clone(), message.pop_receipt.clone());
                }
                _ => {}
            }
        }
        Ok(got)
    }

    async fn peek_messages(
        &self,
        cx: &CallContext,
        queue: &str,
        count: u32,
    ) -> PortResult<QueueMessages> {
        self.inner.peek_messages(cx, queue, count).await
    }

    async fn update_message(
        &self,
        cx: &CallContext,
        queue: &str,
        id: &str,
        pop_receipt: &str,
        visibility_timeout: Duration,
        text: Option<&str>,
    ) -> PortResult<Receipt> {
        let receipt = self.receipt(id, pop_receipt);
        let update = self
            .inner
            .update_message(cx, queue, id, &receipt, visibility_timeout, text);
        update.await
    }

    async fn delete_message(
        &self,
        cx: &CallContext,
        queue: &str,
        id: &str,
        pop_receipt: &str,
    ) -> PortResult<()> {
        let receipt = self.receipt(id, pop_receipt);
        let done = self.inner.delete_message(cx, queue, id, &receipt).await;
        match done {
            // After an early delete the message is gone later, and such a worker ignores that.
            Err(error) if self.is(Bend::AcknowledgeEarly) && error.kind == ErrorKind::NotFound => {
                Ok(())
            }
            done => done,
        }
    }

    async fn clear_messages(&self, cx: &CallContext, queue: &str) -> PortResult<()> {
        self.inner.clear_messages(cx, queue).await
    }
}
