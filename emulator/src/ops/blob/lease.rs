//! Lease Blob: acquires, renews, changes, releases or breaks the lease that guards writes to a
//! blob.
//!
//! Source: "Lease Blob".
//!
//! ```http
//! PUT /devstoreaccount1/events/today.json?comp=lease
//! x-ms-lease-action: break
//! x-ms-lease-break-period: 10
//!
//! 202 Accepted
//! x-ms-lease-time: 10
//! ```

use smalt_protocol::StorageError;

use super::guard;
use crate::call::Call;
use crate::keys::Generation;
use crate::operation::Write;
use crate::ops::leasing::{self, LeaseOutcome};
use crate::ops::lookup::{BlobName, Found};
use crate::records::{BlobRecord, Record};
use crate::reply::Reply;
use crate::rules::conditions::Conditions;
use crate::rules::lease::{Action, Done, Leased, act};
use crate::store::{Stamp, Transaction, View};

/// The Lease Blob operation.
pub struct LeaseBlob {
    name: BlobName,
    action: Action,
    conditions: Conditions,
}

/// The current blob, and the outcome for its lease.
pub struct Checked {
    generation: Generation,
    blob: BlobRecord,
    done: Done,
}

impl Write for LeaseBlob {
    type Checked = Checked;
    type Output = LeaseOutcome;

    fn parse(call: &Call) -> Result<Self, StorageError> {
        Ok(LeaseBlob {
            name: BlobName::of_write(call)?,
            action: leasing::action(call)?,
            conditions: Conditions::of_write(&call.headers)?,
        })
    }

    fn check(&self, view: &dyn View, stamp: &Stamp) -> Result<Checked, StorageError> {
        let Found { container, blob } = self.name.find(view, stamp.now)?;
        self.conditions.check_write((&blob).into())?;
        // "While a copy is pending, any lease operation on the destination fails": "Copy Blob".
        guard::check_settled(&blob)?;
        let done = act(Leased::Blob, blob.lease, self.action, stamp.now)?;
        Ok(Checked {
            generation: container.generation,
            blob,
            done,
        })
    }

    fn apply(
        self,
        checked: Checked,
        tx: &mut Transaction<'_>,
        _: &Stamp,
    ) -> Result<LeaseOutcome, StorageError> {
        let mut blob = checked.blob;
        blob.lease = checked.done.state;
        blob.save(tx, self.name.key(checked.generation))?;
        Ok(LeaseOutcome {
            action: self.action,
            done: checked.done,
            etag: blob.etag,
            last_modified: blob.last_modified,
        })
    }

    fn render(outcome: LeaseOutcome, call: &Call) -> Result<Reply, StorageError> {
        Ok(leasing::render(&outcome, call.version))
    }
}
