//! A range of a source as a new payload: shared code of Put Block From URL, Append Block From URL
//! and Put Page From URL.
//!
//! Sources: the three documents, on `x-ms-source-range`, `x-ms-source-content-md5` and the
//! conditions on the source.

use smalt_protocol::{ByteRange, StorageError};

use super::{Request, Source, SourceBytes, SourceUrl, Wanted};
use crate::call::Call;
use crate::ops::blob::headers::BodyHashes;
use crate::ops::blob::written::Hashes;
use crate::rules::conditions::Conditions;
use crate::store::Staged;

/// Header of the range.
pub const RANGE: &str = "x-ms-source-range";

/// The headers of a request about its source, and the bytes once they were read.
pub struct SourceRange {
    url: SourceUrl,
    range: Option<ByteRange>,
    conditions: Conditions,
    hashes: BodyHashes,
    bytes_max: u64,
    bytes: Option<SourceBytes>,
}

impl SourceRange {
    /// Parses a request for at most `bytes_max` bytes; without a range it asks for the whole
    /// source.
    ///
    /// # Errors
    /// 400 for malformed headers.
    pub fn of(call: &Call, bytes_max: u64) -> Result<Self, StorageError> {
        let url = SourceUrl::of(call)?;
        let range = call.header(RANGE)?.filter(|range| !range.is_empty());
        Self::at(call, url, ByteRange::of_source(range)?, bytes_max)
    }

    /// Parses a request whose range is known.
    ///
    /// # Errors
    /// As [`SourceRange::of`].
    pub fn at(
        call: &Call,
        url: SourceUrl,
        range: Option<ByteRange>,
        bytes_max: u64,
    ) -> Result<Self, StorageError> {
        Ok(SourceRange {
            url,
            range,
            conditions: Conditions::of_source(&call.headers)?,
            hashes: BodyHashes::of_source(call)?,
            bytes_max,
            bytes: None,
        })
    }

    /// Returns the request for the source.
    pub fn request(&self) -> Request {
        Request {
            url: self.url.clone(),
            wanted: Wanted::Range {
                conditions: self.conditions.clone(),
                range: self.range,
                most: self.bytes_max,
            },
        }
    }

    /// Stores the opened source after comparing its hashes.
    ///
    /// # Errors
    /// 400 `Md5Mismatch`, `Crc64Mismatch`.
    pub fn sourced(&mut self, source: Source) -> Result<(), StorageError> {
        if let Some(bytes) = &source.bytes {
            self.hashes.check_hashes(bytes.md5, bytes.crc64)?;
        }
        self.bytes = source.bytes;
        Ok(())
    }

    /// Returns the number of bytes that were read; 0 before.
    pub fn length(&self) -> u64 {
        let staged = self.bytes.as_ref().and_then(|bytes| bytes.staged.as_ref());
        staged.map_or(0, Staged::len)
    }

    /// Whether the request has conditions on its source.
    pub fn has_conditions(&self) -> bool {
        self.conditions != Conditions::default()
    }

    /// Whether the request gives a CRC64 for its source.
    pub fn has_crc64(&self) -> bool {
        self.hashes.crc64.is_some()
    }

    /// Returns the bytes and their hashes.
    ///
    /// # Errors
    /// 500 if they have not been read.
    pub fn into_bytes(self) -> Result<(Staged, Hashes), StorageError> {
        let missing = || StorageError::internal("a range is used before its source was read");
        let bytes = self.bytes.ok_or_else(missing)?;
        let hashes = Hashes {
            md5: bytes.md5,
            crc64: bytes.crc64,
            by_md5: self.hashes.md5.is_some(),
        };
        Ok((bytes.staged.ok_or_else(missing)?, hashes))
    }
}
