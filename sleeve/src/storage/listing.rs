//! Listings: one page of blobs with metadata and copy state.

use azure_core::base64;
use azure_core::http::pager::PagerOptions;
use azure_core::time::OffsetDateTime;
use azure_storage_blob::models::{
    BlobContainerClientListBlobsOptions, BlobItem as SdkItem, BlobProperties as SdkProperties,
    BlobType, CopyStatus as SdkCopyStatus, LeaseStatus, ListBlobsIncludeItem,
};
use futures_util::StreamExt;
use smalt_protocol::{Timestamp, limits};

use super::AzureStorage;
use super::answer::{Answer, tag};
use crate::error::PortError;
use crate::policy::{Call, Repeat, context};
use crate::port::{
    BlobItem, BlobKind, BlobPage, BlobProperties, CallContext, CopyState, CopyStatus, LeaseState,
    ListBlobs, PortResult,
};
use crate::redact::redact;

impl AzureStorage {
    pub(super) async fn list(
        &self,
        cx: &CallContext,
        container: &str,
        list: &ListBlobs,
    ) -> PortResult<BlobPage> {
        let (call, client) = self.on_container("List Blobs", Repeat::Read, cx, container)?;
        if list.page_size > limits::LIST_RESULTS_MAX {
            return Err(call.invalid("a page has at most 5000 blobs"));
        }
        let asked = BlobContainerClientListBlobsOptions {
            include: Some(vec![
                ListBlobsIncludeItem::Copy,
                ListBlobsIncludeItem::Metadata,
            ]),
            marker: list.marker.clone(),
            maxresults: i32::try_from(list.page_size).ok().filter(|size| *size > 0),
            prefix: Some(list.prefix.clone()).filter(|prefix| !prefix.is_empty()),
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
        let server_time = Answer::read(page.headers()).server_time(&call)?;
        let page = page.into_model().map_err(|error| call.fail(&error))?;
        let blobs = page.blob_items.into_iter().map(|blob| item(&call, blob));
        Ok(BlobPage {
            blobs: blobs.collect::<PortResult<_>>()?,
            next_marker: page.next_marker.filter(|marker| !marker.is_empty()),
            server_time,
        })
    }
}

fn item(call: &Call, item: SdkItem) -> Result<BlobItem, PortError> {
    let missing = |what: &str| call.unreadable(&format!("a blob without {what}"));
    let metadata = item.metadata.and_then(|metadata| metadata.values);
    let properties = item.properties.ok_or_else(|| missing("properties"))?;
    let copy = copy(&properties);
    Ok(BlobItem {
        name: item.name.ok_or_else(|| missing("name"))?,
        properties: BlobProperties {
            etag: (properties.etag.as_ref())
                .map(|etag| tag(etag.as_ref()))
                .ok_or_else(|| missing("ETag"))?,
            last_modified: (properties.last_modified)
                .map(timestamp)
                .ok_or_else(|| missing("Last-Modified"))?,
            length: properties.content_length.ok_or_else(|| missing("length"))?,
            // Listings write an empty element for what a blob does not have.
            content_md5: (properties.content_md5)
                .filter(|md5| !md5.is_empty())
                .map(base64::encode),
            content_type: properties.content_type.filter(|text| !text.is_empty()),
            metadata: metadata.unwrap_or_default().into_iter().collect(),
            lease: match properties.lease_status {
                Some(LeaseStatus::Locked) => LeaseState::Locked,
                _ => LeaseState::Unlocked,
            },
            kind: match properties.blob_type {
                Some(BlobType::BlockBlob) => BlobKind::Block,
                Some(BlobType::PageBlob) => BlobKind::Page,
                Some(BlobType::AppendBlob) => BlobKind::Append,
                _ => return Err(missing("known type")),
            },
            copy,
            access_tier: properties.access_tier.map(|tier| tier.to_string()),
            tag_count: (properties.tag_count)
                .and_then(|count| u32::try_from(count).ok())
                .unwrap_or(0),
        },
    })
}

fn copy(properties: &SdkProperties) -> Option<CopyState> {
    let status = match properties.copy_status.as_ref()? {
        SdkCopyStatus::Pending => CopyStatus::Pending,
        SdkCopyStatus::Success => CopyStatus::Success,
        SdkCopyStatus::Aborted => CopyStatus::Aborted,
        SdkCopyStatus::Failed => CopyStatus::Failed,
    };
    Some(CopyState {
        id: properties.copy_id.clone()?,
        status,
        source: properties.copy_source.as_deref().map(redact),
        description: properties.copy_status_description.clone(),
    })
}

/// A time of the SDK; those before the year 1970 do not occur.
pub(super) fn timestamp(time: OffsetDateTime) -> Timestamp {
    u64::try_from(time.unix_timestamp()).map_or(Timestamp::MIN, Timestamp::from_unix_s)
}
