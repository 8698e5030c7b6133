//! Append blobs: shared code of the operations that create, extend and seal them.
//!
//! Sources: "Append Block", "Append Blob Seal"; recordings for the order of checks: lease,
//! conditions, type, seal, position, size, number of blocks.

pub mod block;
pub mod block_from_url;
pub mod create;
pub mod seal;

use smalt_protocol::limits::BLOCKS_COMMITTED_MAX;
use smalt_protocol::{ApiVersion, ErrorCode, StorageError};

use super::guard::{self, Guard};
use super::headers;
use super::written::Hashes;
use super::{content, properties, replace};
use crate::call::Call;
use crate::ops::lookup::{BlobName, Found};
use crate::records::{BlobKind, BlobRecord, CommittedBlock};
use crate::reply::Reply;
use crate::rules::encryption::Requested;
use crate::store::{self, Staged, Stamp, Transaction, View};

/// First version with append blobs. "Version 2015-02-21".
const FIRST_VERSION: ApiVersion = ApiVersion::V2015_02_21;

/// Rejects versions before append blobs.
///
/// # Errors
/// 409 `FeatureVersionMismatch`.
fn require_version(call: &Call) -> Result<(), StorageError> {
    if call.version >= FIRST_VERSION {
        return Ok(());
    }
    Err(
        StorageError::new(ErrorCode::FeatureVersionMismatch).with_message(format!(
            "The operation for AppendBlob requires at least version {FIRST_VERSION}."
        )),
    )
}

/// Conditions on the length of the blob: `x-ms-blob-condition-appendpos` and `-maxsize`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// The length in bytes that the blob must have before the append.
    at: Option<u64>,
    /// The largest length in bytes that the blob may have after it.
    most: Option<u64>,
}

impl Position {
    /// Parses both headers.
    ///
    /// # Errors
    /// 400 `InvalidHeaderValue` for a value that is not a number.
    pub fn of(call: &Call) -> Result<Self, StorageError> {
        let number = |name| match call.header(name)?.filter(|text| !text.is_empty()) {
            None => Ok(None),
            Some(text) => match text.trim().parse() {
                Ok(number) => Ok(Some(number)),
                Err(_) => Err(StorageError::invalid_header(name, text)),
            },
        };
        Ok(Position {
            at: number("x-ms-blob-condition-appendpos")?,
            most: number("x-ms-blob-condition-maxsize")?,
        })
    }

    /// Checks whether `added` bytes may follow a blob of `length` bytes.
    ///
    /// # Errors
    /// 412 `AppendPositionConditionNotMet`, 412 `MaxBlobSizeConditionNotMet`.
    pub fn check(self, length: u64, added: u64) -> Result<(), StorageError> {
        if self.at.is_some_and(|at| at != length) {
            return Err(ErrorCode::AppendPositionConditionNotMet.into());
        }
        if self
            .most
            .is_some_and(|most| length.saturating_add(added) > most)
        {
            return Err(ErrorCode::MaxBlobSizeConditionNotMet.into());
        }
        Ok(())
    }
}

/// Headers that all appending requests share.
pub struct Append {
    name: BlobName,
    guard: Guard,
    encryption: Requested,
    position: Position,
}

/// The blob after the append.
pub struct Appended {
    blob: BlobRecord,
    offset: u64,
    hashes: Hashes,
}

impl Append {
    /// Parses a request.
    ///
    /// # Errors
    /// 400 for malformed headers, 409 `FeatureVersionMismatch`.
    pub fn of(call: &Call) -> Result<Self, StorageError> {
        require_version(call)?;
        Ok(Append {
            name: BlobName::of_write(call)?,
            guard: Guard::of_write(call)?,
            encryption: headers::encryption(call)?,
            position: Position::of(call)?,
        })
    }

    /// Checks whether a block of `added` bytes may be appended.
    ///
    /// # Errors
    /// 404 `ContainerNotFound`, `BlobNotFound`; 412 for an unmet lease, condition or position; 409
    /// `InvalidBlobType`, `PendingCopyOperation`, `BlobIsSealed`, `BlockCountExceedsLimit`; 403 and
    /// 409 for a different encryption.
    pub fn check(&self, view: &dyn View, stamp: &Stamp, added: u64) -> Result<Found, StorageError> {
        let found = self.name.find(view, stamp.now)?;
        let blob = &found.blob;
        self.guard.check_write(blob)?;
        check_append_blob(blob)?;
        guard::check_appendable(&found)?;
        guard::check_encryption(&self.encryption, &found)?;
        if blob.sealed {
            return Err(ErrorCode::BlobIsSealed.into());
        }
        self.position.check(blob.length, added)?;
        if blob.content.blocks() as usize >= BLOCKS_COMMITTED_MAX {
            return Err(ErrorCode::BlockCountExceedsLimit.into());
        }
        Ok(found)
    }

    /// Appends the block.
    ///
    /// # Errors
    /// When the store fails.
    pub fn apply(
        self,
        found: Found,
        staged: Staged,
        hashes: Hashes,
        tx: &mut Transaction<'_>,
        stamp: &Stamp,
    ) -> Result<Appended, StorageError> {
        let Found {
            container,
            mut blob,
        } = found;
        let (offset, length) = (blob.length, staged.len());
        let block = CommittedBlock {
            id: Vec::new(),
            length,
            payload: if staged.is_empty() {
                None
            } else {
                Some(store::adopt(tx, staged)?)
            },
        };
        let fresh_id = stamp.tick.ticks();
        blob.content = content::append(tx, blob.content, offset, block, fresh_id)?;
        blob.length += length;
        let blob = replace::touch(tx, &self.name, container.generation, blob, stamp)?;
        Ok(Appended {
            blob,
            offset,
            hashes,
        })
    }
}

impl Appended {
    /// Returns the response of both append operations.
    pub fn reply(&self, version: ApiVersion) -> Reply {
        let blob = &self.blob;
        let reply = Reply::new(201)
            .version(blob.etag, blob.last_modified)
            .header("x-ms-blob-append-offset", self.offset.to_string())
            .header(
                "x-ms-blob-committed-block-count",
                blob.content.blocks().to_string(),
            );
        let reply = self.hashes.answer(reply, version);
        properties::encrypted(reply, blob.encryption.as_ref(), version)
    }
}

/// Rejects blobs of other types.
///
/// # Errors
/// 409 `InvalidBlobType`.
fn check_append_blob(blob: &BlobRecord) -> Result<(), StorageError> {
    match blob.kind {
        BlobKind::Append => Ok(()),
        BlobKind::Block | BlobKind::Page => Err(ErrorCode::InvalidBlobType.into()),
    }
}

#[cfg(test)]
mod tests;
