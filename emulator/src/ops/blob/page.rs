//! Operations on the pages of page blobs, and their shared code: the range of a request, the checks
//! of a write, and the response.
//!
//! - [`create`]: creates a page blob of zeros.
//! - [`mod@write`], [`clear`], [`from_url`]: change pages.
//! - [`ranges`], [`diff`]: list the pages that were written.
//! - [`incremental`]: copies what changed between snapshots.

pub mod clear;
pub mod create;
pub mod diff;
pub mod from_url;
pub mod incremental;
pub mod list;
pub mod ranges;
pub mod write;

use std::ops::Range;

use smalt_protocol::limits::{PAGE_BLOB_BYTES_MAX, PAGE_BYTES};
use smalt_protocol::{ApiVersion, ByteRange, ErrorCode, StorageError, Timestamp};

use super::guard::{self, Guard};
use super::written::{Hashes, Written};
use super::{content, headers, properties, replace};
use crate::call::Call;
use crate::config::DefaultTier;
use crate::ops::lookup::{BlobName, Found};
use crate::records::{BlobContent, BlobKind, BlobRecord};
use crate::reply::Reply;
use crate::rules::encryption::{Encryption, Requested};
use crate::rules::sequence_number::{self, Conditions};
use crate::store::{self, Staged, Stamp, Transaction, View};

/// Header of the length of a page blob.
pub const LENGTH: &str = "x-ms-blob-content-length";
/// Header that selects `update` or `clear`.
const WRITE: &str = "x-ms-page-write";
/// Only recorded responses of this version have the MD5 of the written bytes.
const ANSWERS_MD5: ApiVersion = ApiVersion::V2019_12_12;

/// Parses the length of a page blob in a request.
///
/// # Errors
/// 400 `MissingRequiredHeader`; 400 `InvalidHeaderValue` for a length that is not a multiple of 512
/// or exceeds 8 TiB.
pub fn length(call: &Call) -> Result<u64, StorageError> {
    let text = call.required_header(LENGTH)?;
    let length = text.trim().parse().ok();
    length
        .filter(|length: &u64| length.is_multiple_of(PAGE_BYTES) && *length <= PAGE_BLOB_BYTES_MAX)
        .ok_or_else(|| StorageError::invalid_header(LENGTH, text))
}

/// Rejects a request with a body.
///
/// # Errors
/// 400 `InvalidHeaderValue`.
fn refuse_body(call: &Call) -> Result<(), StorageError> {
    match call.body_length {
        Some(length) if length > 0 => Err(StorageError::invalid_header(
            "Content-Length",
            &length.to_string(),
        )),
        _ => Ok(()),
    }
}

/// Rejects blobs of other kinds, which have no pages.
///
/// # Errors
/// 409 `InvalidBlobType`.
pub fn check_kind(blob: &BlobRecord) -> Result<(), StorageError> {
    if blob.kind == BlobKind::Page {
        Ok(())
    } else {
        Err(ErrorCode::InvalidBlobType.into())
    }
}

/// The pages to write and the conditions of the request.
pub struct Target {
    name: BlobName,
    guard: Guard,
    sequence: Conditions,
    encryption: Requested,
    /// The byte range, aligned to whole pages.
    pub range: Range<u64>,
}

impl Target {
    /// Parses a request to `update` or `clear` pages.
    ///
    /// # Errors
    /// 400 `MissingRequiredHeader` and `InvalidHeaderValue`; 400 `InvalidInput` for invalid
    /// conditions on the sequence number.
    pub fn of(call: &Call, action: &str) -> Result<Self, StorageError> {
        let given = call.required_header(WRITE)?;
        if !given.eq_ignore_ascii_case(action) {
            return Err(StorageError::invalid_header(WRITE, given));
        }
        Ok(Target {
            range: pages(call)?,
            name: BlobName::of_write(call)?,
            guard: Guard::of_write(call)?,
            sequence: Conditions::parse([
                call.header("x-ms-if-sequence-number-le")?,
                call.header("x-ms-if-sequence-number-lt")?,
                call.header("x-ms-if-sequence-number-eq")?,
            ])?,
            encryption: headers::encryption(call)?,
        })
    }

