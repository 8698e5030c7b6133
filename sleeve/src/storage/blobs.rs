//! Blobs: read, put, set metadata, properties and tier, delete.

use azure_core::base64;
use azure_core::http::Body;
use azure_storage_blob::models::{
    BlobClientDeleteOptions, BlobClientDownloadOptions, BlobClientGetPropertiesOptions,
    BlobClientSetMetadataOptions, BlobClientSetPropertiesOptions, BlobClientSetTierOptions,
    BlockBlobClientUploadOptions, DeleteSnapshotsOptionType, HttpRange,
};
use bytes::Bytes;
use smalt_protocol::Timestamp;
use std::collections::HashMap;
use std::num::NonZero;
use std::sync::Arc;

use super::answer::Answer;
use super::begin::{BlobClient, if_match, if_none_match};
use crate::error::ErrorKind;
use crate::names;
use crate::policy::{Call, Repeat, options};
use crate::port::{
    BlobHeaders, BlobProperties, Conditions, DeleteSnapshots, Downloaded, Metadata, PortResult,
    PutBlob, Tag, Written,
};

/// Longer than any blob (190.7 TiB). The service rejects larger range ends as malformed.
const BLOB_BYTES_MAX: u64 = 1 << 50;

impl BlobClient {
    pub(crate) async fn head(&self, on: &Conditions) -> PortResult<(BlobProperties, Timestamp)> {
        let (call, client) = self.begin("Get Blob Properties", Repeat::Read)?;
        let asked = BlobClientGetPropertiesOptions {
            if_match: if_match(on),
            method_options: options(&call),
            ..Default::default()
        };
        let response = call.check(client.get_properties(Some(asked)).await)?;
        let answer = Answer::read(response.headers());
        let server_time = answer.server_time(&call)?;
        Ok((answer.properties(&call)?, server_time))
    }

    /// Makes one ranged request for one byte more than allowed: the response contains the blob's
    /// length, and a blob of any size costs no more than that.
    pub(crate) async fn get(&self, most_bytes: u64, on: &Conditions) -> PortResult<Downloaded> {
        let (call, client) = self.begin("Get Blob", Repeat::Read)?;
        let window = most_bytes.min(BLOB_BYTES_MAX).saturating_add(1);
        let asked = one_request(&call, on, (0, window));
        let downloaded = call.check(client.download(Some(asked)).await)?;
        let answer = Answer::read(&downloaded.headers);
        let server_time = answer.server_time(&call)?;
        let properties = answer.properties(&call)?;
        if properties.length > most_bytes {
            let length = properties.length;
            return Err(call.invalid(&format!("{length} bytes exceed {most_bytes}")));
        }
        let content = call.check(downloaded.body.collect().await)?;
        if content.len() as u64 != properties.length {
            return Err(call.unreadable("the content length differs from the announced one"));
        }
        Ok(Downloaded {
            properties,
            content,
            server_time,
        })
    }

    pub(crate) async fn range(&self, version: &Tag, from: u64, bytes: u64) -> PortResult<Bytes> {
        let (call, client) = self.begin("Get Blob", Repeat::Read)?;
        let asked = one_request(&call, &Conditions::matching(version), (from, bytes));
        let body = call.check(client.download(Some(asked)).await)?.body;
        let content = call.check(body.collect().await)?;
        if content.len() as u64 != bytes {
            return Err(call.unreadable("the content length differs from the requested one"));
        }
        Ok(content)
    }

    pub(crate) async fn put(&self, content: Bytes, put: &PutBlob) -> PortResult<Written> {
        let (call, client) = self.begin("Put Blob", Repeat::Conditional)?;
        names::check_metadata(&put.metadata).map_err(|why| call.invalid(&why))?;
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
        let written = call.check(
            client
                .block_blob_client()
                .upload(content, Some(asked))
                .await,
        )?;
        Answer::read(written.raw_response.headers()).written(&call)
    }

    pub(crate) async fn describe(
        &self,
        metadata: &Metadata,
        conditions: &Conditions,
    ) -> PortResult<Written> {
        let (call, client) = self.begin("Set Blob Metadata", Repeat::Conditional)?;
        names::check_metadata(metadata).map_err(|why| call.invalid(&why))?;
        let asked = BlobClientSetMetadataOptions {
            if_match: if_match(conditions),
            if_tags: conditions.if_tags.clone(),
            if_none_match: if_none_match(conditions),
            lease_id: conditions.lease_id.clone(),
            method_options: options(&call),
            ..Default::default()
        };
        let response = call.check(client.set_metadata(&map(metadata), Some(asked)).await)?;
        Answer::read(response.headers()).written(&call)
    }

    pub(crate) async fn delete(
        &self,
        conditions: &Conditions,
        snapshots: DeleteSnapshots,
    ) -> PortResult<()> {
        let (call, client) = self.begin("Delete Blob", Repeat::Removal)?;
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
        call.removed(client.delete(Some(asked)).await, |error| {
            error.kind == ErrorKind::NotFound
        })
    }

    /// Set Blob Properties: replaces all of them.
    pub(crate) async fn set_headers(
        &self,
        headers: &BlobHeaders,
        conditions: &Conditions,
    ) -> PortResult<Written> {
        let (call, client) = self.begin("Set Blob Properties", Repeat::Conditional)?;
        let md5 = headers.content_md5.as_deref().map(base64::decode);
        let md5 = md5
            .transpose()
            .map_err(|why| call.invalid(&format!("Content-MD5: {why}")))?;
        let asked = BlobClientSetPropertiesOptions {
            blob_cache_control: headers.cache_control.clone(),
            blob_content_disposition: headers.content_disposition.clone(),
            blob_content_encoding: headers.content_encoding.clone(),
            blob_content_language: headers.content_language.clone(),
            blob_content_md5: md5,
            blob_content_type: headers.content_type.clone(),
            if_match: if_match(conditions),
            if_tags: conditions.if_tags.clone(),
            if_none_match: if_none_match(conditions),
            lease_id: conditions.lease_id.clone(),
            method_options: options(&call),
            ..Default::default()
        };
        let response = call.check(client.set_properties(Some(asked)).await)?;
        Answer::read(response.headers()).written(&call)
    }

    pub(crate) async fn set_tier(&self, tier: &str) -> PortResult<()> {
        let (call, client) = self.begin("Set Blob Tier", Repeat::Idempotent)?;
        let tier = tier.parse().map_err(|_| call.invalid("unknown tier"))?;
        let asked = BlobClientSetTierOptions {
            method_options: options(&call),
            ..Default::default()
        };
        let response = client.set_tier(tier, Some(asked)).await;
        call.check(response.map(drop))
    }
}

pub(super) fn map(metadata: &Metadata) -> HashMap<String, String> {
    metadata.clone().into_iter().collect()
}

/// Returns the options for a single request for `length` bytes from `offset`.
fn one_request<'a>(
    call: &Arc<Call>,
    on: &Conditions,
    (offset, length): (u64, u64),
) -> BlobClientDownloadOptions<'a> {
    BlobClientDownloadOptions {
        if_match: if_match(on),
        range: Some(HttpRange::new(offset, length)),
        partition_size: usize::try_from(length).ok().and_then(NonZero::new),
        parallel: NonZero::new(1),
        method_options: options(call),
        ..Default::default()
    }
}
