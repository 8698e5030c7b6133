//! Peek Messages: returns up to 32 visible messages without hiding them.
//!
//! Source: "Peek Messages".
//!
//! ```http
//! GET /devstoreaccount1/orders/messages?peekonly=true
//!
//! 200 OK
//! ```

use smalt_protocol::limits::{DEQUEUE_COUNT, DEQUEUE_COUNT_DEFAULT};
use smalt_protocol::{StorageError, Timestamp};

use crate::call::Call;
use crate::operation::Read;
use crate::ops::queue::messages::{self, FoundText};
use crate::ops::queue::name::QueueName;
use crate::ops::queue::parameters::seconds;
use crate::ops::queue::render::{self, ShownMessages};
use crate::reply::Reply;
use crate::store::{Store, View};

/// The Peek Messages operation.
pub struct PeekMessages {
    name: QueueName,
    count: usize,
}

impl Read for PeekMessages {
    type Output = ShownMessages;

    fn parse(call: &Call) -> Result<Self, StorageError> {
        let count = seconds(call, "numofmessages", DEQUEUE_COUNT)?.unwrap_or(DEQUEUE_COUNT_DEFAULT);
        Ok(PeekMessages {
            name: QueueName::of(call)?,
            count: count.unsigned_abs() as usize,
        })
    }

    fn read(&self, view: &dyn View, now: Timestamp) -> Result<Self::Output, StorageError> {
        let queue = self.name.find(view)?;
        let found = messages::visible(view, queue.generation, now, self.count)?;
        let located = found.into_iter().map(|message| {
            let text = FoundText::locate(view, &message.record.text)?;
            Ok((message, text))
        });
        let messages = located.collect::<Result<_, StorageError>>()?;
        Ok(ShownMessages::of(&queue, messages))
    }

    fn render(self, found: ShownMessages, call: &Call, _: &Store) -> Result<Reply, StorageError> {
        render::peeked(&found, call)
    }
}
