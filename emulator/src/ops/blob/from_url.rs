//! A whole blob from a URL: shared code of Copy Blob From URL and Put Blob From URL.
//!
//! The source is read and hashed before the commit, which shares its bytes if it has not changed.

use smalt_protocol::StorageError;

use super::copied::{self, Overrides};
use super::creation;
use super::guard::Guard;
use super::headers::{self, BodyHashes};
use super::replace::NewBlob;
use super::source::{Request, Source, SourceUrl, Wanted};
use super::written::{Hashes, Written};
use crate::call::Call;
use crate::ops::lookup::{BlobName, Place};
use crate::records::{BlobKind, BlobRecord, ContentHeaders, CopyRecord};
use crate::rules::conditions::Conditions;
use crate::rules::encryption::{Encryption, Requested};
use crate::store::{Stamp, Transaction, View};

/// The input of both operations.
pub struct FromUrl {
    name: BlobName,
    guard: Guard,
    encryption: Requested,
    may_overwrite: bool,
    overrides: Overrides,
    url: SourceUrl,
    source_conditions: Conditions,
    hashes: BodyHashes,
    bytes_max: u64,
    /// Whether errors of unmet conditions distinguish source and target.
    pub tells_sides: bool,
    /// Whether the committed block list is copied.
    pub keeps_blocks: bool,
    source: Option<Source>,
}

/// The current destination, and the current source once it was read.
pub struct Checked {
    place: Place,
    encryption: Option<Encryption>,
    source: Option<BlobRecord>,
}

impl FromUrl {
    /// Parses a request for a source of at most `bytes_max` bytes.
    ///
    /// # Errors
    /// 400 for malformed headers.
    pub fn of(call: &Call, bytes_max: u64) -> Result<Self, StorageError> {
        Ok(FromUrl {
            name: BlobName::of_write(call)?,
            guard: Guard::of_write(call)?,
            encryption: headers::encryption(call)?,
            may_overwrite: call.identity.may('w'),
            overrides: Overrides::of(call)?,
            url: SourceUrl::of(call)?,
            source_conditions: Conditions::of_source(&call.headers)?,
            hashes: BodyHashes::of_source(call)?,
            bytes_max,
            tells_sides: true,
            keeps_blocks: true,
            source: None,
        })
    }

    /// Does not copy the source's metadata.
    pub fn leave_metadata(&mut self) {
        self.overrides.takes_metadata = false;
    }

    /// Returns the request for the source.
    pub fn request(&self) -> Request {
        Request {
            url: self.url.clone(),
            wanted: Wanted::Whole {
                conditions: self.source_conditions.clone(),
                most: self.bytes_max,
            },
        }
    }

    /// Stores the opened source.
    ///
    /// # Errors
    /// 400 `Md5Mismatch`, `Crc64Mismatch`; 403 `CannotVerifyCopySource`.
    pub fn sourced(&mut self, source: Source) -> Result<(), StorageError> {
        self.overrides.check_tags(&source)?;
        if let Some(bytes) = &source.bytes {
            self.hashes.check_hashes(bytes.md5, bytes.crc64)?;
        }
        self.source = Some(source);
        Ok(())
    }

    /// Checks the destination first, then the source.
    ///
    /// # Errors
    /// 404 `ContainerNotFound`, 403 `UnauthorizedBlobOverwrite`, 412 for an unmet lease or
    /// condition, 409 `BlobAlreadyExists`; those of the source.
    pub fn check(&self, view: &dyn View, stamp: &Stamp) -> Result<Checked, StorageError> {
        let place = self.name.find_place(view, stamp.now)?;
        copied::check_overwrite(&place, self.may_overwrite, None)?;
        if self.tells_sides {
            self.guard.check_copy_target(&place)?;
        } else {
            self.guard.check_create(&place)?;
        }
        self.overrides.check_tier(BlobKind::Block)?;
        let policy = &place.container.encryption_scope;
        let encryption = self.encryption.of_new(policy)?;
        let source = match &self.source {
            Some(source) => Some(source.blob(view, stamp.now)?),
            None => None,
        };
        Ok(Checked {
            place,
            encryption,
            source,
        })
    }

    /// Writes the blob. `describe` returns its content headers and the record of the copy.
    ///
    /// # Errors
    /// When the store fails.
    pub fn write(
        self,
        checked: Checked,
        tx: &mut Transaction<'_>,
        stamp: &Stamp,
        describe: impl FnOnce(&BlobRecord, &Source) -> (ContentHeaders, Option<CopyRecord>),
    ) -> Result<Written, StorageError> {
        let missing = || StorageError::internal("a blob is copied without a source");
        let found = checked.source.ok_or_else(missing)?;
        let mut source = self.source.ok_or_else(missing)?;
        let bytes = source.bytes.take().ok_or_else(missing)?;
        let mut content = copied::content(tx, bytes.staged, &found)?;
        if !self.keeps_blocks {
            content = copied::without_ids(tx, content, stamp)?;
        }
        let (headers, copy) = describe(&found, &source);
        let new = NewBlob {
            kind: BlobKind::Block,
            length: found.length,
            content,
            headers,
            metadata: self.overrides.metadata(&found),
            tags: self.overrides.tags(&found),
            access: self.overrides.access(stamp.now),
            copy,
            encryption: checked.encryption,
            sequence_number: 0,
            marks: self.overrides.marks(&found),
        };
        let blob = creation::make(tx, &self.name, &checked.place, new, stamp)?;
        Ok(Written {
            blob,
            hashes: Hashes {
                md5: bytes.md5,
                crc64: bytes.crc64,
                by_md5: self.hashes.md5.is_some(),
            },
        })
    }
}
