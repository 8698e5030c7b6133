//! Changes of a container's properties: shared code of Set Container ACL and Set Container
//! Metadata.
//!
//! Sources: both documents. A lease id is optional, but must match if it is given.

use smalt_protocol::StorageError;
use uuid::Uuid;

use crate::call::Call;
use crate::ops::leasing::lease_id;
use crate::ops::lookup::ContainerName;
use crate::records::{ContainerRecord, Record};
use crate::reply::Reply;
use crate::rules::conditions::Conditions;
use crate::rules::lease::{Leased, check_read};
use crate::store::{Stamp, Transaction, View};

/// The container to change and the conditions of the request.
pub struct Change {
    name: ContainerName,
    lease_id: Option<Uuid>,
    conditions: Conditions,
}

impl Change {
    /// Parses a request.
    ///
    /// # Errors
    /// 400 for a malformed name or header.
    pub fn of(call: &Call) -> Result<Self, StorageError> {
        Ok(Change {
            name: ContainerName::of(call)?,
            lease_id: lease_id(call)?,
            conditions: Conditions::of_write(&call.headers)?,
        })
    }

    /// Returns the container, if it may be changed.
    ///
    /// # Errors
    /// 404 `ContainerNotFound`; 412 for an unmet lease or condition.
    pub fn check(&self, view: &dyn View, stamp: &Stamp) -> Result<ContainerRecord, StorageError> {
        let container = self.name.find(view, stamp.now)?;
        check_read(Leased::Container, container.lease, self.lease_id)?;
        self.conditions.check_write((&container).into())?;
        Ok(container)
    }

    /// Stores the container with a new ETag.
    ///
    /// # Errors
    /// When the store fails.
    pub fn keep(
        &self,
        mut container: ContainerRecord,
        tx: &mut Transaction<'_>,
        stamp: &Stamp,
    ) -> Result<ContainerRecord, StorageError> {
        container.touch(stamp);
        container.save(tx, self.name.key())?;
        Ok(container)
    }
}

/// Returns the response to a change.
pub fn reply(changed: &ContainerRecord) -> Reply {
    Reply::new(200).version(changed.etag, changed.last_modified)
}
