//! Set Container Metadata: replaces all user metadata.
//!
//! Source: "Set Container Metadata".
//!
//! ```http
//! PUT /devstoreaccount1/events?restype=container&comp=metadata
//! x-ms-meta-team: billing
//!
//! 200 OK
//! ETag: "0x8D6D4173A7F45B7"
//! ```

use smalt_protocol::{Metadata, StorageError};
use uuid::Uuid;

use crate::call::Call;
use crate::operation::Write;
use crate::ops::leasing::lease_id;
use crate::ops::lookup::ContainerName;
use crate::records::{ContainerRecord, Record};
use crate::reply::Reply;
use crate::rules::conditions::Conditions;
use crate::rules::lease::{Leased, check_read};
use crate::store::{Stamp, Transaction, View};

/// Set Container Metadata.
pub struct SetContainerMetadata {
    name: ContainerName,
    lease_id: Option<Uuid>,
    conditions: Conditions,
    metadata: Metadata,
}

impl Write for SetContainerMetadata {
    type Checked = ContainerRecord;
    type Output = ContainerRecord;

    fn parse(call: &Call) -> Result<Self, StorageError> {
        Ok(SetContainerMetadata {
            name: ContainerName::of(call)?,
            lease_id: lease_id(call)?,
            conditions: Conditions::of_write(&call.headers)?,
            metadata: call.metadata()?,
        })
    }

    fn check(&self, view: &dyn View, stamp: &Stamp) -> Result<ContainerRecord, StorageError> {
        let container = self.name.find(view, stamp.now)?;
        check_read(Leased::Container, container.lease, self.lease_id)?;
        self.conditions.check_write((&container).into())?;
        Ok(container)
    }

    fn apply(
        self,
        mut container: ContainerRecord,
        tx: &mut Transaction<'_>,
        stamp: &Stamp,
    ) -> Result<ContainerRecord, StorageError> {
        container.metadata = self.metadata;
        container.touch(stamp);
        container.save(tx, self.name.key())?;
        Ok(container)
    }

    fn render(changed: ContainerRecord, _: &Call) -> Result<Reply, StorageError> {
        Ok(Reply::new(200).version(changed.etag, changed.last_modified))
    }
}
