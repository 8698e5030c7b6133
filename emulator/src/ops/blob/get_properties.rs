//! Get Blob Properties: returns everything about a blob or snapshot except its bytes.
//!
//! Source: "Get Blob Properties".
//!
//! ```http
//! HEAD /devstoreaccount1/events/2026/11/21.json
//!
//! 200 OK
//! Content-Length: 14
//! x-ms-blob-type: BlockBlob
//! x-ms-access-tier: Hot
//! ```

use smalt_protocol::{StorageError, Timestamp};

use super::guard::Guard;
use super::headers;
use super::overrides::Overrides;
use super::properties::{self, Shown};
use crate::call::Call;
use crate::operation::Read;
use crate::ops::lookup::BlobAddress;
use crate::records::BlobRecord;
use crate::reply::{Content, Reply};
use crate::rules::encryption::Requested;
use crate::store::{Store, View};

/// The Get Blob Properties operation.
pub struct GetBlobProperties {
    address: BlobAddress,
    guard: Guard,
    encryption: Requested,
    overrides: Overrides,
}

impl Read for GetBlobProperties {
    type Output = BlobRecord;

    fn parse(call: &Call) -> Result<Self, StorageError> {
        Ok(GetBlobProperties {
            address: BlobAddress::of(call)?,
            guard: Guard::of_read(call)?,
            encryption: headers::encryption(call)?,
            overrides: Overrides::of(call),
        })
    }

    fn read(&self, view: &dyn View, now: Timestamp) -> Result<BlobRecord, StorageError> {
        let blob = self.address.find(view, now)?.blob;
        self.guard.check_read(&blob, self.address.is_base())?;
        self.encryption.check_read(blob.encryption.as_ref())?;
        Ok(blob)
    }

    fn render(self, blob: BlobRecord, call: &Call, _: &Store) -> Result<Reply, StorageError> {
        let shown = Shown {
            version: call.version,
            is_base: self.address.is_base(),
            is_partial: false,
            with_tier: true,
            now: call.arrival,
            with_access: call.settings.last_access_tracking,
            default_tier: call.settings.default_tier,
        };
        let mut reply = properties::describe(200, &blob, shown);
        self.overrides.lay_over(&mut reply);
        Ok(reply.content(Content::Length(blob.length)))
    }
}
