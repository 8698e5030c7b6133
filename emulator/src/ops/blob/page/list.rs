//! Paging of page lists, and the XML document of the response.
//!
//! Source: "Get Page Ranges". Page lists have pages since 2020-10-02. The [`marker`] encodes where
//! the next page starts: `2!16!MDAwMDA0ITIwNDgh`.

use std::ops::Range;

use smalt_protocol::limits::PAGE_BYTES;
use smalt_protocol::xml::PageListDocument;
use smalt_protocol::{ApiVersion, ByteRange, ErrorCode, StorageError};

use crate::call::Call;
use crate::ops::listing::{bad_marker, given};
use crate::ops::{marker, paging};
use crate::records::BlobRecord;
use crate::reply::Reply;
use crate::rules::pages::{Kind, Ranges};

/// Since this version, a list has pages. "Get Page Ranges".
const PAGES: ApiVersion = ApiVersion::V2020_10_02;
/// Maximum and default number of ranges in a page. Same document.
const RANGES_MAX: usize = 10_000;
/// Maximum number of ranges in a list without pages. Azure gives up as well: "a Get Page Ranges
/// request can fail due to an internal server timeout".
const WHOLE_RANGES_MAX: usize = 250_000;

/// The ranges that a request asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    range: Option<ByteRange>,
    start: Option<u64>,
    most: usize,
    is_paged: bool,
    /// Whether the document marks the end of the list.
    shows_end: bool,
}

impl Wanted {
    /// Parses range, `marker` and `maxresults`.
    ///
    /// # Errors
    /// 400 `OutOfRangeInput` for an unknown marker, and those of `maxresults`.
    pub fn of(call: &Call) -> Result<Self, StorageError> {
        let range = ByteRange::of_read(call.header("x-ms-range")?, call.header("range")?);
        let mut wanted = Wanted {
            range,
            start: None,
            most: WHOLE_RANGES_MAX,
            is_paged: call.version >= PAGES,
            shows_end: call.headers.contains_key("x-ms-previous-snapshot-url"),
        };
        if wanted.is_paged {
            let most = paging::max_results(call)?;
            wanted.most = most.map_or(RANGES_MAX, |most| (most as usize).min(RANGES_MAX));
            wanted.shows_end |= most.is_some();
            if let Some(marker) = given(call, "marker") {
                wanted.start = Some(parse_marker(&marker)?);
            }
        }
        Ok(wanted)
    }

    /// Returns the range to list of a blob of `length` bytes, in whole pages.
    ///
    /// # Errors
    /// 416 `InvalidRange` for a range that starts behind the end.
    pub fn bytes(&self, length: u64) -> Result<Range<u64>, StorageError> {
        let (first, count) = match self.range {
            Some(range) => range.within(length)?,
            None => (0, length),
        };
        let end = (first + count).next_multiple_of(PAGE_BYTES).min(length);
        let first = first / PAGE_BYTES * PAGE_BYTES;
        let start = self.start.unwrap_or_default().max(first);
        Ok(start.min(end)..end)
    }

    /// Returns an empty collector of ranges.
    pub fn ranges(&self) -> Ranges {
        Ranges::new(self.most)
    }

    /// Returns the response.
    ///
    /// # Errors
    /// 500 `OperationTimedOut` for a list that is too long in a version without pages.
    pub fn reply(&self, blob: &BlobRecord, found: &Ranges) -> Result<Reply, StorageError> {
        let mut document = PageListDocument::new();
        for (range, kind) in &found.ranges {
            match kind {
                Kind::Page => document.page(range),
                Kind::Clear => document.clear(range),
            }
        }
        match found.next {
            Some(_) if !self.is_paged => return Err(ErrorCode::OperationTimedOut.into()),
            Some(next) => document.next_marker(&marker_of(next)),
            None if self.shows_end => document.next_marker(""),
            None => {}
        }
        Ok(Reply::xml(200, document.finish())
            .version(blob.etag, blob.last_modified)
            .header("x-ms-blob-content-length", blob.length.to_string()))
    }
}

fn marker_of(next: u64) -> String {
    marker::write(&[&next.to_string()])
}

fn parse_marker(text: &str) -> Result<u64, StorageError> {
    let next = marker::read(text).and_then(|[next]| next.parse().ok());
    let next = next.filter(|next: &u64| next.is_multiple_of(PAGE_BYTES));
    next.ok_or_else(bad_marker)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::blob::testing::call;

    #[test]
    fn markers_match_the_recordings() {
        assert_eq!(marker_of(2048), "2!16!MDAwMDA0ITIwNDgh");
        for next in [0, 512, 8_796_093_021_696] {
            assert_eq!(parse_marker(&marker_of(next)), Ok(next));
        }
        for text in [
            "2048",
            "2!16!MDAwMDA0ITIwNDg-",
            "2!4!MDAw",
            "2!16!MDAwMDA0ITIwNDch",
            "",
        ] {
            assert_eq!(parse_marker(text).unwrap_err().status(), 400, "{text}");
        }
    }

    #[test]
    fn ranges_are_widened_to_whole_pages() {
        for (range, length, expected) in [
            (None, 4096, Some(0..4096)),
            (None, 0, Some(0..0)),
            (Some("bytes=512-1023"), 4096, Some(512..1024)),
            (Some("bytes=100-600"), 4096, Some(0..1024)),
            (Some("bytes=1024-"), 4096, Some(1024..4096)),
            (Some("bytes=4096-5000"), 4096, None),
        ] {
            let headers: Vec<_> = range
                .map(|range| ("x-ms-range", range))
                .into_iter()
                .collect();
            let wanted = Wanted::of(&call(&[], &headers)).unwrap();
            assert_eq!(wanted.bytes(length).ok(), expected, "{range:?} of {length}");
        }
        let marked = Wanted::of(&call(&[("marker", &marker_of(2048))], &[])).unwrap();
        assert_eq!(marked.bytes(4096).unwrap(), 2048..4096);
        assert_eq!(marked.bytes(1024).unwrap(), 1024..1024);
    }
}