    /// Returns the number of bytes to write.
    pub fn length(&self) -> u64 {
        self.range.end - self.range.start
    }

    /// Returns the blob, if it may be written to.
    ///
    /// # Errors
    /// 404; 412 for an unmet lease, condition or sequence number; 409 `InvalidBlobType`,
    /// `PendingCopyOperation`, and for a different encryption; 416 `InvalidPageRange` beyond its
    /// end.
    pub fn check(&self, view: &dyn View, now: Timestamp) -> Result<Found, StorageError> {
        let found = self.name.find(view, now)?;
        let blob = &found.blob;
        self.guard.check_write(blob)?;
        check_kind(blob)?;
        self.sequence.check(blob.sequence_number)?;
        guard::check_rewritable(blob)?;
        guard::check_encryption(&self.encryption, &found)?;
        if self.range.end > blob.length {
            return Err(ErrorCode::InvalidPageRange.into());
        }
        Ok(found)
    }

    /// Writes bytes to the pages.
    ///
    /// # Errors
    /// When the store fails.
    fn write(
        &self,
        found: Found,
        staged: Staged,
        hashes: Hashes,
        tx: &mut Transaction<'_>,
        stamp: &Stamp,
    ) -> Result<Written, StorageError> {
        let payload = store::adopt(tx, staged)?;
        let content = content::pages::write(tx, found.blob.content, self.range.clone(), payload)?;
        let blob = self.keep(tx, found, content, stamp)?;
        Ok(Written { blob, hashes })
    }

    /// Stores the blob with new content.
    ///
    /// # Errors
    /// When the store fails.
    pub fn keep(
        &self,
        tx: &mut Transaction<'_>,
        found: Found,
        content: BlobContent,
        stamp: &Stamp,
    ) -> Result<BlobRecord, StorageError> {
        let blob = BlobRecord {
            content,
            ..found.blob
        };
        replace::touch(tx, &self.name, found.container.generation, blob, stamp)
    }
}

/// Parses the range of a request: whole pages.
fn pages(call: &Call) -> Result<Range<u64>, StorageError> {
    let given = [call.header("x-ms-range")?, call.header("range")?];
    let range = ByteRange::of_write(given[0], given[1])?;
    let refused = || {
        let shown = given[0].or(given[1]).unwrap_or_default();
        StorageError::invalid_header("Range", shown)
    };
    let end = range.last.and_then(|last| last.checked_add(1));
    let pages = range.first..end.ok_or_else(refused)?;
    let is_whole = [pages.start, pages.end]
        .iter()
        .all(|at| at.is_multiple_of(PAGE_BYTES));
    if is_whole { Ok(pages) } else { Err(refused()) }
}

/// Returns the response to a write: ETag, last-modified time and sequence number.
fn reply(status: u16, blob: &BlobRecord) -> Reply {
    Reply::new(status)
        .version(blob.etag, blob.last_modified)
        .header(sequence_number::NAME, blob.sequence_number.to_string())
}

/// Returns the response to a write of bytes: like [`reply`], with their hash and encryption.
fn answer(written: &Written, call: &Call) -> Reply {
    let encryption = written.blob.encryption.as_ref();
    // Recorded: with a scope, and in premium accounts, every version has the MD5.
    let is_scoped = matches!(encryption, Some(Encryption::Scope(_)));
    let is_premium = call.settings.default_tier == DefaultTier::Premium;
    let by_md5 = is_scoped || is_premium || call.version == ANSWERS_MD5;
    let reply = reply(201, &written.blob);
    let reply = if by_md5 {
        reply.maybe(
            "content-md5",
            written.hashes.md5.map(|md5| headers::encode(&md5)),
        )
    } else {
        written.hashes.answer(reply, call.version)
    };
    properties::encrypted(reply, encryption, call.version)
}
