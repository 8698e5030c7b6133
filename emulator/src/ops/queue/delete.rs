//! Delete Queue: deletes a queue with all messages in one write.
//!
//! Source: "Delete Queue".
//!
//! ```http
//! DELETE /devstoreaccount1/orders
//!
//! 204 No Content
//! ```

use smalt_protocol::StorageError;

use crate::call::Call;
use crate::operation::Write;
use crate::ops::deletion::{self, Freed};
use crate::ops::queue::name::QueueName;
use crate::records::QueueRecord;
use crate::reply::Reply;
use crate::store::{Stamp, Transaction, View};

/// The Delete Queue operation.
pub struct DeleteQueue {
    name: QueueName,
    being_deleted_s: u64,
}

impl Write for DeleteQueue {
    type Checked = QueueRecord;
    type Output = ();

    fn parse(call: &Call) -> Result<Self, StorageError> {
        Ok(DeleteQueue {
            name: QueueName::of(call)?,
            being_deleted_s: call.being_deleted_s,
        })
    }

    fn check(&self, view: &dyn View, _: &Stamp) -> Result<QueueRecord, StorageError> {
        self.name.find(view)
    }

    fn apply(
        self,
        mut queue: QueueRecord,
        tx: &mut Transaction<'_>,
        stamp: &Stamp,
    ) -> Result<(), StorageError> {
        queue.deleted_at = Some(stamp.now);
        let freed = Freed {
            now: stamp.now,
            being_deleted_s: self.being_deleted_s,
        };
        let generation = queue.generation;
        deletion::delete(tx, self.name.key(), &queue, generation, freed)?;
        Ok(())
    }

    fn render((): (), _: &Call) -> Result<Reply, StorageError> {
        Ok(Reply::new(204))
    }
}
