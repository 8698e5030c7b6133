//! Create Queue: creates an empty queue, or succeeds if one with the same metadata exists.
//!
//! Source: "Create Queue".
//!
//! ```http
//! PUT /devstoreaccount1/orders
//!
//! 201 Created
//! ```

use smalt_protocol::{ApiVersion, ErrorCode, Metadata, StorageError};

use crate::call::Call;
use crate::operation::Write;
use crate::ops::queue::name::QueueName;
use crate::ops::queue::render::COUNTS_DEQUEUES;
use crate::records::{QueueRecord, Record};
use crate::reply::Reply;
use crate::store::{Stamp, Transaction, View};

/// The Create Queue operation.
pub struct CreateQueue {
    name: QueueName,
    metadata: Metadata,
    being_deleted_s: u64,
    version: ApiVersion,
}

/// Whether the queue is new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Answered with 201.
    Created,
    /// Answered with 204: a queue with the same metadata exists.
    Existed,
}

impl Write for CreateQueue {
    type Checked = Outcome;
    type Output = Outcome;

    fn parse(call: &Call) -> Result<Self, StorageError> {
        Ok(CreateQueue {
            name: QueueName::of(call)?,
            metadata: call.metadata()?,
            being_deleted_s: call.being_deleted_s,
            version: call.version,
        })
    }

    fn check(&self, view: &dyn View, stamp: &Stamp) -> Result<Outcome, StorageError> {
        let Some(queue) = self.name.load(view)? else {
            return Ok(Outcome::Created);
        };
        match queue.deleted_at {
            Some(deleted_at) if stamp.now < deleted_at.plus_s(self.being_deleted_s) => {
                Err(ErrorCode::QueueBeingDeleted.into())
            }
            Some(_) => Ok(Outcome::Created),
            None if queue.metadata.same_as(&self.metadata) => Ok(Outcome::Existed),
            None => Err(ErrorCode::QueueAlreadyExists.into()),
        }
    }

    fn apply(
        self,
        outcome: Outcome,
        tx: &mut Transaction<'_>,
        stamp: &Stamp,
    ) -> Result<Outcome, StorageError> {
        if outcome == Outcome::Created {
            let queue = QueueRecord {
                generation: stamp.tick.ticks(),
                metadata: self.metadata,
                policies: Vec::new(),
                deleted_at: None,
                uncounted: self.version < COUNTS_DEQUEUES,
            };
            queue.save(tx, self.name.key())?;
        }
        Ok(outcome)
    }

    fn render(outcome: Outcome, _: &Call) -> Result<Reply, StorageError> {
        Ok(Reply::new(match outcome {
            Outcome::Created => 201,
            Outcome::Existed => 204,
        }))
    }
}
