//! Append blobs: what the operations that make, extend and seal them have in common.
//!
//! Sources: "Append Block", "Append Blob Seal"; recordings for the order of refusals: lease,
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

/// The first version that knows append blobs. "Version 2015-02-21".
const FIRST_VERSION: ApiVersion = ApiVersion::V2015_02_21;

/// Refuses versions that do not know append blobs.
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

/// Where a request wants the blob to end: `x-ms-blob-condition-appendpos` and `-maxsize`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// The length that the blob must have, in bytes.
    at: Option<u64>,
    /// The length that the blob may have afterwards, in bytes.
    most: Option<u64>,
}

impl Position {
    /// Reads both headers.
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

    /// Judges what is to be added, in bytes, to a blob of this length.
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

/// What every request that appends says.
pub struct Append {
    name: BlobName,
    guard: Guard,
    encryption: Requested,
    position: Position,
}

/// The blob with the new block.
pub struct Appended {
    blob: BlobRecord,
    offset: u64,
    hashes: Hashes,
}

impl Append {
    /// Reads a request.
    ///
    /// # Errors
    /// 400 for headers that are not what they should be, 409 `FeatureVersionMismatch`.
    pub fn of(call: &Call) -> Result<Self, StorageError> {
        require_version(call)?;
        Ok(Append {
            name: BlobName::of_write(call)?,
            guard: Guard::of_write(call)?,
            encryption: headers::encryption(call)?,
            position: Position::of(call)?,
        })
    }

    /// Judges a block of this length in bytes.
    ///
    /// # Errors
    /// 404 `ContainerNotFound`, `BlobNotFound`; 412 of lease, conditions and position; 409
    /// `InvalidBlobType`, `PendingCopyOperation`, `BlobIsSealed`, `BlockCountExceedsLimit`; 403 and
    /// 409 of the encryption.
    pub fn check(&self, view: &dyn View, stamp: &Stamp, added: u64) -> Result<Found, StorageError> {
        let found = self.name.find(view, stamp.now)?;
        let blob = &found.blob;
        self.guard.check_write(blob)?;
        check_append_blob(blob)?;
        guard::check_rewritable(blob)?;
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

    /// Adds the block.
    ///
    /// # Errors
    /// The store's own.
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
    /// The answer of both operations that append.
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

/// Refuses blobs of another type.
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
