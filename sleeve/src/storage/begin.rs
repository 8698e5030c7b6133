//! Starts every call: checks before anything is sent, and creates the client.

use std::sync::Arc;

use azure_core::http::Etag;
#[cfg(feature = "entra")]
use azure_storage_blob::BlobServiceClient;
use azure_storage_blob::{BlobClient, BlobContainerClient};
use azure_storage_queue::{QueueClient, QueueServiceClient};

use super::AzureStorage;
use crate::context;
use crate::error::PortError;
use crate::names;
use crate::policy::{Call, Repeat};
use crate::port::{BlobId, CallContext, Conditions, PortResult, Tag};

/// Wire form of the condition on absence.
const ANY: &str = "*";

impl AzureStorage {
    pub(super) fn on_blob(
        &self,
        operation: &'static str,
        repeat: Repeat,
        cx: &CallContext,
        blob: &BlobId,
    ) -> PortResult<(Call, BlobClient)> {
        let resource = format!("{}/{}/{}", self.shared.account, blob.container, blob.name);
        let call = begin(operation, resource, repeat, cx)?;
        let service = (self.shared.blobs.as_ref())
            .ok_or_else(|| call.invalid("the account has no blob endpoint"))?;
        let client = service.blob_client(&blob.container, &blob.name);
        names::check_blob(blob, client.url()).map_err(|why| call.invalid(&why))?;
        Ok((call, client))
    }

    /// Starts a call on the account's Blob service.
    #[cfg(feature = "entra")]
    pub(super) fn on_blobs(
        &self,
        operation: &'static str,
        repeat: Repeat,
        cx: &CallContext,
    ) -> PortResult<(Arc<Call>, &BlobServiceClient)> {
        let call = begin(operation, self.shared.account.clone(), repeat, cx)?;
        let service = (self.shared.blobs.as_ref())
            .ok_or_else(|| call.invalid("the account has no blob endpoint"))?;
        Ok((Arc::new(call), service))
    }

    pub(super) fn on_container(
        &self,
        operation: &'static str,
        repeat: Repeat,
        cx: &CallContext,
        container: &str,
    ) -> PortResult<(Arc<Call>, BlobContainerClient)> {
        let resource = format!("{}/{container}", self.shared.account);
        let call = begin(operation, resource, repeat, cx)?;
        names::check_container(container).map_err(|why| call.invalid(&why))?;
        let service = (self.shared.blobs.as_ref())
            .ok_or_else(|| call.invalid("the account has no blob endpoint"))?;
        Ok((Arc::new(call), service.blob_container_client(container)))
    }

    /// Starts a call on the account's Queue service.
    pub(super) fn on_queues(
        &self,
        operation: &'static str,
        repeat: Repeat,
        cx: &CallContext,
    ) -> PortResult<(Arc<Call>, &QueueServiceClient)> {
        let call = begin(operation, self.shared.account.clone(), repeat, cx)?;
        let service = (self.shared.queues.as_ref())
            .ok_or_else(|| call.invalid("the account has no queue endpoint"))?;
        Ok((Arc::new(call), service))
    }

    pub(super) fn on_queue(
        &self,
        operation: &'static str,
        repeat: Repeat,
        cx: &CallContext,
        queue: &str,
    ) -> PortResult<(Arc<Call>, QueueClient)> {
        let resource = format!("{}/{queue}", self.shared.account);
        let call = begin(operation, resource, repeat, cx)?;
        names::check_queue(queue).map_err(|why| call.invalid(&why))?;
        let service = (self.shared.queues.as_ref())
            .ok_or_else(|| call.invalid("the account has no queue endpoint"))?;
        let client = service
            .queue_client(queue)
            .map_err(|error| call.fail(&error))?;
        Ok((Arc::new(call), client))
    }
}

fn begin(
    operation: &'static str,
    resource: String,
    repeat: Repeat,
    cx: &CallContext,
) -> Result<Call, PortError> {
    let mut call = Call::new(operation, resource, repeat, None);
    call.request_id = context::header_value(cx).map_err(|why| call.invalid(&why))?;
    Ok(call)
}

/// Returns `If-Match`; never empty (G13).
pub(super) fn if_match(conditions: &Conditions) -> Option<Etag> {
    let given = conditions.if_match.as_ref();
    given.and_then(etag)
}

/// Returns `If-None-Match: *`, if absence is required.
pub(super) fn if_none_match(conditions: &Conditions) -> Option<Etag> {
    conditions.if_absent.then(|| Etag::from(ANY))
}

/// Converts an ETag for the SDK; `None` if it is empty.
pub(super) fn etag(tag: &Tag) -> Option<Etag> {
    (!tag.0.trim().is_empty()).then(|| Etag::from(tag.0.as_str()))
}
