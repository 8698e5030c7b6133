//! Properties of an Azurite blob, and their conversion to a record.

use serde::Deserialize;
use serde_json::Value;

use super::super::document::{Lease, base64, etag, maybe_time, time};
use crate::records::{Access, BlobKind, BlobRecord, ContentHeaders, CopyRecord, CopyStatus};
use crate::rules::lease::LeaseState;

pub(super) const PAGE: u64 = 512;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Properties {
    creation_time: Option<String>,
    last_modified: String,
    etag: String,
    #[serde(default)]
    content_length: u64,
    blob_type: String,
    content_type: Option<String>,
    content_encoding: Option<String>,
    content_language: Option<String>,
    #[serde(rename = "contentMD5")]
    content_md5: Option<Value>,
    content_disposition: Option<String>,
    cache_control: Option<String>,
    blob_sequence_number: Option<u64>,
    lease_state: Option<String>,
    lease_duration: Option<String>,
    access_tier: Option<String>,
    access_tier_inferred: Option<bool>,
    access_tier_change_time: Option<String>,
    is_sealed: Option<bool>,
    copy_id: Option<String>,
    copy_source: Option<String>,
    copy_status: Option<String>,
    copy_progress: Option<String>,
    copy_completion_time: Option<String>,
    copy_status_description: Option<String>,
}

impl Properties {
    pub(super) fn length(&self) -> u64 {
        self.content_length
    }

    pub(super) fn lease(&self, lease: &Lease) -> Result<LeaseState, String> {
        lease.state(self.lease_state.as_deref(), self.lease_duration.as_deref())
    }

    /// Creates the record of the blob, without content.
    pub(super) fn record(&self) -> Result<BlobRecord, String> {
        let kind = match self.blob_type.as_str() {
            "BlockBlob" => BlobKind::Block,
            "PageBlob" => BlobKind::Page,
            "AppendBlob" => BlobKind::Append,
            other => return Err(format!("unknown blob type {other:?}")),
        };
        if kind == BlobKind::Page && !self.content_length.is_multiple_of(PAGE) {
            return Err(format!(
                "the length of a page blob is not a multiple of 512: {}",
                self.content_length
            ));
        }
        let last_modified = time(&self.last_modified)?;
        let created = maybe_time(self.creation_time.as_ref())?.unwrap_or(last_modified);
        let md5 = self.content_md5.as_ref().filter(|md5| !md5.is_null());
        let unreadable = || "invalid content MD5".to_owned();
        Ok(BlobRecord {
            last_modified,
            length: self.content_length,
            headers: ContentHeaders {
                content_type: self.content_type.clone(),
                content_encoding: self.content_encoding.clone(),
                content_language: self.content_language.clone(),
                content_md5: md5
                    .map(|md5| base64(md5).ok_or_else(unreadable))
                    .transpose()?,
                cache_control: self.cache_control.clone(),
                content_disposition: self.content_disposition.clone(),
            },
            sequence_number: self.blob_sequence_number.unwrap_or_default(),
            sealed: self.is_sealed.unwrap_or_default(),
            access: self.access()?,
            copy: self.copy()?,
            ..BlobRecord::new(kind, etag(&self.etag)?, created)
        })
    }

    fn access(&self) -> Result<Access, String> {
        let given = self.access_tier.clone();
        let given = given.filter(|_| self.access_tier_inferred != Some(true));
        let changed = match given {
            Some(_) => maybe_time(self.access_tier_change_time.as_ref())?,
            None => None,
        };
        Ok(Access {
            tier: given,
            changed,
            rehydration: None,
        })
    }

    fn copy(&self) -> Result<Option<CopyRecord>, String> {
        let Some(id) = self.copy_id.clone() else {
            return Ok(None);
        };
        let progress = self.copy_progress.as_deref().and_then(|text| {
            let (done, all) = text.split_once('/')?;
            Some((done.parse().ok()?, all.parse().ok()?))
        });
        Ok(Some(CopyRecord {
            id,
            source: self.copy_source.clone().unwrap_or_default(),
            status: match self.copy_status.as_deref() {
                Some("success") | None => CopyStatus::Success,
                // Azurite copies at once, so a pending copy in its files will never complete.
                Some("aborted" | "pending") => CopyStatus::Aborted,
                Some("failed") => CopyStatus::Failed,
                Some(other) => return Err(format!("unknown copy status {other:?}")),
            },
            progress: progress.unwrap_or((self.content_length, self.content_length)),
            completed: maybe_time(self.copy_completion_time.as_ref())?,
            description: self.copy_status_description.clone(),
            pending: None,
        }))
    }
}
