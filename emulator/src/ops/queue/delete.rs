//! Delete Queue: the queue and every message in it, at once whatever their number.
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
use crate::keys;
use crate::operation::Write;
use crate::ops::queue::name::QueueName;
use crate::records::QueueRecord;
use crate::reply::Reply;
use crate::store::{Stamp, Transaction, View};

/// Delete Queue.
pub struct DeleteQueue {
    name: QueueName,
}

impl Write for DeleteQueue {
    type Checked = QueueRecord;
    type Output = ();

    fn parse(call: &Call) -> Result<Self, StorageError> {
        Ok(DeleteQueue {
            name: QueueName::of(call)?,
        })
    }

    fn check(&self, view: &dyn View, _: &Stamp) -> Result<QueueRecord, StorageError> {
        self.name.find(view)
    }

    fn apply(
        self,
        queue: QueueRecord,
        tx: &mut Transaction<'_>,
        _: &Stamp,
    ) -> Result<(), StorageError> {
        tx.delete(self.name.key());
        tx.put(keys::garbage(queue.generation), Vec::new());
        Ok(())
    }

    fn render((): (), _: &Call) -> Result<Reply, StorageError> {
        Ok(Reply::new(204))
    }
}
