//! Reads the headers of a response in one pass.
//!
//! The SDK's typed accessors look each header up and build an error (with a backtrace, if enabled)
//! for each missing one, which costs more than the request. This module iterates over the headers
//! once.

use azure_core::http::headers::Headers;
use smalt_protocol::Timestamp;

use crate::error::PortError;
use crate::policy::Call;
use crate::port::{
    BlobKind, BlobProperties, CopyState, CopyStatus, LeaseState, Metadata, Tag, Written,
};
use crate::redact::redact;

#[derive(Debug, Default)]
pub(super) struct Answer<'a> {
    pub(super) etag: Option<&'a str>,
    pub(super) date: Option<&'a str>,
    pub(super) last_modified: Option<&'a str>,
    pub(super) content_length: Option<&'a str>,
    pub(super) content_range: Option<&'a str>,
    pub(super) content_md5: Option<&'a str>,
    pub(super) blob_content_md5: Option<&'a str>,
    pub(super) content_type: Option<&'a str>,
    pub(super) lease_id: Option<&'a str>,
    pub(super) lease_status: Option<&'a str>,
    pub(super) blob_type: Option<&'a str>,
    pub(super) access_tier: Option<&'a str>,
    pub(super) tag_count: Option<&'a str>,
    pub(super) copy_id: Option<&'a str>,
    pub(super) copy_status: Option<&'a str>,
    pub(super) copy_source: Option<&'a str>,
    pub(super) copy_description: Option<&'a str>,
    pub(super) pop_receipt: Option<&'a str>,
    pub(super) next_visible: Option<&'a str>,
    pub(super) approximate_count: Option<&'a str>,
    pub(super) public_access: Option<&'a str>,
    pub(super) metadata: Metadata,
}

impl<'a> Answer<'a> {
    pub(super) fn read(headers: &'a Headers) -> Self {
        let mut answer = Answer::default();
        for (name, value) in headers.iter() {
            answer.take(name.as_str(), value.as_str());
        }
        answer
    }

    fn take(&mut self, name: &str, value: &'a str) {
        let field = match name {
            "etag" => &mut self.etag,
            "date" => &mut self.date,
            "last-modified" => &mut self.last_modified,
            "content-length" => &mut self.content_length,
            "content-range" => &mut self.content_range,
            "content-md5" => &mut self.content_md5,
            "content-type" => &mut self.content_type,
            "x-ms-blob-content-md5" => &mut self.blob_content_md5,
            "x-ms-lease-id" => &mut self.lease_id,
            "x-ms-lease-status" => &mut self.lease_status,
            "x-ms-blob-type" => &mut self.blob_type,
            "x-ms-access-tier" => &mut self.access_tier,
            "x-ms-tag-count" => &mut self.tag_count,
            "x-ms-copy-id" => &mut self.copy_id,
            "x-ms-copy-status" => &mut self.copy_status,
            "x-ms-copy-source" => &mut self.copy_source,
            "x-ms-copy-status-description" => &mut self.copy_description,
            "x-ms-popreceipt" => &mut self.pop_receipt,
            "x-ms-time-next-visible" => &mut self.next_visible,
            "x-ms-blob-public-access" => &mut self.public_access,
            "x-ms-approximate-messages-count" => &mut self.approximate_count,
            _ => {
                if let Some(name) = name.strip_prefix("x-ms-meta-") {
                    self.metadata.insert(name.to_owned(), value.to_owned());
                }
                return;
            }
        };
        *field = Some(value);
    }

    /// Returns the service's `Date`. A response without one is an error, because decisions depend
    /// on it.
    pub(super) fn server_time(&self, call: &Call) -> Result<Timestamp, PortError> {
        time(call, "Date", self.date)
    }

    /// Returns the ETag; null and empty values are errors (G13).
    pub(super) fn tag(&self, call: &Call) -> Result<Tag, PortError> {
        let etag = self.etag.filter(|etag| !etag.trim().is_empty());
        etag.map(Tag::from_text)
            .ok_or_else(|| call.unreadable("no ETag"))
    }

    /// Returns the result of a write.
    pub(super) fn written(&self, call: &Call) -> Result<Written, PortError> {
        Ok(Written {
            etag: self.tag(call)?,
            server_time: self.server_time(call)?,
        })
    }

    /// Returns the properties of a whole blob (HEAD or GET).
    pub(super) fn properties(self, call: &Call) -> Result<BlobProperties, PortError> {
        Ok(BlobProperties {
            etag: self.tag(call)?,
            last_modified: time(call, "Last-Modified", self.last_modified)?,
            length: self.length(call)?,
            // In the response to a range, Content-MD5 is the hash of that range.
            content_md5: match self.content_range {
                Some(_) => self.blob_content_md5.map(str::to_owned),
                None => self
                    .content_md5
                    .or(self.blob_content_md5)
                    .map(str::to_owned),
            },
            content_type: self.content_type.map(str::to_owned),
            lease: lease(self.lease_status),
            kind: kind(self.blob_type).ok_or_else(|| call.unreadable("unknown blob type"))?,
            copy: self.copy(call)?,
            access_tier: self.access_tier.map(str::to_owned),
            tag_count: self
                .tag_count
                .and_then(|text| text.parse().ok())
                .unwrap_or(0),
            tags: None,
            metadata: self.metadata,
        })
    }

    fn length(&self, call: &Call) -> Result<u64, PortError> {
        let text = match self.content_range {
            Some(range) => range.rsplit('/').next(),
            None => self.content_length,
        };
        text.and_then(|text| text.trim().parse().ok())
            .ok_or_else(|| call.unreadable("no length"))
    }

    fn copy(&self, call: &Call) -> Result<Option<CopyState>, PortError> {
        let (Some(id), Some(status)) = (self.copy_id, self.copy_status) else {
            return Ok(None);
        };
        Ok(Some(CopyState {
            id: id.to_owned(),
            status: copy_status(call, status)?,
            source: self.copy_source.map(redact),
            description: self.copy_description.map(str::to_owned),
        }))
    }
}

/// Parses a time, or returns an error for an unreadable response.
pub(super) fn time(call: &Call, what: &str, text: Option<&str>) -> Result<Timestamp, PortError> {
    text.and_then(Timestamp::parse_rfc1123)
        .ok_or_else(|| call.unreadable(&format!("no {what}")))
}

/// Parses a copy status, or returns an error for an unreadable response.
pub(super) fn copy_status(call: &Call, text: &str) -> Result<CopyStatus, PortError> {
    match text {
        "pending" => Ok(CopyStatus::Pending),
        "success" => Ok(CopyStatus::Success),
        "aborted" => Ok(CopyStatus::Aborted),
        "failed" => Ok(CopyStatus::Failed),
        _ => Err(call.unreadable("unknown copy status")),
    }
}

/// Parses a lease status; a missing one means unlocked.
pub(super) fn lease(status: Option<&str>) -> LeaseState {
    match status {
        Some("locked") => LeaseState::Locked,
        _ => LeaseState::Unlocked,
    }
}

/// Parses a blob type; `None` if it is unknown.
pub(super) fn kind(text: Option<&str>) -> Option<BlobKind> {
    match text? {
        "BlockBlob" => Some(BlobKind::Block),
        "PageBlob" => Some(BlobKind::Page),
        "AppendBlob" => Some(BlobKind::Append),
        _ => None,
    }
}
