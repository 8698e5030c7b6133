//! Queries about a blob beyond its properties: snapshots and index tags.

use std::sync::Arc;

use azure_core::http::pager::PagerOptions;
use azure_storage_blob::models::{
    BlobClientGetTagsOptions, BlobContainerClientListBlobsOptions, ListBlobsIncludeItem,
};
use futures_util::StreamExt;

use super::AzureStorage;
use crate::policy::{Repeat, context, options};
use crate::port::{BlobId, CallContext, Metadata, PortResult};

impl AzureStorage {
    /// Lists one entry: snapshots precede their blob under the same name, so the first entry is
    /// decisive (List Blobs).
    pub(super) async fn snapshots(&self, cx: &CallContext, blob: &BlobId) -> PortResult<bool> {
        let container = &blob.container;
        let (call, client) = self.on_container("List Blobs", Repeat::Read, cx, container)?;
        let asked = BlobContainerClientListBlobsOptions {
            include: Some(vec![ListBlobsIncludeItem::Snapshots]),
            maxresults: Some(1),
            prefix: Some(blob.name.clone()),
            method_options: PagerOptions {
                context: context(&call),
                ..Default::default()
            },
            ..Default::default()
        };
        let pages = client
            .list_blobs(Some(asked))
            .map_err(|error| call.fail(&error))?;
        let page = pages.into_pages().next().await;
        let page = page.ok_or_else(|| call.unreadable("no page"))?;
        let page = page.map_err(|error| call.fail(&error))?;
        let page = page.into_model().map_err(|error| call.fail(&error))?;
        let first = page.blob_items.first();
        Ok(first.is_some_and(|item| {
            item.name.as_deref() == Some(&blob.name) && item.snapshot.is_some()
        }))
    }

    pub(super) async fn tags(&self, cx: &CallContext, blob: &BlobId) -> PortResult<Metadata> {
        let (call, client) = self.on_blob("Get Blob Tags", Repeat::Read, cx, blob)?;
        let call = Arc::new(call);
        let asked = BlobClientGetTagsOptions {
            method_options: options(&call),
            ..Default::default()
        };
        let response = client.get_tags(Some(asked)).await;
        let response = response.map_err(|error| call.fail(&error))?;
        let tags = response.into_model().map_err(|error| call.fail(&error))?;
        let tags = tags.blob_tag_set.unwrap_or_default().into_iter();
        Ok(tags
            .filter_map(|tag| Some((tag.key?, tag.value.unwrap_or_default())))
            .collect())
    }
}
