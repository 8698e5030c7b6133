//! Get Queue Metadata and Set Queue Metadata.
//!
//! Sources: "Get Queue Metadata", "Set Queue Metadata". Set replaces all metadata.
//!
//! ```http
//! GET /devstoreaccount1/orders?comp=metadata
//!
//! 200 OK
//! x-ms-approximate-messages-count: 17
//! x-ms-meta-team: billing
//! ```

use smalt_protocol::{Metadata, StorageError, Timestamp};

use crate::call::Call;
use crate::operation::{Read, Write};
use crate::ops::queue::messages;
use crate::ops::queue::name::QueueName;
use crate::records::{QueueRecord, Record};
use crate::reply::Reply;
use crate::store::{Stamp, Store, Transaction, View};

/// The Get Queue Metadata operation.
pub struct GetQueueMetadata {
    name: QueueName,
}

impl Read for GetQueueMetadata {
    type Output = (Metadata, u64);

    fn parse(call: &Call) -> Result<Self, StorageError> {
        Ok(GetQueueMetadata {
            name: QueueName::of(call)?,
        })
    }

    fn read(&self, view: &dyn View, now: Timestamp) -> Result<(Metadata, u64), StorageError> {
        let queue = self.name.find(view)?;
        let count = messages::approximate_count(view, queue.generation, now)?;
        Ok((queue.metadata, count))
    }

    fn render(
        self,
        (metadata, count): (Metadata, u64),
        _: &Call,
        _: &Store,
    ) -> Result<Reply, StorageError> {
        let reply = Reply::new(200)
            .header("cache-control", "no-cache")
            .header("x-ms-approximate-messages-count", count.to_string());
        Ok(reply.metadata(&metadata))
    }
}

/// The Set Queue Metadata operation.
pub struct SetQueueMetadata {
    name: QueueName,
    metadata: Metadata,
}

impl Write for SetQueueMetadata {
    type Checked = QueueRecord;
    type Output = ();

    fn parse(call: &Call) -> Result<Self, StorageError> {
        Ok(SetQueueMetadata {
            name: QueueName::of(call)?,
            metadata: call.metadata()?,
        })
    }

    fn check(&self, view: &dyn View, _: &Stamp) -> Result<QueueRecord, StorageError> {
        self.name.find(view)
    }

    fn apply(
        self,
        mut queue: QueueRecord,
        tx: &mut Transaction<'_>,
        _: &Stamp,
    ) -> Result<(), StorageError> {
        queue.metadata = self.metadata;
        queue.save(tx, self.name.key())?;
        Ok(())
    }

    fn render((): (), _: &Call) -> Result<Reply, StorageError> {
        Ok(Reply::new(204))
    }
}
