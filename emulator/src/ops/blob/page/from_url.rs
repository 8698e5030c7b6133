//! Put Page From URL: writes pages from a range of another blob, of any kind.
//!
//! Source: "Put Page From URL".
//!
//! ```http
//! PUT /devstoreaccount1/disks/system.vhd?comp=page
//! x-ms-page-write: update
//! x-ms-range: bytes=0-511
//! x-ms-copy-source: http://127.0.0.1:10000/devstoreaccount1/disks/other.vhd?sv=...&sig=...
//! x-ms-source-range: bytes=512-1023
//! Content-Length: 0
//!
//! 201 Created
//! Content-MD5: VpBzljOcorCZvRIkX5Nt3A==
//! x-ms-blob-sequence-number: 0
//! ```

use smalt_protocol::limits::PUT_PAGE_BYTES_MAX;
use smalt_protocol::{ByteRange, ErrorCode, StorageError};

use super::{Target, answer};
use crate::call::Call;
use crate::operation::Write;
use crate::ops::blob::source::{self, RANGE, Request, Source, SourceRange, SourceUrl};
use crate::ops::blob::written::Hashes;
use crate::ops::blob::written::Written;
use crate::ops::lookup::Found;
use crate::reply::Reply;
use crate::store::{Stamp, Transaction, View};

/// The Put Page From URL operation.
pub struct PutPageFromUrl {
    target: Target,
    source: SourceRange,
}

impl Write for PutPageFromUrl {
    type Checked = Found;
    type Output = Written;

    fn parse(call: &Call) -> Result<Self, StorageError> {
        let target = Target::of(call, "update")?;
        super::refuse_body(call)?;
        let url = SourceUrl::of(call)?;
        let given = call.required_header(RANGE)?;
        let refused = || StorageError::invalid_header(RANGE, given);
        let range = ByteRange::of_source(Some(given))?.ok_or_else(refused)?;
        if range.length() != Some(target.length()) {
            return Err(refused());
        }
        if target.length() > PUT_PAGE_BYTES_MAX {
            return Err(StorageError::new(ErrorCode::RequestBodyTooLarge)
                .with_element("MaxLimit", &PUT_PAGE_BYTES_MAX.to_string()));
        }
        Ok(PutPageFromUrl {
            target,
            source: SourceRange::at(call, url, Some(range), PUT_PAGE_BYTES_MAX)?,
        })
    }

    fn source(&self) -> Option<Request> {
        Some(self.source.request())
    }

    fn sourced(&mut self, source: Source) -> Result<(), StorageError> {
        if let Some(bytes) = &source.bytes {
            let staged = bytes.staged.as_ref();
            if staged.is_some_and(|staged| staged.len() != self.target.length()) {
                // The source is shorter than the range.
                return Err(source::refused(&ErrorCode::InvalidRange.into()));
            }
        }
        // Recorded: unlike Put Page, the error does not give the calculated hash.
        let judged = self.source.sourced(source);
        judged.map_err(|error| StorageError::new(error.code()))
    }

    fn check(&self, view: &dyn View, stamp: &Stamp) -> Result<Found, StorageError> {
        self.target.check(view, stamp.now)
    }

    fn apply(
        self,
        found: Found,
        tx: &mut Transaction<'_>,
        stamp: &Stamp,
    ) -> Result<Written, StorageError> {
        // Recorded in all versions: the MD5, unless the request gives a CRC64.
        let by_md5 = !self.source.has_crc64();
        let (staged, hashes) = self.source.into_bytes()?;
        let hashes = Hashes { by_md5, ..hashes };
        self.target.write(found, staged, hashes, tx, stamp)
    }

    fn render(written: Written, call: &Call) -> Result<Reply, StorageError> {
        Ok(answer(&written, call))
    }
}
