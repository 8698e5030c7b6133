//! Blobs and containers: read, put, set metadata, delete.

use std::collections::HashMap;
use std::num::NonZero;
use std::sync::Arc;

use azure_core::http::Body;
use azure_storage_blob::models::{
    BlobClientDeleteOptions, BlobClientDownloadOptions, BlobClientGetPropertiesOptions,
    BlobClientSetMetadataOptions, BlobContainerClientCreateOptions, BlockBlobClientUploadOptions,
    DeleteSnapshotsOptionType, HttpRange,
};
use bytes::Bytes;
use smalt_protocol::Timestamp;

use super::AzureStorage;
use super::answer::Answer;
use super::begin::{if_match, if_none_match};
use crate::error::ErrorKind;
use crate::names;
use crate::policy::{Repeat, options};
use crate::port::{
    BlobId, BlobProperties, CallContext, Conditions, DeleteSnapshots, Downloaded, Metadata,
    PortResult, PutBlob, Written,
};

/// Longer than any blob (190.7 TiB). The service rejects larger range ends as malformed.
const BLOB_BYTES_MAX: u64 = 1 << 50;

impl AzureStorage {
    pub(super) async fn head(
        &self,
        cx: &CallContext,
        blob: &BlobId,
    ) -> PortResult<(BlobProperties, Timestamp)> {
        let (call, client) = self.on_blob("Get Blob Properties", Repeat::Read, cx, blob)?;
        let call = Arc::new(call);
        let asked = BlobClientGetPropertiesOptions {
            method_options: options(&call),
            ..Default::default()
        };
        let response = client.get_properties(Some(asked)).await;
        let response = response.map_err(|error| call.fail(&error))?;
        let answer = Answer::read(response.headers());
        let server_time = answer.server_time(&call)?;
        Ok((answer.properties(&call)?, server_time))
    }

    /// Makes one ranged request for one byte more than allowed: the response contains the blob's
    /// length, and a blob of any size costs no more than that.
    pub(super) async fn get(
        &self,
        cx: &CallContext,
        blob: &BlobId,
        most_bytes: u64,
    ) -> PortResult<Downloaded> {
        let (call, client) = self.on_blob("Get Blob", Repeat::Read, cx, blob)?;
        let call = Arc::new(call);
        let window = most_bytes.min(BLOB_BYTES_MAX).saturating_add(1);
        let asked = BlobClientDownloadOptions {
            range: Some(HttpRange::new(0, window)),
            partition_size: usize::try_from(window).ok().and_then(NonZero::new),
            parallel: NonZero::new(1),
            method_options: options(&call),
            ..Default::default()
        };
        let downloaded = client.download(Some(asked)).await;
        let downloaded = downloaded.map_err(|error| call.fail(&error))?;
        let answer = Answer::read(&downloaded.headers);
        let server_time = answer.server_time(&call)?;
        let properties = answer.properties(&call)?;
        if properties.length > most_bytes {
            let length = properties.length;
            return Err(call.invalid(&format!("{length} bytes exceed {most_bytes}")));
        }
        let content = downloaded.body.collect().await;
        let content = content.map_err(|error| call.fail(&error))?;
        if content.len() as u64 != properties.length {
            return Err(call.unreadable("the content length differs from the announced one"));
        }
        Ok(Downloaded {
            properties,
            content,
            server_time,
        })
    }

    pub(super) async fn put(
        &self,
        cx: &CallContext,
        blob: &BlobId,
        content: Bytes,
        put: &PutBlob,
    ) -> PortResult<Written> {
        let (call, client) = self.on_blob("Put Blob", Repeat::Conditional, cx, blob)?;
        names::check_metadata(&put.metadata).map_err(|why| call.invalid(&why))?;
        let call = Arc::new(call);
        let asked = BlockBlobClientUploadOptions {
            blob_content_type: put.content_type.clone(),
            metadata: Some(map(&put.metadata)),
            if_match: if_match(&put.conditions),
            if_tags: put.conditions.if_tags.clone(),
            if_none_match: if_none_match(&put.conditions),
            lease_id: put.conditions.lease_id.clone(),
            // A single request for any size; a put in parts would be several operations.
            partition_size: Some(NonZero::<u64>::MAX),
            parallel: NonZero::new(1),
            method_options: options(&call),
            ..Default::default()
        };
        let content = Body::from(content).into();
        let written = client
            .block_blob_client()
            .upload(content, Some(asked))
            .await;
        let written = written.map_err(|error| call.fail(&error))?;
        let answer = Answer::read(written.raw_response.headers());
        Ok(Written {
            etag: answer.tag(&call)?,
            server_time: answer.server_time(&call)?,
        })
    }

    pub(super) async fn describe(
        &self,
        cx: &CallContext,
        blob: &BlobId,
        metadata: &Metadata,
        conditions: &Conditions,
    ) -> PortResult<Written> {
        let (call, client) = self.on_blob("Set Blob Metadata", Repeat::Conditional, cx, blob)?;
        names::check_metadata(metadata).map_err(|why| call.invalid(&why))?;
        let call = Arc::new(call);
        let asked = BlobClientSetMetadataOptions {
            if_match: if_match(conditions),
            if_tags: conditions.if_tags.clone(),
            if_none_match: if_none_match(conditions),
            lease_id: conditions.lease_id.clone(),
            method_options: options(&call),
            ..Default::default()
        };
        let response = client.set_metadata(&map(metadata), Some(asked)).await;
        let response = response.map_err(|error| call.fail(&error))?;
        let answer = Answer::read(response.headers());
        Ok(Written {
            etag: answer.tag(&call)?,
            server_time: answer.server_time(&call)?,
        })
    }

    pub(super) async fn delete(
        &self,
        cx: &CallContext,
        blob: &BlobId,
        conditions: &Conditions,
        snapshots: DeleteSnapshots,
    ) -> PortResult<()> {
        let (call, client) = self.on_blob("Delete Blob", Repeat::Removal, cx, blob)?;
        let call = Arc::new(call);
        let asked = BlobClientDeleteOptions {
            if_match: if_match(conditions),
            if_tags: conditions.if_tags.clone(),
            if_none_match: if_none_match(conditions),
            lease_id: conditions.lease_id.clone(),
            delete_snapshots: match snapshots {
                DeleteSnapshots::Refuse => None,
                DeleteSnapshots::Include => Some(DeleteSnapshotsOptionType::Include),
            },
            method_options: options(&call),
            ..Default::default()
        };
        match client
            .delete(Some(asked))
            .await
            .map_err(|error| call.fail(&error))
        {
            // Our own earlier attempt removed it, but its response was lost.
            Err(error) if error.kind == ErrorKind::NotFound && call.maybe_done() => Ok(()),
            Err(error) => Err(error),
            Ok(_) => Ok(()),
        }
    }

    pub(super) async fn make_container(&self, cx: &CallContext, name: &str) -> PortResult<bool> {
        let (call, client) = self.on_container("Create Container", Repeat::Idempotent, cx, name)?;
        let asked = BlobContainerClientCreateOptions {
            method_options: options(&call),
            ..Default::default()
        };
        match client
            .create(Some(asked))
            .await
            .map_err(|error| call.fail(&error))
        {
            Err(error) if error.kind == ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error),
            Ok(_) => Ok(true),
        }
    }
}

/// Converts metadata for the SDK.
pub(super) fn map(metadata: &Metadata) -> HashMap<String, String> {
    metadata.clone().into_iter().collect()
}
