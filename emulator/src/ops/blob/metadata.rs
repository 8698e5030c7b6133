//! Get Blob Metadata and Set Blob Metadata.
//!
//! Sources: "Get Blob Metadata", "Set Blob Metadata". Set replaces all metadata.
//!
//! ```http
//! PUT /devstoreaccount1/events/2026/11/21.json?comp=metadata
//! x-ms-meta-team: billing
//!
//! 200 OK
//! ETag: "0x8D6D4173A7F45B7"
//! ```

use smalt_protocol::{Metadata, StorageError, Timestamp};

use super::guard::{self, Guard};
use super::headers;
use super::{properties, replace};
use crate::call::Call;
use crate::operation::{Read, Write};
use crate::ops::lookup::{BlobAddress, BlobName, Found};
use crate::records::BlobRecord;
use crate::reply::Reply;
use crate::rules::encryption::Requested;
use crate::store::{Stamp, Store, Transaction, View};

/// The Get Blob Metadata operation.
pub struct GetBlobMetadata {
    address: BlobAddress,
    guard: Guard,
    encryption: Requested,
}

impl Read for GetBlobMetadata {
    type Output = BlobRecord;

    fn parse(call: &Call) -> Result<Self, StorageError> {
        Ok(GetBlobMetadata {
            address: BlobAddress::of(call)?,
            guard: Guard::of_read(call)?,
            encryption: headers::encryption(call)?,
        })
    }

    fn read(&self, view: &dyn View, now: Timestamp) -> Result<BlobRecord, StorageError> {
        let blob = self.address.find(view, now)?.blob;
        self.guard.check_read(&blob, self.address.is_base())?;
        self.encryption.check_read(blob.encryption.as_ref())?;
        Ok(blob)
    }

    fn render(self, blob: BlobRecord, _: &Call, _: &Store) -> Result<Reply, StorageError> {
        Ok(Reply::new(200)
            .version(blob.etag, blob.last_modified)
            .metadata(&blob.shown_metadata()))
    }
}

/// The Set Blob Metadata operation.
pub struct SetBlobMetadata {
    name: BlobName,
    guard: Guard,
    encryption: Requested,
    metadata: Metadata,
}

impl Write for SetBlobMetadata {
    type Checked = Found;
    type Output = BlobRecord;

    fn parse(call: &Call) -> Result<Self, StorageError> {
        Ok(SetBlobMetadata {
            name: BlobName::of_write(call)?,
            guard: Guard::of_write(call)?,
            encryption: headers::encryption(call)?,
            metadata: call.metadata()?,
        })
    }

    fn check(&self, view: &dyn View, stamp: &Stamp) -> Result<Found, StorageError> {
        let found = self.name.find(view, stamp.now)?;
        self.guard.check_write(&found.blob)?;
        guard::check_rewritable(&found.blob)?;
        guard::check_encryption(&self.encryption, &found)?;
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
            blob: old,
        } = found;
        let blob = BlobRecord {
            metadata: self.metadata,
            ..old.clone()
        };
        let generation = container.generation;
        replace::touch_version(tx, &self.name, generation, &old, blob, stamp)
    }

    fn render(blob: BlobRecord, call: &Call) -> Result<Reply, StorageError> {
        let reply = Reply::new(200).version(blob.etag, blob.last_modified);
        Ok(properties::written(reply, &blob, call.version))
    }
}
