//! The bytes that a read returns, and the hash over them.
//!
//! Source: "Get Blob" and "Specifying the Range Header for Blob Service Operations".

use std::ops::Range;

use smalt_protocol::limits::RANGE_MD5_BYTES_MAX;
use smalt_protocol::{ApiVersion, ByteRange, ErrorCode, StorageError};

/// Since this version every range of an empty blob is out of range. "Version 2013-08-15".
const EMPTY_IS_OUT_OF_RANGE: ApiVersion = ApiVersion::V2013_08_15;

/// A hash over the returned bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeHash {
    /// `x-ms-range-get-content-md5`.
    Md5,
    /// `x-ms-range-get-content-crc64`.
    Crc64,
}

/// The range and hash that a read requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WantedRange {
    /// Requested bytes; `None` for the whole blob.
    pub range: Option<ByteRange>,
    /// Requested hash over the range.
    pub hash: Option<RangeHash>,
}

/// The bytes to return.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served {
    /// Offsets in the blob.
    pub bytes: Range<u64>,
    /// Whether the response is partial, with status 206.
    pub is_partial: bool,
}

impl WantedRange {
    /// Parses the values of `x-ms-range`, `Range` and the two hash headers.
    ///
    /// # Errors
    /// 400 `BothCrc64AndMd5RangeHeaderPresent`; 400 `InvalidHeaderValue` for a hash without a range
    /// or over a range of more than 4 MiB, and for a hash header that is neither true nor false.
    pub fn parse(
        ranges: [Option<&str>; 2],
        md5: Option<&str>,
        crc64: Option<&str>,
    ) -> Result<Self, StorageError> {
        let range = ByteRange::of_read(ranges[0], ranges[1]);
        let hash = match (flag(MD5, md5)?, flag(CRC64, crc64)?) {
            (true, true) => return Err(ErrorCode::BothCrc64AndMd5RangeHeaderPresent.into()),
            (true, false) => Some((RangeHash::Md5, MD5)),
            (false, true) => Some((RangeHash::Crc64, CRC64)),
            (false, false) => None,
        };
        if let Some((_, name)) = hash {
            let within = |range: ByteRange| range.length().is_none_or(|n| n <= RANGE_MD5_BYTES_MAX);
            if !range.is_some_and(within) {
                return Err(StorageError::invalid_header(name, "true"));
            }
        }
        Ok(WantedRange {
            range,
            hash: hash.map(|(hash, _)| hash),
        })
    }

    /// Resolves the range against a blob of `length` bytes.
    ///
    /// # Errors
    /// 416 `InvalidRange` for a range that starts behind the end; 400 `InvalidHeaderValue` for the
    /// hash over an open range that turns out to be larger than 4 MiB.
    pub fn of(&self, length: u64, version: ApiVersion) -> Result<Served, StorageError> {
        let whole = Served {
            bytes: 0..length,
            is_partial: false,
        };
        let Some(range) = self.range else {
            return Ok(whole);
        };
        if length == 0 && version < EMPTY_IS_OUT_OF_RANGE {
            return Ok(whole);
        }
        let (first, count) = range.within(length)?;
        if let Some(hash) = self.hash
            && count > RANGE_MD5_BYTES_MAX
        {
            let name = if hash == RangeHash::Md5 { MD5 } else { CRC64 };
            return Err(StorageError::invalid_header(name, "true"));
        }
        Ok(Served {
            bytes: first..first + count,
            is_partial: true,
        })
    }
}

const MD5: &str = "x-ms-range-get-content-md5";
const CRC64: &str = "x-ms-range-get-content-crc64";

fn flag(name: &str, value: Option<&str>) -> Result<bool, StorageError> {
    match value {
        None => Ok(false),
        Some(text) if text.eq_ignore_ascii_case("true") => Ok(true),
        Some(text) if text.eq_ignore_ascii_case("false") || text.is_empty() => Ok(false),
        Some(text) => Err(StorageError::invalid_header(name, text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1024 * 1024;

    fn served(range: &str, length: u64) -> Result<Served, u16> {
        WantedRange::parse([Some(range), None], None, None)
            .and_then(|wanted| wanted.of(length, ApiVersion::LATEST))
            .map_err(|error| error.status())
    }

    #[test]
    fn ranges_are_returned_truncated_or_rejected() {
        for (range, length, expected) in [
            ("bytes=0-", 10, Ok((0..10, true))),
            ("bytes=3-5", 10, Ok((3..6, true))),
            ("bytes=3-500", 10, Ok((3..10, true))),
            ("bytes=10-", 10, Err(416)),
            ("bytes=0-0", 0, Err(416)),
            // A malformed or unsupported range is ignored.
            ("bytes=None-", 10, Ok((0..10, false))),
            ("bytes=-5", 10, Ok((0..10, false))),
        ] {
            let expected = expected.map(|(bytes, is_partial)| Served { bytes, is_partial });
            assert_eq!(served(range, length), expected, "{range} of {length}");
        }
        let wanted = WantedRange::parse([None, Some("bytes=0-")], None, None).unwrap();
        let empty = wanted.of(0, ApiVersion::V2012_02_12).unwrap();
        assert_eq!(empty.bytes, 0..0);
        assert!(!empty.is_partial);
        let since = wanted.of(0, ApiVersion::V2013_08_15).unwrap_err();
        assert_eq!(since.code(), ErrorCode::InvalidRange);
    }

    #[test]
    fn hashes_need_a_range_of_at_most_4_mib() {
        let (yes, no) = (Some("true"), Some("false"));
        for (range, md5, crc64, expected) in [
            (Some("bytes=0-9"), yes, None, Ok(Some(RangeHash::Md5))),
            (
                Some("bytes=0-9"),
                no,
                Some("True"),
                Ok(Some(RangeHash::Crc64)),
            ),
            (Some("bytes=0-4194303"), yes, None, Ok(Some(RangeHash::Md5))),
            (
                Some("bytes=0-4194304"),
                yes,
                None,
                Err(ErrorCode::InvalidHeaderValue),
            ),
            (None, None, yes, Err(ErrorCode::InvalidHeaderValue)),
            (None, no, no, Ok(None)),
            (None, Some("yes"), None, Err(ErrorCode::InvalidHeaderValue)),
            (
                Some("bytes=0-9"),
                yes,
                yes,
                Err(ErrorCode::BothCrc64AndMd5RangeHeaderPresent),
            ),
        ] {
            let parsed = WantedRange::parse([range, None], md5, crc64);
            let hash = parsed.map(|wanted| wanted.hash).map_err(|e| e.code());
            assert_eq!(hash, expected, "{range:?} {md5:?} {crc64:?}");
        }
        // The length of an open range is known only with the blob.
        for (md5, crc64, name) in [(yes, None, MD5), (None, yes, CRC64)] {
            let open = WantedRange::parse([Some("bytes=0-"), None], md5, crc64).unwrap();
            assert!(open.of(4 * MIB, ApiVersion::LATEST).is_ok());
            let error = open.of(4 * MIB + 1, ApiVersion::LATEST).unwrap_err();
            assert_eq!(error, StorageError::invalid_header(name, "true"));
        }
    }
}
