//! Operations on the pages of page blobs, and what they share: the range that a request names, who
//! may write to it, and the answer.
//!
//! - [`create`]: a page blob of zeros.
//! - [`mod@write`], [`clear`], [`from_url`]: change pages.
//! - [`ranges`], [`diff`]: tell which pages were written.
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

/// The header that names the length of a page blob.
pub const LENGTH: &str = "x-ms-blob-content-length";
/// The header that says what a write to pages does.
const WRITE: &str = "x-ms-page-write";
/// Recorded answers of this version alone give the MD5 of what was written.
const ANSWERS_MD5: ApiVersion = ApiVersion::V2019_12_12;

/// The length that a request gives a page blob.
///
/// # Errors
/// 400 `MissingRequiredHeader`; 400 `InvalidHeaderValue` for a length that is not of whole pages,
/// or beyond 8 TiB.
pub fn length(call: &Call) -> Result<u64, StorageError> {
    let text = call.required_header(LENGTH)?;
    let length = text.trim().parse().ok();
    length
        .filter(|length: &u64| length.is_multiple_of(PAGE_BYTES) && *length <= PAGE_BLOB_BYTES_MAX)
        .ok_or_else(|| StorageError::invalid_header(LENGTH, text))
}

/// Refuses a body where there can be none.
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

/// A kind other than a page blob has no pages.
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

/// The pages that a request writes to, and on what terms.
pub struct Target {
    name: BlobName,
    guard: Guard,
    sequence: Conditions,
    encryption: Requested,
    /// Whole pages.
    pub range: Range<u64>,
}

impl Target {
    /// Reads a request to `update` or `clear` pages.
    ///
    /// # Errors
    /// 400 `MissingRequiredHeader` and `InvalidHeaderValue`; 400 `InvalidInput` for conditions on
    /// the sequence number that are none.
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

    /// How many bytes are written.
    pub fn length(&self) -> u64 {
        self.range.end - self.range.start
    }

    /// The blob, if it may be written to.
    ///
    /// # Errors
    /// 404; 412 of lease, conditions and sequence number; 409 `InvalidBlobType`,
    /// `PendingCopyOperation`, and of the encryption; 416 `InvalidPageRange` beyond its end.
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
    /// The store's own.
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
    /// The store's own.
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

/// The range of a request: whole pages.
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

/// The answer to a write: tag, time and sequence number.
fn reply(status: u16, blob: &BlobRecord) -> Reply {
    Reply::new(status)
        .version(blob.etag, blob.last_modified)
        .header(sequence_number::NAME, blob.sequence_number.to_string())
}

/// The answer to a write of bytes: besides what every write to pages says, what the bytes hash to
/// and what they are encrypted with.
fn answer(written: &Written, call: &Call) -> Reply {
    let encryption = written.blob.encryption.as_ref();
    // Recorded: under a scope, and in premium accounts, the MD5 is answered in any version.
    let is_scoped = matches!(encryption, Some(Encryption::Scope(_)));
    let is_premium = call.settings.default_tier == DefaultTier::Premium;
    let by_md5 = is_scoped || is_premium || call.version == ANSWERS_MD5;
    let reply = reply(201, &written.blob);
    let reply = if by_md5 {
        reply.header("content-md5", headers::encode(&written.hashes.md5))
    } else {
        written.hashes.answer(reply, call.version)
    };
    properties::encrypted(reply, encryption, call.version)
}
