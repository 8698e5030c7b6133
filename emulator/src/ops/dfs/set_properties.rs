//! Path - Update, setProperties: content headers and metadata of a file or directory.
//!
//! Source: "Path - Update".
//!
//! ```http
//! PATCH /devstoreaccount1/lake/events.csv?action=setProperties
//! x-ms-properties: team=YmlsbGluZw==
//!
//! 200 OK
//! ETag: "0x8D6D4173A7F45B7"
//! ```

use smalt_protocol::{Metadata, StorageError};

use super::{content_headers, lay_over};
use crate::call::Call;
use crate::operation::Write;
use crate::ops::blob::guard::Guard;
use crate::ops::blob::replace;
use crate::ops::lookup::{BlobName, Found};
use crate::records::{BlobRecord, ContentHeaders};
use crate::reply::Reply;
use crate::store::{Stamp, Transaction, View};

/// The setProperties action of Path - Update.
pub struct SetPathProperties {
    name: BlobName,
    guard: Guard,
    headers: ContentHeaders,
    metadata: Option<Metadata>,
}

impl Write for SetPathProperties {
    type Checked = Found;
    type Output = BlobRecord;

    fn parse(call: &Call) -> Result<Self, StorageError> {
        let has_metadata = call.headers.contains_key("x-ms-properties");
        Ok(SetPathProperties {
            name: BlobName::of_write(call)?,
            guard: Guard::of_write(call)?,
            headers: content_headers(call)?,
            metadata: has_metadata.then(|| call.metadata()).transpose()?,
        })
    }

    fn check(&self, view: &dyn View, stamp: &Stamp) -> Result<Found, StorageError> {
        let found = self.name.find(view, stamp.now)?;
        self.guard.check_write(&found.blob)?;
        Ok(found)
    }

    fn apply(
        self,
        found: Found,
        tx: &mut Transaction<'_>,
        stamp: &Stamp,
    ) -> Result<BlobRecord, StorageError> {
        let mut blob = found.blob;
        lay_over(&mut blob.headers, self.headers);
        if let Some(metadata) = self.metadata {
            blob.metadata = metadata;
        }
        let folder = found.container.generation;
        replace::touch(tx, &self.name, folder, blob, stamp)
    }

    fn render(blob: BlobRecord, _: &Call) -> Result<Reply, StorageError> {
        Ok(Reply::new(200).version(blob.etag, blob.last_modified))
    }
}
