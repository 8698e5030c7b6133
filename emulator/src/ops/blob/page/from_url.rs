//! Put Page From URL: writes pages with a range of another blob, of any kind.
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

use super::Target;
use super::write::Written;
use crate::call::Call;
use crate::operation::Write;
use crate::ops::blob::content::pages;
use crate::ops::blob::headers::BodyHashes;
use crate::ops::blob::source::{self, Request, Source, SourceBytes, SourceUrl, Wanted};
use crate::ops::blob::written::Hashes;
use crate::ops::lookup::Found;
use crate::reply::Reply;
use crate::rules::conditions::Conditions;
use crate::store::{self, Stamp, Transaction, View};

/// Put Page From URL.
pub struct PutPageFromUrl {
    target: Target,
    url: SourceUrl,
    range: ByteRange,
    conditions: Conditions,
    hashes: BodyHashes,
    bytes: Option<SourceBytes>,
}

impl Write for PutPageFromUrl {
    type Checked = Found;
    type Output = Written;

    fn parse(call: &Call) -> Result<Self, StorageError> {
        const SOURCE_RANGE: &str = "x-ms-source-range";
        let target = Target::of(call, "update")?;
        super::refuse_body(call)?;
        let url = SourceUrl::of(call)?;
        let given = call.required_header(SOURCE_RANGE)?;
        let refused = || StorageError::invalid_header(SOURCE_RANGE, given);
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
            url,
            range,
            conditions: Conditions::of_source(&call.headers)?,
            hashes: BodyHashes::of_source(call)?,
            bytes: None,
        })
    }

    fn source(&self) -> Option<Request> {
        Some(Request {
            url: self.url.clone(),
            wanted: Wanted::Range {
                conditions: self.conditions.clone(),
                range: Some(self.range),
                most: PUT_PAGE_BYTES_MAX,
            },
        })
    }

    fn sourced(&mut self, source: Source) -> Result<(), StorageError> {
        if let Some(bytes) = &source.bytes {
            let staged = bytes.staged.as_ref();
            if staged.is_some_and(|staged| staged.len() != self.target.length()) {
                // The source ends within the range.
                return Err(source::refused(&ErrorCode::InvalidRange.into()));
            }
            let judged = self.hashes.check_hashes(bytes.md5, bytes.crc64);
            // Recorded: unlike Put Page, it does not say what it calculated.
            judged.map_err(|error| StorageError::new(error.code()))?;
        }
        self.bytes = source.bytes;
        Ok(())
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
        let missing = || StorageError::internal("pages are put without their source");
        let bytes = self.bytes.ok_or_else(missing)?;
        let payload = store::adopt(tx, bytes.staged.ok_or_else(missing)?)?;
        let range = self.target.range.clone();
        let content = pages::write(tx, found.blob.content, range, payload)?;
        let blob = self.target.keep(tx, found, content, stamp)?;
        let hashes = Hashes {
            md5: bytes.md5,
            crc64: bytes.crc64,
            // Recorded in all versions: the MD5, unless the request goes by the other.
            by_md5: self.hashes.crc64.is_none(),
        };
        Ok(Written { blob, hashes })
    }

    fn render(written: Written, call: &Call) -> Result<Reply, StorageError> {
        let Written { blob, hashes } = written;
        Ok(super::with_hashes(
            super::reply(201, &blob),
            &blob,
            hashes,
            call,
        ))
    }
}
