//! Append Block From URL: adds a range of another blob to the end of an append blob.
//!
//! Source: "Append Block From URL".
//!
//! ```http
//! PUT /devstoreaccount1/logs/2026-11-21.log?comp=appendblock
//! x-ms-copy-source: http://127.0.0.1:10000/devstoreaccount1/events/2026/11/21.json?sv=...&sig=...
//! x-ms-source-range: bytes=0-9
//!
//! 201 Created
//! x-ms-blob-append-offset: 14
//! x-ms-blob-committed-block-count: 2
//! ```

use smalt_protocol::limits::append_block_bytes_max;
use smalt_protocol::{ByteRange, StorageError};

use super::{Append, Appended};
use crate::call::Call;
use crate::operation::Write;
use crate::ops::blob::headers::BodyHashes;
use crate::ops::blob::source::{Request, Source, SourceBytes, SourceUrl, Wanted};
use crate::ops::blob::written::Hashes;
use crate::ops::lookup::Found;
use crate::reply::Reply;
use crate::rules::conditions::Conditions;
use crate::store::{Staged, Stamp, Transaction, View};

/// Append Block From URL.
pub struct AppendBlockFromUrl {
    append: Append,
    url: SourceUrl,
    range: Option<ByteRange>,
    conditions: Conditions,
    hashes: BodyHashes,
    bytes_max: u64,
    bytes: Option<SourceBytes>,
}

impl Write for AppendBlockFromUrl {
    type Checked = Found;
    type Output = Appended;

    fn parse(call: &Call) -> Result<Self, StorageError> {
        if let Some(length) = call.body_length.filter(|length| *length > 0) {
            let length = length.to_string();
            return Err(StorageError::invalid_header("Content-Length", &length));
        }
        let range = call.header("x-ms-source-range")?;
        Ok(AppendBlockFromUrl {
            append: Append::of(call)?,
            url: SourceUrl::of(call)?,
            range: ByteRange::of_source(range.filter(|range| !range.is_empty()))?,
            conditions: Conditions::of_source(&call.headers)?,
            hashes: BodyHashes::of_source(call)?,
            bytes_max: append_block_bytes_max(call.version),
            bytes: None,
        })
    }

    fn source(&self) -> Option<Request> {
        Some(Request {
            url: self.url.clone(),
            wanted: Wanted::Range {
                conditions: self.conditions.clone(),
                range: self.range,
                most: self.bytes_max,
            },
        })
    }

    fn sourced(&mut self, source: Source) -> Result<(), StorageError> {
        if let Some(bytes) = &source.bytes {
            self.hashes.check_hashes(bytes.md5, bytes.crc64)?;
        }
        self.bytes = source.bytes;
        Ok(())
    }

    fn check(&self, view: &dyn View, stamp: &Stamp) -> Result<Found, StorageError> {
        let staged = self.bytes.as_ref().and_then(|bytes| bytes.staged.as_ref());
        let length = staged.map_or(0, Staged::len);
        self.append.check(view, stamp, length)
    }

    fn apply(
        self,
        found: Found,
        tx: &mut Transaction<'_>,
        stamp: &Stamp,
    ) -> Result<Appended, StorageError> {
        let missing = || StorageError::internal("a block is appended without its source");
        let bytes = self.bytes.ok_or_else(missing)?;
        let staged = bytes.staged.ok_or_else(missing)?;
        // Recorded: the MD5 in every version, but the CRC64 to conditions on the source.
        let by_md5 = self.hashes.md5.is_some() || self.conditions == Conditions::default();
        let hashes = Hashes {
            md5: bytes.md5,
            crc64: bytes.crc64,
            by_md5,
        };
        self.append.apply(found, staged, hashes, tx, stamp)
    }

    fn render(appended: Appended, call: &Call) -> Result<Reply, StorageError> {
        Ok(appended.reply(call.version))
    }
}
