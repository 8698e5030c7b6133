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
    Downloaded, Lease, ListBlobs, MessageTtl, Metadata, PortResult, PublicAccess, PutBlob,
    QueueMessages, QueueProperties, Receipt, StartCopy, Storage, Tag, Written,
};

/// SAS version used by [`AzureStorage::signed_url`]; supported by all current services, including
/// emulators.
pub(super) const SAS_VERSION: ApiVersion = ApiVersion::V2021_12_02;

impl AzureStorage {
    /// Returns a URL with a SAS for a container, or for one of its blobs, for those who need
    /// credentials of their own, such as encoders (G14). `permissions` has Azure's letters in their
    /// documented order, such as `rcw`. Only a key or a fetched signing key can choose them: an
    /// account opened with a SAS passes on that SAS.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`](crate::ErrorKind) for invalid names, and for an account opened with a
    /// token whose signing key was not fetched ([`Storage::fetch_signing_key`]).
    pub fn signed_url(
        &self,
        container: &str,
        blob: Option<&str>,
        permissions: &str,
        lifetime: Duration,
    ) -> PortResult<String> {
        let (cx, sign) = (CallContext::default(), "Sign Blob URL");
        // The checks are the same as before a request, so that the URL never refers to another
        // blob.
        let url = match blob {
            Some(blob) => {
                let blob = BlobId::new(container, blob);
                self.blob(&cx, &blob).begin(sign, Repeat::Read)?;
                self.plain_url(&blob)
            }
            None => {
                let client = self.container(&cx, container);
                let (_, client) = client.begin(sign, Repeat::Read)?;
                client.url().to_string()
            }
        };
        let target = SasTarget {
            service: Service::Blob,
            account: &self.shared.account,
            name: container,
            blob,
            snapshot: "",
        };
        let sas = match &self.shared.credential {
            // Without `spr`, so that the SAS also works over an emulator's plain HTTP.
            Credential::Key(key) => ServiceSas {
                version: SAS_VERSION,
                target,
                permissions,
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
            Credential::Token(_) => self.delegated_sas(target, permissions, lifetime)?,
        };
        Ok(format!("{url}?{sas}"))
    }

    fn plain_url(&self, blob: &BlobId) -> String {
        match &self.shared.blob_endpoint {
            Some(endpoint) => names::blob_url(endpoint, blob),
            None => String::new(),
        }
    }
}

// The trait refuses by default what a storage leaves out; this one leaves out nothing.
#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl Storage for AzureStorage {
    fn account(&self) -> &str {
        &self.shared.account
    }

    fn blob_url(&self, blob: &BlobId) -> String {
        self.plain_url(blob)
    }

    fn readable_url(&self, blob: &BlobId, lifetime: Duration) -> PortResult<String> {
        self.signed_url(&blob.container, Some(&blob.name), "r", lifetime)
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
        self.container(cx, container).list(list).await
    }

    async fn blob_properties(
        &self,
        cx: &CallContext,
        blob: &BlobId,
    ) -> PortResult<(BlobProperties, Timestamp)> {
        self.blob(cx, blob).head(&Conditions::default()).await
    }

    async fn get_blob(
        &self,
        cx: &CallContext,
        blob: &BlobId,
        most_bytes: u64,
    ) -> PortResult<Downloaded> {
        let any = Conditions::default();
        self.blob(cx, blob).get(most_bytes, &any).await
    }

    async fn get_blob_range(
        &self,
        cx: &CallContext,
        blob: &BlobId,
        version: &Tag,
        from: u64,
        bytes: u64,
    ) -> PortResult<Bytes> {
        self.blob(cx, blob).range(version, from, bytes).await
    }

    async fn put_blob(
        &self,
        cx: &CallContext,
        blob: &BlobId,
        content: Bytes,
        put: &PutBlob,
    ) -> PortResult<Written> {
        self.blob(cx, blob).put(content, put).await
    }

    async fn set_blob_metadata(
        &self,
        cx: &CallContext,
        blob: &BlobId,
        metadata: &Metadata,
        conditions: &Conditions,
    ) -> PortResult<Written> {
        self.blob(cx, blob).describe(metadata, conditions).await
    }

    async fn delete_blob(
        &self,
        cx: &CallContext,
        blob: &BlobId,
        conditions: &Conditions,
        snapshots: DeleteSnapshots,
    ) -> PortResult<()> {
        self.blob(cx, blob).delete(conditions, snapshots).await
    }

    async fn start_copy(
        &self,
        cx: &CallContext,
        blob: &BlobId,
        copy: &StartCopy,
    ) -> PortResult<CopyStarted> {
        self.blob(cx, blob).copy(copy).await
    }

    async fn abort_copy(&self, cx: &CallContext, blob: &BlobId, copy_id: &str) -> PortResult<()> {
        self.blob(cx, blob).stop_copy(copy_id).await
    }

    async fn acquire_lease(
        &self,
        cx: &CallContext,
        blob: &BlobId,
        proposed_id: &str,
        duration_s: u32,
    ) -> PortResult<Lease> {
        let blob = self.blob(cx, blob);
        blob.acquire(proposed_id, duration_s).await
    }

    async fn renew_lease(
        &self,
        cx: &CallContext,
        blob: &BlobId,
        lease_id: &str,
    ) -> PortResult<Lease> {
        self.blob(cx, blob).renew(lease_id).await
    }

    async fn release_lease(
        &self,
        cx: &CallContext,
        blob: &BlobId,
        lease_id: &str,
    ) -> PortResult<()> {
        self.blob(cx, blob).release(lease_id).await
    }

    async fn break_lease(&self, cx: &CallContext, blob: &BlobId) -> PortResult<bool> {
        self.blob(cx, blob).break_off().await
    }

    async fn has_snapshots(&self, cx: &CallContext, blob: &BlobId) -> PortResult<bool> {
        let container = self.container(cx, &blob.container);
        container.has_snapshots(&blob.name).await
    }

    async fn blob_tags(&self, cx: &CallContext, blob: &BlobId) -> PortResult<Metadata> {
        self.blob(cx, blob).tags().await
    }

    async fn create_container(&self, cx: &CallContext, container: &str) -> PortResult<bool> {
        let container = self.container(cx, container);
        let created = container.create(PublicAccess::Private).await?;
        Ok(created.0)
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
