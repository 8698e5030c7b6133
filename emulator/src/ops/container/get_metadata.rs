//! Get Container Metadata: returns user metadata as headers.
//!
//! Source: "Get Container Metadata".
//!
//! ```http
//! GET /devstoreaccount1/events?restype=container&comp=metadata
//!
//! 200 OK
//! x-ms-meta-team: billing
//! ```

use smalt_protocol::{StorageError, Timestamp};

use crate::call::Call;
use crate::operation::Read;
use crate::ops::container::get_properties::GetContainerProperties;
use crate::records::ContainerRecord;
use crate::reply::Reply;
use crate::store::{Store, View};

/// The Get Container Metadata operation.
pub struct GetContainerMetadata(GetContainerProperties);

impl Read for GetContainerMetadata {
    type Output = ContainerRecord;

    fn parse(call: &Call) -> Result<Self, StorageError> {
        GetContainerProperties::parse(call).map(GetContainerMetadata)
    }

    fn read(&self, view: &dyn View, now: Timestamp) -> Result<ContainerRecord, StorageError> {
        self.0.read(view, now)
    }

    fn render(self, found: ContainerRecord, _: &Call, _: &Store) -> Result<Reply, StorageError> {
        Ok(Reply::new(200)
            .version(found.etag, found.last_modified)
            .metadata(&found.metadata))
    }
}
