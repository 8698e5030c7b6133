//! Byte ranges: the `Range`, `x-ms-range` and `x-ms-source-range` headers.
//!
//! Source: *Specifying the Range Header for Blob Service Operations*. Two forms exist, `bytes=a-`
//! and `bytes=a-b`. In recordings a read with any other value (`bytes=None-`) is served as one
//! without a range, and a write with one is rejected with 400 `InvalidHeaderValue`.

use crate::error::{ErrorCode, StorageError};

/// An inclusive range of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteRange {
    /// The offset of the first byte.
    pub first: u64,
    /// The offset of the last byte, not before `first`; `None` is the end of the blob.
    pub last: Option<u64>,
}

impl ByteRange {
    /// Parses `bytes=a-` or `bytes=a-b`. Returns `None` for suffixes, several ranges and anything
    /// else.
    pub fn parse(value: &str) -> Option<Self> {
        let (unit, range) = value.trim().split_once('=')?;
        let (first, last) = range.split_once('-')?;
        let first = number(first)?;
        let last = if last.trim().is_empty() {
            None
        } else {
            Some(number(last)?)
        };
        let in_order = last.is_none_or(|last| first <= last);
        (unit.eq_ignore_ascii_case("bytes") && in_order).then_some(ByteRange { first, last })
    }

    /// Returns the range of a read. `x-ms-range` takes precedence over `Range`; a malformed value
    /// is ignored.
    pub fn of_read(x_ms_range: Option<&str>, range: Option<&str>) -> Option<Self> {
        x_ms_range.or(range).and_then(Self::parse)
    }

    /// Returns the range of a page write, which is required; `x-ms-range` takes precedence over
    /// `Range`.
    ///
    /// # Errors
    /// 400 `MissingRequiredHeader` when both are absent, 400 `InvalidHeaderValue` for anything but
    /// `bytes=a-b`. Both name `Range`, as recorded.
    pub fn of_write(x_ms_range: Option<&str>, range: Option<&str>) -> Result<Self, StorageError> {
        let value = x_ms_range
            .or(range)
            .ok_or_else(|| StorageError::missing_header("Range"))?;
        Self::parse(value)
            .filter(|range| range.last.is_some())
            .ok_or_else(|| StorageError::invalid_header("Range", value))
    }

    /// Returns the range of a copy's source, from `x-ms-source-range`.
    ///
    /// # Errors
    /// 400 `InvalidHeaderValue` for anything but `bytes=a-` and `bytes=a-b`.
    pub fn of_source(value: Option<&str>) -> Result<Option<Self>, StorageError> {
        let Some(value) = value else { return Ok(None) };
        match Self::parse(value) {
            Some(range) => Ok(Some(range)),
            None => Err(StorageError::invalid_header("x-ms-source-range", value)),
        }
    }

    /// Returns the offset and length of the range in a blob of this size. An end beyond the blob is
    /// cut off.
    ///
    /// # Errors
    /// 416 `InvalidRange` for a range that starts at or beyond the end. `Content-Range` has the
    /// size.
    pub fn within(self, size: u64) -> Result<(u64, u64), StorageError> {
        if self.first >= size {
            let content_range = format!("bytes */{size}");
            return Err(StorageError::new(ErrorCode::InvalidRange)
                .with_header("Content-Range", &content_range));
        }
        let last = self.last.map_or(size - 1, |last| last.min(size - 1));
        Ok((self.first, last.saturating_sub(self.first) + 1))
    }

    /// Returns the length in bytes; `None` if the range extends to the end of the blob.
    pub fn length(self) -> Option<u64> {
        self.last
            .map(|last| last.saturating_sub(self.first).saturating_add(1))
    }
}

fn number(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    // Offsets are limited to 2^63 - 1, as in the service.
    digits
        .then(|| text.parse::<i64>().ok())
        .flatten()
        .map(i64::unsigned_abs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn range(first: u64, last: Option<u64>) -> Option<ByteRange> {
        Some(ByteRange { first, last })
    }

    #[test]
    fn only_two_forms_are_ranges() {
        for (value, expected) in [
            ("bytes=0-", range(0, None)),
            ("bytes=0-0", range(0, Some(0))),
            ("bytes=5-9", range(5, Some(9))),
            (" Bytes=5-9 ", range(5, Some(9))),
            ("bytes=None-", None),
            ("bytes=-5", None),
            ("bytes=9-5", None),
            ("bytes=0-1,3-4", None),
            ("bytes=abc", None),
            ("bytes=+1-2", None),
            ("bytes=0-9223372036854775808", None),
            ("items=0-1", None),
            ("0-1", None),
            ("", None),
        ] {
            assert_eq!(ByteRange::parse(value), expected, "{value}");
        }
    }

    #[test]
    fn reads_ignore_malformed_ranges_and_writes_reject_them() {
        assert_eq!(
            ByteRange::of_read(Some("bytes=1-2"), Some("bytes=3-4")),
            range(1, Some(2))
        );
        assert_eq!(ByteRange::of_read(None, Some("bytes=3-")), range(3, None));
        assert_eq!(ByteRange::of_read(Some("bytes=None-"), None), None);
        assert_eq!(
            ByteRange::of_write(Some("bytes=0-511"), None).ok(),
            range(0, Some(511))
        );
        for (value, code) in [
            (None, ErrorCode::MissingRequiredHeader),
            (Some("bytes=0-"), ErrorCode::InvalidHeaderValue),
            (Some("all"), ErrorCode::InvalidHeaderValue),
        ] {
            let error = ByteRange::of_write(value, None).unwrap_err();
            assert_eq!((error.status(), error.code()), (400, code));
            assert_eq!(error.elements()[0], ("HeaderName", "Range".to_owned()));
        }
        assert_eq!(ByteRange::of_source(None), Ok(None));
        assert_eq!(ByteRange::of_source(Some("bytes=2-")), Ok(range(2, None)));
        let error = ByteRange::of_source(Some("2-")).unwrap_err();
        assert_eq!(error.elements()[0].1, "x-ms-source-range");
    }

    #[test]
    fn ranges_are_cut_off_at_the_end_of_the_blob() {
        for (first, last, size, expected) in [
            (0, None, 10, Some((0, 10))),
            (3, Some(5), 10, Some((3, 3))),
            (3, Some(500), 10, Some((3, 7))),
            (9, None, 10, Some((9, 1))),
            (10, None, 10, None),
            (0, Some(0), 0, None),
        ] {
            let result = ByteRange { first, last }.within(size);
            assert_eq!(result.as_ref().ok(), expected.as_ref());
            if let Err(error) = result {
                assert_eq!(
                    (error.status(), error.code()),
                    (416, ErrorCode::InvalidRange)
                );
                assert_eq!(error.headers()[0].1, format!("bytes */{size}"));
            }
        }
    }

    proptest! {
        #[test]
        fn any_text_is_parsed_or_rejected(text in "(bytes=)?[-0-9, a]{0,30}", size: u64) {
            if let Some(range) = ByteRange::parse(&text) {
                let _ = range.length();
                if let Ok((first, length)) = range.within(size) {
                    prop_assert!(length > 0 && first + length <= size);
                }
            }
        }
    }
}
