//! Queries about a blob beyond its properties: snapshots and index tags.

use azure_core::http::pager::PagerOptions;
use azure_storage_blob::models::{
    BlobClientGetTagsOptions, BlobContainerClientListBlobsOptions, ListBlobsIncludeItem,
};
use futures_util::StreamExt;

use super::begin::{BlobClient, ContainerClient};
use crate::policy::{Repeat, context, options};
use crate::port::{Metadata, PortResult};

impl ContainerClient {
    /// Lists one entry: snapshots precede their blob under the same name, so the first entry is
    /// decisive (List Blobs).
    pub(super) async fn has_snapshots(&self, blob: &str) -> PortResult<bool> {
        let (call, client) = self.begin("List Blobs", Repeat::Read)?;
        let asked = BlobContainerClientListBlobsOptions {
            include: Some(vec![ListBlobsIncludeItem::Snapshots]),
            maxresults: Some(1),
            prefix: Some(blob.to_owned()),
            method_options: PagerOptions {
                context: context(&call),
                ..Default::default()
            },
            ..Default::default()
        };
        let pages = call.check(client.list_blobs(Some(asked)))?;
        let page = pages.into_pages().next().await;
        let page = call.check(page.ok_or_else(|| call.unreadable("no page"))?)?;
        let page = call.check(page.into_model())?;
        let first = page.blob_items.first();
        Ok(first.is_some_and(|item| item.name.as_deref() == Some(blob) && item.snapshot.is_some()))
    }
}

impl BlobClient {
    pub(super) async fn tags(&self) -> PortResult<Metadata> {
        let (call, client) = self.begin("Get Blob Tags", Repeat::Read)?;
        let asked = BlobClientGetTagsOptions {
            method_options: options(&call),
            ..Default::default()
        };
        let response = call.check(client.get_tags(Some(asked)).await)?;
        let tags = call.check(response.into_model())?;
        let tags = tags.blob_tag_set.unwrap_or_default().into_iter();
        Ok(tags
            .filter_map(|tag| Some((tag.key?, tag.value.unwrap_or_default())))
            .collect())
    }
}
