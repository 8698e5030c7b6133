//! Implements the port by delegating each call to its module.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use smalt_protocol::service::Service;
use smalt_protocol::signing::sas::SasTarget;
use smalt_protocol::signing::sas::build::ServiceSas;
use smalt_protocol::{ApiVersion, Timestamp};

use super::AzureStorage;
use crate::account::Credential;
use crate::names;
use crate::policy::Repeat;
use crate::port::{
    BlobId, BlobPage, BlobProperties, CallContext, Conditions, CopyStarted, DeleteSnapshots,
    Downloaded, Lease, ListBlobs, MessageTtl, Metadata, PortResult, PutBlob, QueueMessages,
    QueueProperties, Receipt, StartCopy, Storage, Written,
};

/// SAS version used by [`Storage::readable_url`]; supported by all current services, including
/// emulators.
pub(super) const SAS_VERSION: ApiVersion = ApiVersion::V2021_12_02;

impl AzureStorage {
    fn plain_url(&self, blob: &BlobId) -> String {
        match &self.shared.blob_endpoint {
            Some(endpoint) => names::blob_url(endpoint, blob),
            None => String::new(),
        }
    }

    /// Returns the SAS target for one blob.
    pub(super) fn sas_target<'a>(&'a self, blob: &'a BlobId) -> SasTarget<'a> {
        SasTarget {
            service: Service::Blob,
            account: &self.shared.account,
            name: &blob.container,
            blob: Some(&blob.name),
            snapshot: "",
        }
    }

    /// Omits `spr` when a key signs, so that the SAS also works over an emulator's plain HTTP.
    fn url_with_sas(&self, blob: &BlobId, lifetime: Duration) -> PortResult<String> {
        let url = self.plain_url(blob);
        let sas = match &self.shared.credential {
            Credential::Key(key) => ServiceSas {
                version: SAS_VERSION,
                target: self.sas_target(blob),
                permissions: "r",
                start: None,
                expiry: Some(self.shared.clock.now().plus(lifetime)),
                policy_id: "",
                ip: "",
                protocol: "",
                more: &[],
            }
            .sign(key.as_bytes()),
            Credential::Sas(sas) => sas.clone(),
            Credential::Anonymous => return Ok(url),
            #[cfg(feature = "entra")]
            Credential::Token(_) => self.delegated_sas(blob, lifetime)?,
        };
        Ok(format!("{url}?{sas}"))
    }
}

#[async_trait]
impl Storage for AzureStorage {
    fn account(&self) -> &str {
        &self.shared.account
    }

    fn blob_url(&self, blob: &BlobId) -> String {
        self.plain_url(blob)
    }

    fn readable_url(&self, blob: &BlobId, lifetime: Duration) -> PortResult<String> {
        // Applies the same checks as before a request, so that the URL never refers to another
        // blob.
        self.on_blob("Sign Blob URL", Repeat::Read, &CallContext::default(), blob)?;
        self.url_with_sas(blob, lifetime)
    }

    #[cfg(feature = "entra")]
    fn lacks_signing_key(&self, lifetime: Duration) -> bool {
        let until = self.shared.clock.now().plus(lifetime);
        matches!(self.shared.credential, Credential::Token(_))
            && self.delegated_key(until).is_none()
    }

    #[cfg(feature = "entra")]
    async fn fetch_signing_key(&self, cx: &CallContext, lifetime: Duration) -> PortResult<()> {
        self.ask_for_key(cx, lifetime).await
    }

    async fn list_blobs(
        &self,
        cx: &CallContext,
        container: &str,
        list: &ListBlobs,
    ) -> PortResult<BlobPage> {
        self.list(cx, container, list).await
    }

    async fn blob_properties(
        &self,
        cx: &CallContext,
        blob: &BlobId,
    ) -> PortResult<(BlobProperties, Timestamp)> {
        self.head(cx, blob).await
    }

    async fn get_blob(
        &self,
        cx: &CallContext,
        blob: &BlobId,
        most_bytes: u64,
    ) -> PortResult<Downloaded> {
        self.get(cx, blob, most_bytes).await
    }

    async fn put_blob(
        &self,
        cx: &CallContext,
        blob: &BlobId,
        content: Bytes,
        put: &PutBlob,
    ) -> PortResult<Written> {
        self.put(cx, blob, content, put).await
    }

