//! Delete Container: the container, and everything in it, is gone with one write.
//!
//! Source: "Delete Container". The contents are keyed by the container's generation, which nothing
//! names any more; `maintain` removes them in steps, at once or, where the account keeps deleted
//! containers, when it cannot be restored any more. While the name is not free yet (about 30 s in
//! production, a setting here), creation is refused and everything else does not find it.
//!
//! ```http
//! DELETE /devstoreaccount1/events?restype=container
//!
//! 202 Accepted
//! ```

use smalt_protocol::StorageError;
use uuid::Uuid;

use super::deleted;
use crate::call::Call;
use crate::operation::Write;
use crate::ops::deletion::{self, Freed};
use crate::ops::leasing::lease_id;
use crate::ops::lookup::ContainerName;
use crate::records::ContainerRecord;
use crate::reply::Reply;
use crate::rules::conditions::Conditions;
use crate::rules::lease::{Leased, check_write};
use crate::store::{Stamp, Transaction, View};

/// Delete Container.
pub struct DeleteContainer {
    name: ContainerName,
    lease_id: Option<Uuid>,
    conditions: Conditions,
    being_deleted_s: u64,
}

impl Write for DeleteContainer {
    type Checked = ContainerRecord;
    type Output = ();

    fn parse(call: &Call) -> Result<Self, StorageError> {
        Ok(DeleteContainer {
            name: ContainerName::of(call)?,
            lease_id: lease_id(call)?,
            conditions: Conditions::of_write(&call.headers)?,
            being_deleted_s: call.being_deleted_s,
        })
    }

    fn check(&self, view: &dyn View, stamp: &Stamp) -> Result<ContainerRecord, StorageError> {
        let container = self.name.find(view, stamp.now)?;
        check_write(Leased::Container, container.lease, self.lease_id)?;
        self.conditions.check_write((&container).into())?;
        Ok(container)
    }

    fn apply(
        self,
        mut container: ContainerRecord,
        tx: &mut Transaction<'_>,
        stamp: &Stamp,
    ) -> Result<(), StorageError> {
        if let Some(days) = self.name.settings.container_retention_days {
            deleted::keep(tx, &self.name, container, days, self.being_deleted_s, stamp)?;
            return Ok(());
        }
        container.deleted_at = Some(stamp.now);
        let freed = Freed {
            now: stamp.now,
            being_deleted_s: self.being_deleted_s,
        };
        let generation = container.generation;
        deletion::delete(tx, self.name.key(), &container, generation, freed)?;
        Ok(())
    }

    fn render((): (), _: &Call) -> Result<Reply, StorageError> {
        Ok(Reply::new(202))
    }
}
