//! Listings: one page of blobs with metadata and copy state.

use azure_core::http::pager::PagerOptions;
use azure_storage_blob::models::{BlobContainerClientListBlobsOptions, ListBlobsIncludeItem};
use futures_util::StreamExt;
use smalt_protocol::limits;

use super::answer::Answer;
use super::begin::ContainerClient;
use super::page;
use crate::policy::{Repeat, context};
use crate::port::{BlobPage, ListBlobs, PortResult};

impl ContainerClient {
    pub(crate) async fn list(&self, list: &ListBlobs) -> PortResult<BlobPage> {
        let (call, client) = self.begin_as("List Blobs", Repeat::Read, |mut call| {
            call.keeps_body = true;
            call
        })?;
        if list.page_size > limits::LIST_RESULTS_MAX {
            return Err(call.invalid("a page has at most 5000 blobs"));
        }
        let mut include = vec![ListBlobsIncludeItem::Copy, ListBlobsIncludeItem::Metadata];
        include.extend(list.tags.then_some(ListBlobsIncludeItem::Tags));
        let asked = BlobContainerClientListBlobsOptions {
            include: Some(include),
            marker: list.marker.clone(),
            maxresults: i32::try_from(list.page_size).ok().filter(|size| *size > 0),
            prefix: Some(list.prefix.clone()).filter(|prefix| !prefix.is_empty()),
            method_options: PagerOptions {
                context: context(&call),
                ..Default::default()
            },
            ..Default::default()
        };
        let pages = call.check(client.list_blobs(Some(asked)))?;
        let page = pages.into_pages().next().await;
        let page = call.check(page.ok_or_else(|| call.unreadable("no page"))?)?;
        let server_time = Answer::read(page.headers()).server_time(&call)?;
        let body = call.body().ok_or_else(|| call.unreadable("no body"))?;
        let (blobs, next_marker) = page::read(&call, body)?;
        Ok(BlobPage {
            blobs,
            next_marker,
            server_time,
        })
    }
}
