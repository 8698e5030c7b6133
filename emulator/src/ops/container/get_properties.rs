//! Get Container Properties: returns system properties and metadata, without a body.
//!
//! Source: "Get Container Properties".
//!
//! ```http
//! HEAD /devstoreaccount1/events?restype=container
//!
//! 200 OK
//! x-ms-lease-status: unlocked
//! x-ms-lease-state: available
//! ```

use smalt_protocol::{StorageError, Timestamp};
use uuid::Uuid;

use crate::call::Call;
use crate::operation::Read;
use crate::ops::container::properties::ContainerHeaders;
use crate::ops::leasing::lease_id;
use crate::ops::lookup::ContainerName;
use crate::records::ContainerRecord;
use crate::reply::Reply;
use crate::rules::lease::{Leased, check_read};
use crate::store::{Store, View};

/// The Get Container Properties operation.
pub struct GetContainerProperties {
    name: ContainerName,
    lease_id: Option<Uuid>,
}

impl Read for GetContainerProperties {
    type Output = ContainerRecord;

    fn parse(call: &Call) -> Result<Self, StorageError> {
        Ok(GetContainerProperties {
            name: ContainerName::of(call)?,
            lease_id: lease_id(call)?,
        })
    }

    fn read(&self, view: &dyn View, now: Timestamp) -> Result<ContainerRecord, StorageError> {
        let container = self.name.find(view, now)?;
        check_read(Leased::Container, container.lease, self.lease_id)?;
        Ok(container)
    }

    fn render(self, found: ContainerRecord, call: &Call, _: &Store) -> Result<Reply, StorageError> {
        let reply = Reply::new(200)
            .version(found.etag, found.last_modified)
            .header("x-ms-lease-status", found.lease.status_str())
            .header("x-ms-lease-state", found.lease.state_str())
            .maybe("x-ms-lease-duration", found.lease.duration_str());
        let reply = ContainerHeaders::of(&found, call).headers(reply);
        Ok(reply.metadata(&found.metadata))
    }
}
