//! Append Block: appends bytes to an append blob.
//!
//! Source: "Append Block".
//!
//! ```http
//! PUT /devstoreaccount1/logs/2026-11-21.log?comp=appendblock
//! Content-Length: 14
//!
//! 201 Created
//! x-ms-blob-append-offset: 0
//! x-ms-blob-committed-block-count: 1
//! ```

use smalt_protocol::limits::append_block_bytes_max;
use smalt_protocol::{ETag, ErrorCode, StorageError, Timestamp};

use super::{Append, Appended};
use crate::call::Call;
use crate::operation::{Received, Takes, Write};
use crate::ops::blob::upload::Upload;
use crate::ops::lookup::Found;
use crate::reply::Reply;
use crate::store::{Stamp, Transaction, View};

/// The Append Block operation.
pub struct AppendBlock {
    append: Append,
    length: u64,
    upload: Upload,
}

impl Write for AppendBlock {
    type Checked = Found;
    type Output = Appended;

    fn parse(call: &Call) -> Result<Self, StorageError> {
        if call.body_length == Some(0) {
            return Err(StorageError::invalid_header("Content-Length", "0"));
        }
        check_tag_is_a_time(call)?;
        Ok(AppendBlock {
            append: Append::of(call)?,
            length: call.body_length.unwrap_or_default(),
            upload: Upload::of_block(call, append_block_bytes_max(call.version))?,
        })
    }

    fn takes(&self) -> Takes {
        self.upload.takes()
    }

    fn payload(&mut self, received: Received) -> Result<(), StorageError> {
        self.upload.receive(received)
    }

    fn check(&self, view: &dyn View, stamp: &Stamp) -> Result<Found, StorageError> {
        self.append.check(view, stamp, self.length)
    }

    fn apply(
        self,
        found: Found,
        tx: &mut Transaction<'_>,
        stamp: &Stamp,
    ) -> Result<Appended, StorageError> {
        let (staged, hashes) = self.upload.into_bytes()?;
        self.append.apply(found, staged, hashes, tx, stamp)
    }

    fn render(appended: Appended, call: &Call) -> Result<Reply, StorageError> {
        Ok(appended.reply(call.version))
    }
}

/// ETags are times. Recorded: only this operation rejects an ETag whose time lies before the first
/// FILETIME, instead of treating it as unmet.
fn check_tag_is_a_time(call: &Call) -> Result<(), StorageError> {
    let tag = call.header("if-match")?.and_then(ETag::parse);
    if tag.is_some_and(|tag| tag < ETag::from_tick(Timestamp::WINDOWS_EPOCH)) {
        return Err(StorageError::new(ErrorCode::OutOfRangeInput)
            .with_message("One of the request inputs is out of range."));
    }
    Ok(())
}
