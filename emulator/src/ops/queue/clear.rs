//! Clear Messages: removes all messages of a queue, including hidden ones, in one write.
//!
//! Source: "Clear Messages". The queue gets a new generation; `maintain` removes the old one.
//!
//! ```http
//! DELETE /devstoreaccount1/orders/messages
//!
//! 204 No Content
//! ```

use smalt_protocol::StorageError;

use crate::call::Call;
use crate::keys;
use crate::operation::Write;
use crate::ops::queue::name::QueueName;
use crate::records::{GarbageRecord, QueueRecord, Record};
use crate::reply::Reply;
use crate::store::{Stamp, Transaction, View};

/// The Clear Messages operation.
pub struct ClearMessages {
    name: QueueName,
}

impl Write for ClearMessages {
    type Checked = QueueRecord;
    type Output = ();

    fn parse(call: &Call) -> Result<Self, StorageError> {
        Ok(ClearMessages {
            name: QueueName::of(call)?,
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
        GarbageRecord::default().save(tx, keys::garbage(queue.generation))?;
        queue.generation = stamp.tick.ticks();
        queue.save(tx, self.name.key())?;
        Ok(())
    }

    fn render((): (), _: &Call) -> Result<Reply, StorageError> {
        Ok(Reply::new(204))
    }
}
