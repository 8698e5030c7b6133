//! Lease Container: acquires, renews, changes, releases or breaks the lease that guards a
//! container's deletion.
//!
//! Source: "Lease Container".
//!
//! ```http
//! PUT /devstoreaccount1/events?restype=container&comp=lease
//! x-ms-lease-action: acquire
//! x-ms-lease-duration: 60
//!
//! 201 Created
//! x-ms-lease-id: 4b1d5a3e-7f0c-4d5c-9a53-0b6f4b8b0a11
//! ```

use smalt_protocol::StorageError;

use crate::call::Call;
use crate::operation::Write;
use crate::ops::leasing::{self, LeaseOutcome};
use crate::ops::lookup::ContainerName;
use crate::records::{ContainerRecord, Record};
use crate::reply::Reply;
use crate::rules::conditions::Conditions;
use crate::rules::lease::{Action, Done, Leased, act};
use crate::store::{Stamp, Transaction, View};

/// The Lease Container operation.
pub struct LeaseContainer {
    name: ContainerName,
    action: Action,
    conditions: Conditions,
    /// Before 2013-08-15, a lease operation changed ETag and last-modified time.
    changes_version: bool,
}

impl Write for LeaseContainer {
    type Checked = (ContainerRecord, Done);
    type Output = LeaseOutcome;

    fn parse(call: &Call) -> Result<Self, StorageError> {
        Ok(LeaseContainer {
            name: ContainerName::of(call)?,
            action: leasing::action(call)?,
            conditions: Conditions::of_write(&call.headers)?,
            changes_version: call.version < leasing::KEEPS_VERSION,
        })
    }

    fn check(&self, view: &dyn View, stamp: &Stamp) -> Result<Self::Checked, StorageError> {
        let container = self.name.find(view, stamp.now)?;
        self.conditions.check_write((&container).into())?;
        let done = act(Leased::Container, container.lease, self.action, stamp.now)?;
        Ok((container, done))
    }

    fn apply(
        self,
        (mut container, done): Self::Checked,
        tx: &mut Transaction<'_>,
        stamp: &Stamp,
    ) -> Result<LeaseOutcome, StorageError> {
        container.lease = done.state;
        if self.changes_version {
            container.touch(stamp);
        }
        container.save(tx, self.name.key())?;
        Ok(LeaseOutcome {
            action: self.action,
            done,
            etag: container.etag,
            last_modified: container.last_modified,
        })
    }

    fn render(outcome: LeaseOutcome, call: &Call) -> Result<Reply, StorageError> {
        Ok(leasing::render(&outcome, call.version))
    }
}
