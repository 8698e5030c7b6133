//! Delete Container: deletes a container with all its contents in one write.
//!
//! Source: "Delete Container". The contents are keyed by the container's generation, which no name
//! leads to any more; `maintain` removes them in steps, at once or, if the account keeps deleted
//! containers, when the container can no longer be restored. Until the name is free (about 30 s in
//! production, a setting here), creation fails, another deletion succeeds without an effect (as
//! recorded), and all other operations do not find the container.
//!
//! ```http
//! DELETE /devstoreaccount1/events?restype=container
//!
//! 202 Accepted
//! ```

use smalt_protocol::{StorageError, Timestamp};
use uuid::Uuid;

use super::{deleted, system};
use crate::call::Call;
use crate::operation::Write;
use crate::ops::deletion::{self, Freed};
use crate::ops::leasing::lease_id;
use crate::ops::lookup::ContainerName;
use crate::ops::tree;
use crate::records::ContainerRecord;
use crate::reply::Reply;
use crate::rules::conditions::Conditions;
use crate::rules::lease::{Leased, check_write};
use crate::rules::worm::Worm;
use crate::store::{Stamp, Transaction, View};

/// The Delete Container operation.
pub struct DeleteContainer {
    name: ContainerName,
    lease_id: Option<Uuid>,
    conditions: Conditions,
    being_deleted_s: u64,
}

impl Write for DeleteContainer {
    /// `None` if the container is being deleted already.
    type Checked = Option<ContainerRecord>;
    type Output = ();

    fn parse(call: &Call) -> Result<Self, StorageError> {
        Ok(DeleteContainer {
            name: ContainerName::of(call)?,
            lease_id: lease_id(call)?,
            conditions: Conditions::of_write(&call.headers)?,
            being_deleted_s: call.being_deleted_s,
        })
    }

    fn check(
        &self,
        view: &dyn View,
        stamp: &Stamp,
    ) -> Result<Option<ContainerRecord>, StorageError> {
        if self.is_being_deleted(view, stamp.now)? {
            return Ok(None);
        }
        let container = self.name.find(view, stamp.now)?;
        system::check_removable(&self.name)?;
        check_write(Leased::Container, container.lease, self.lease_id)?;
        self.conditions.check_write((&container).into())?;
        let worm = &container.worm;
        let is_empty =
            *worm == Worm::default() || tree::is_empty(view, container.generation, stamp.now)?;
        worm.check_deletable(is_empty)?;
        Ok(Some(container))
    }

    fn apply(
        self,
        container: Option<ContainerRecord>,
        tx: &mut Transaction<'_>,
        stamp: &Stamp,
    ) -> Result<(), StorageError> {
        let Some(mut container) = container else {
            return Ok(());
        };
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

impl DeleteContainer {
    fn is_being_deleted(&self, view: &dyn View, now: Timestamp) -> Result<bool, StorageError> {
        let deleted_at = self.name.load(view)?.and_then(|it| it.deleted_at);
        Ok(deleted_at.is_some_and(|at| now < at.plus_s(self.being_deleted_s)))
    }
}
