//! Finding the queue that a request addresses.

use smalt_protocol::{ErrorCode, StorageError, names};

use crate::call::Call;
use crate::keys;
use crate::records::{QueueRecord, Record};
use crate::store::View;

/// A queue by account and name. Its name is valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueName {
    /// Account.
    pub account: String,
    /// Queue.
    pub queue: String,
}

impl QueueName {
    /// The queue that a call addresses, alone or through its messages.
    pub fn of(call: &Call) -> Result<Self, StorageError> {
        names::validate_queue_name(call.queue())?;
        Ok(QueueName {
            account: call.account().to_owned(),
            queue: call.queue().to_owned(),
        })
    }

    /// Its key.
    pub fn key(&self) -> Vec<u8> {
        keys::queue(&self.account, &self.queue)
    }

    /// The queue as it stands, deleted ones included.
    pub fn load(&self, view: &dyn View) -> Result<Option<QueueRecord>, StorageError> {
        Ok(QueueRecord::load(view, &self.key())?)
    }

    /// The queue, or 404 `QueueNotFound`.
    pub fn find(&self, view: &dyn View) -> Result<QueueRecord, StorageError> {
        let found = self.load(view)?.filter(|queue| queue.deleted_at.is_none());
        Ok(found.ok_or(ErrorCode::QueueNotFound)?)
    }
}