    async fn set_blob_metadata(
        &self,
        cx: &CallContext,
        blob: &BlobId,
        metadata: &Metadata,
        conditions: &Conditions,
    ) -> PortResult<Written> {
        self.describe(cx, blob, metadata, conditions).await
    }

    async fn delete_blob(
        &self,
        cx: &CallContext,
        blob: &BlobId,
        conditions: &Conditions,
        snapshots: DeleteSnapshots,
    ) -> PortResult<()> {
        self.delete(cx, blob, conditions, snapshots).await
    }

    async fn start_copy(
        &self,
        cx: &CallContext,
        blob: &BlobId,
        copy: &StartCopy,
    ) -> PortResult<CopyStarted> {
        self.copy(cx, blob, copy).await
    }

    async fn abort_copy(&self, cx: &CallContext, blob: &BlobId, copy_id: &str) -> PortResult<()> {
        self.stop_copy(cx, blob, copy_id).await
    }

    async fn acquire_lease(
        &self,
        cx: &CallContext,
        blob: &BlobId,
        proposed_id: &str,
        duration_s: u32,
    ) -> PortResult<Lease> {
        self.acquire(cx, blob, proposed_id, duration_s).await
    }

    async fn renew_lease(
        &self,
        cx: &CallContext,
        blob: &BlobId,
        lease_id: &str,
    ) -> PortResult<Lease> {
        self.renew(cx, blob, lease_id).await
    }

    async fn release_lease(
        &self,
        cx: &CallContext,
        blob: &BlobId,
        lease_id: &str,
    ) -> PortResult<()> {
        self.release(cx, blob, lease_id).await
    }

    async fn break_lease(&self, cx: &CallContext, blob: &BlobId) -> PortResult<bool> {
        self.break_off(cx, blob).await
    }

    async fn has_snapshots(&self, cx: &CallContext, blob: &BlobId) -> PortResult<bool> {
        self.snapshots(cx, blob).await
    }

    async fn blob_tags(&self, cx: &CallContext, blob: &BlobId) -> PortResult<Metadata> {
        self.tags(cx, blob).await
    }

    async fn create_container(&self, cx: &CallContext, container: &str) -> PortResult<bool> {
        self.make_container(cx, container).await
    }

    async fn create_queue(&self, cx: &CallContext, queue: &str) -> PortResult<bool> {
        self.make_queue(cx, queue).await
    }

    async fn list_queues(&self, cx: &CallContext, prefix: &str) -> PortResult<Vec<String>> {
        self.queue_names(cx, prefix).await
    }

    async fn delete_queue(&self, cx: &CallContext, queue: &str) -> PortResult<()> {
        AzureStorage::delete_queue(self, cx, queue).await
    }

    async fn queue_properties(&self, cx: &CallContext, queue: &str) -> PortResult<QueueProperties> {
        self.queue_facts(cx, queue).await
    }

    async fn put_message(
        &self,
        cx: &CallContext,
        queue: &str,
        text: &str,
        ttl: MessageTtl,
        visibility_timeout: Duration,
    ) -> PortResult<Receipt> {
        self.put_text(cx, queue, text, ttl, visibility_timeout)
            .await
    }

    async fn get_messages(
        &self,
        cx: &CallContext,
        queue: &str,
        count: u32,
        visibility_timeout: Duration,
    ) -> PortResult<QueueMessages> {
        self.take(cx, queue, count, visibility_timeout).await
    }

    async fn peek_messages(
        &self,
        cx: &CallContext,
        queue: &str,
        count: u32,
    ) -> PortResult<QueueMessages> {
        self.peek(cx, queue, count).await
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
        self.update(cx, queue, (id, pop_receipt), visibility_timeout, text)
            .await
    }

    async fn delete_message(
        &self,
        cx: &CallContext,
        queue: &str,
        id: &str,
        pop_receipt: &str,
    ) -> PortResult<()> {
        self.remove(cx, queue, (id, pop_receipt)).await
    }

    async fn clear_messages(&self, cx: &CallContext, queue: &str) -> PortResult<()> {
        self.clear(cx, queue).await
    }
}
