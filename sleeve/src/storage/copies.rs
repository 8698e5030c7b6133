//! Copies within the service: start and abort.

use azure_storage_blob::models::{BlobClientAbortCopyOptions, BlobClientStartCopyFromUrlOptions};

use super::answer::{Answer, copy_status};
use super::begin::{BlobClient, etag, if_match, if_none_match};
use super::blobs::map;
use crate::names;
use crate::policy::{Repeat, options};
use crate::port::{CopyStarted, PortResult, StartCopy};

impl BlobClient {
    /// The synchronous form (Copy Blob From URL) differs by one header that the SDK does not
    /// support.
    pub(crate) async fn copy(&self, copy: &StartCopy) -> PortResult<CopyStarted> {
        let operation = match copy.synchronous {
            true => "Copy Blob From URL",
            false => "Copy Blob",
        };
        let (call, client) = self.begin_as(operation, Repeat::Conditional, |call| {
            match copy.synchronous {
                true => call.with_header("x-ms-requires-sync", "true"),
                false => call,
            }
        })?;
        if let Some(metadata) = &copy.metadata {
            names::check_metadata(metadata).map_err(|why| call.invalid(&why))?;
        }
        let asked = BlobClientStartCopyFromUrlOptions {
            source_if_match: copy.source_if_match.as_ref().and_then(etag),
            metadata: copy.metadata.as_ref().map(map),
            tier: copy.tier.as_deref().and_then(|tier| tier.parse().ok()),
            blob_tags_string: copy.tags.as_ref().map(names::tags_header),
            if_match: if_match(&copy.conditions),
            if_tags: copy.conditions.if_tags.clone(),
            if_none_match: if_none_match(&copy.conditions),
            lease_id: copy.conditions.lease_id.clone(),
            method_options: options(&call),
            ..Default::default()
        };
        let started = call.check(
            client
                .start_copy_from_url(copy.source_url.clone(), Some(asked))
                .await,
        )?;
        let answer = Answer::read(started.headers());
        let id = answer
            .copy_id
            .ok_or_else(|| call.unreadable("no copy id"))?;
        let status = answer.copy_status.unwrap_or_default();
        Ok(CopyStarted {
            id: id.to_owned(),
            status: copy_status(&call, status)?,
            etag: answer.tag(&call)?,
        })
    }

    pub(super) async fn stop_copy(&self, copy_id: &str) -> PortResult<()> {
        let (call, client) = self.begin("Abort Copy Blob", Repeat::Removal)?;
        let asked = BlobClientAbortCopyOptions {
            method_options: options(&call),
            ..Default::default()
        };
        let stopped = client.abort_copy(copy_id, Some(asked)).await;
        call.removed(stopped, |error| {
            error.code.as_deref() == Some("NoPendingCopyOperation")
        })
    }
}
