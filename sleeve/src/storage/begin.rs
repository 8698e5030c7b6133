//! Starts every call: checks before anything is sent, and creates the client.

use std::sync::Arc;

use azure_core::http::Etag;
use azure_storage_blob::{BlobContainerClient, BlobServiceClient};
use azure_storage_queue::{QueueClient, QueueServiceClient};

use super::AzureStorage;
use crate::context::{self, ContextError};
use crate::error::PortError;
use crate::names;
use crate::policy::{Call, Repeat};
use crate::port::{BlobId, CallContext, Conditions, PortResult, Tag};

/// Wire form of the condition on absence.
const ANY: &str = "*";

/// One blob or container as one context addresses it: checks, URL and request id are made once, for
/// any number of calls. What is wrong with them is the error of each call.
pub(crate) struct Client<C> {
    resource: String,
    pub(crate) container: String,
    pub(crate) blob: Option<String>,
    request_id: Result<Option<String>, ContextError>,
    sdk: Result<C, String>,
}

pub(crate) type BlobClient = Client<azure_storage_blob::BlobClient>;
pub(crate) type ContainerClient = Client<BlobContainerClient>;

impl<C> Client<C> {
    pub(crate) fn begin(
        &self,
        operation: &'static str,
        repeat: Repeat,
    ) -> PortResult<(Arc<Call>, &C)> {
        self.begin_as(operation, repeat, |call| call)
    }

    pub(super) fn begin_as(
        &self,
        operation: &'static str,
        repeat: Repeat,
        finish: impl FnOnce(Call) -> Call,
    ) -> PortResult<(Arc<Call>, &C)> {
        let mut call = Call::new(operation, self.resource.clone(), repeat, None);
        let request_id = self.request_id.as_ref();
        call.request_id = (request_id.map_err(|why| call.invalid(&why.to_string()))?).clone();
        let sdk = self.sdk.as_ref().map_err(|why| call.invalid(why))?;
        Ok((Arc::new(finish(call)), sdk))
    }
}

impl AzureStorage {
    pub(crate) fn blob(&self, cx: &CallContext, blob: &BlobId) -> BlobClient {
        let sdk = || {
            let client = self.blobs()?.blob_client(&blob.container, &blob.name);
            names::check_blob(blob, client.url()).map(|()| client)
        };
        Client {
            resource: format!("{}/{}/{}", self.shared.account, blob.container, blob.name),
            container: blob.container.clone(),
            blob: Some(blob.name.clone()),
            request_id: context::header_value(cx),
            sdk: sdk(),
        }
    }

    pub(crate) fn container(&self, cx: &CallContext, container: &str) -> ContainerClient {
        let sdk = || {
            names::check_container(container)?;
            Ok(self.blobs()?.blob_container_client(container))
        };
        Client {
            resource: format!("{}/{container}", self.shared.account),
            container: container.to_owned(),
            blob: None,
            request_id: context::header_value(cx),
            sdk: sdk(),
        }
    }

    fn blobs(&self) -> Result<&BlobServiceClient, String> {
        let service = self.shared.blobs.as_ref();
        service.ok_or_else(|| "the account has no blob endpoint".to_owned())
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
        let service = self.blobs().map_err(|why| call.invalid(&why))?;
        Ok((Arc::new(call), service))
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
        let client = call.check(service.queue_client(queue))?;
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
    call.request_id = context::header_value(cx).map_err(|why| call.invalid(&why.to_string()))?;
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
