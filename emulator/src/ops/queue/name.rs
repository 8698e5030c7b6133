//! Names and look-up of the queue that a request addresses.

use smalt_protocol::{ErrorCode, StorageError, names};

use crate::call::Call;
use crate::keys;
use crate::records::{QueueRecord, Record};
use crate::store::View;

/// The valid name of a queue, with its account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueName {
    /// The account's name.
    pub account: String,
    /// The queue's name.
    pub queue: String,
}

impl QueueName {
    /// Returns the queue that a call addresses, directly or through its messages.
    pub fn of(call: &Call) -> Result<Self, StorageError> {
        names::validate_queue_name(call.queue())?;
        Ok(QueueName {
            account: call.account().to_owned(),
            queue: call.queue().to_owned(),
        })
    }

    /// Returns the key of the queue's record.
    pub fn key(&self) -> Vec<u8> {
        keys::queue(&self.account, &self.queue)
    }

    /// Loads the record, even of a deleted queue.
    pub fn load(&self, view: &dyn View) -> Result<Option<QueueRecord>, StorageError> {
        Ok(QueueRecord::load(view, &self.key())?)
    }

    /// Loads the queue, or fails with 404 `QueueNotFound`.
    pub fn find(&self, view: &dyn View) -> Result<QueueRecord, StorageError> {
        let found = self.load(view)?.filter(|queue| queue.deleted_at.is_none());
        Ok(found.ok_or(ErrorCode::QueueNotFound)?)
    }
}
