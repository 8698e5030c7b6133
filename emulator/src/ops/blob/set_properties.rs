//! Set Blob Properties: the six content headers, as a unit.
//!
//! Source: "Set Blob Properties". Whatever is not given is cleared, so that a request which gives
//! nothing clears everything, as recorded.
//!
//! ```http
//! PUT /devstoreaccount1/events/2026/11/21.json?comp=properties
//! x-ms-blob-content-type: application/json
//!
//! 200 OK
//! ETag: "0x8D6D4173A7F45B7"
//! ```

use smalt_protocol::StorageError;

use super::guard::{self, Guard};
use super::{headers, replace};
use crate::call::Call;
use crate::operation::Write;
use crate::ops::lookup::{BlobName, Found};
use crate::records::{BlobRecord, ContentHeaders};
use crate::reply::Reply;
use crate::store::{Stamp, Transaction, View};

/// Set Blob Properties.
pub struct SetBlobProperties {
    name: BlobName,
    guard: Guard,
    headers: ContentHeaders,
}

impl Write for SetBlobProperties {
    type Checked = Found;
    type Output = BlobRecord;

    fn parse(call: &Call) -> Result<Self, StorageError> {
        Ok(SetBlobProperties {
            name: BlobName::of_write(call)?,
            guard: Guard::of_write(call)?,
            headers: headers::content_of_set(call)?.unwrap_or_default(),
        })
    }

    fn check(&self, view: &dyn View, stamp: &Stamp) -> Result<Found, StorageError> {
        let found = self.name.find(view, stamp.now)?;
        self.guard.check_write(&found.blob)?;
        guard::check_changeable(&found.blob)?;
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
        blob.headers = self.headers;
        // "This header does not appear if the blob was modified by Set Blob Properties since."
        blob.copy = None;
        replace::touch(tx, &self.name, container.generation, blob, stamp)
    }

    fn render(blob: BlobRecord, _: &Call) -> Result<Reply, StorageError> {
        Ok(Reply::new(200).version(blob.etag, blob.last_modified))
    }
}
