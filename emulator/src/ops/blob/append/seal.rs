//! Append Blob Seal: makes an append blob read-only for appends.
//!
//! Source: "Append Blob Seal". Metadata, properties and tags can still change, and the blob can be
//! replaced or deleted. Sealing twice succeeds.
//!
//! ```http
//! PUT /devstoreaccount1/logs/2026-11-21.log?comp=seal
//!
//! 200 OK
//! x-ms-blob-sealed: true
//! ```

use smalt_protocol::StorageError;

use super::{Position, check_append_blob, require_version};
use crate::call::Call;
use crate::operation::Write;
use crate::ops::blob::guard::{self, Guard};
use crate::ops::blob::replace;
use crate::ops::lookup::{BlobName, Found};
use crate::records::BlobRecord;
use crate::reply::Reply;
use crate::store::{Stamp, Transaction, View};

/// The Append Blob Seal operation.
pub struct SealAppendBlob {
    name: BlobName,
    guard: Guard,
    position: Position,
}

impl Write for SealAppendBlob {
    type Checked = Found;
    type Output = BlobRecord;

    fn parse(call: &Call) -> Result<Self, StorageError> {
        require_version(call)?;
        Ok(SealAppendBlob {
            name: BlobName::of_write(call)?,
            guard: Guard::of_write(call)?,
            position: Position::of(call)?,
        })
    }

    fn check(&self, view: &dyn View, stamp: &Stamp) -> Result<Found, StorageError> {
        let found = self.name.find(view, stamp.now)?;
        self.guard.check_write(&found.blob)?;
        check_append_blob(&found.blob)?;
        guard::check_changeable(&found.blob)?;
        self.position.check(found.blob.length, 0)?;
        Ok(found)
    }

    fn apply(
        self,
        found: Found,
        tx: &mut Transaction<'_>,
        stamp: &Stamp,
    ) -> Result<BlobRecord, StorageError> {
        let Found {
            container,
            mut blob,
        } = found;
        blob.sealed = true;
        replace::touch(tx, &self.name, container.generation, blob, stamp)
    }

    fn render(blob: BlobRecord, _: &Call) -> Result<Reply, StorageError> {
        Ok(Reply::new(200)
            .version(blob.etag, blob.last_modified)
            .header("x-ms-blob-sealed", "true"))
    }
}
