//! Append Block From URL: appends a range of another blob to an append blob.
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

use smalt_protocol::StorageError;
use smalt_protocol::limits::append_block_bytes_max;

use super::{Append, Appended};
use crate::call::Call;
use crate::operation::Write;
use crate::ops::blob::source::{Request, Source, SourceRange};
use crate::ops::blob::written::Hashes;
use crate::ops::lookup::Found;
use crate::reply::Reply;
use crate::store::{Stamp, Transaction, View};

/// The Append Block From URL operation.
pub struct AppendBlockFromUrl {
    append: Append,
    source: SourceRange,
}

impl Write for AppendBlockFromUrl {
    type Checked = Found;
    type Output = Appended;

    fn parse(call: &Call) -> Result<Self, StorageError> {
        if let Some(length) = call.body_length.filter(|length| *length > 0) {
            let length = length.to_string();
            return Err(StorageError::invalid_header("Content-Length", &length));
        }
        Ok(AppendBlockFromUrl {
            append: Append::of(call)?,
            source: SourceRange::of(call, append_block_bytes_max(call.version))?,
        })
    }

    fn source(&self) -> Option<Request> {
        Some(self.source.request())
    }

    fn sourced(&mut self, source: Source) -> Result<(), StorageError> {
        self.source.sourced(source)
    }

    fn check(&self, view: &dyn View, stamp: &Stamp) -> Result<Found, StorageError> {
        self.append.check(view, stamp, self.source.length())
    }

    fn apply(
        self,
        found: Found,
        tx: &mut Transaction<'_>,
        stamp: &Stamp,
    ) -> Result<Appended, StorageError> {
        let has_conditions = self.source.has_conditions();
        let (staged, hashes) = self.source.into_bytes()?;
        let hashes = Hashes {
            // Recorded: the MD5 in every version, but the CRC64 if there are conditions on the
            // source.
            by_md5: hashes.by_md5 || !has_conditions,
            ..hashes
        };
        self.append.apply(found, staged, hashes, tx, stamp)
    }

    fn render(appended: Appended, call: &Call) -> Result<Reply, StorageError> {
        Ok(appended.reply(call.version))
    }
}
