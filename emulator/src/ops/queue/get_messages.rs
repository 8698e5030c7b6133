//! Get Messages: returns up to 32 messages from the front of a queue and hides them for the
//! visibility timeout.
//!
//! Source: "Get Messages".
//!
//! ```http
//! GET /devstoreaccount1/orders/messages?numofmessages=32&visibilitytimeout=60
//!
//! 200 OK
//! ```

use smalt_protocol::limits::{
    DEQUEUE_COUNT, DEQUEUE_COUNT_DEFAULT, VISIBILITY_GET_S, VISIBILITY_GET_S_BEFORE_2011,
    VISIBILITY_GET_S_DEFAULT,
};
use smalt_protocol::{ApiVersion, StorageError};

use crate::call::Call;
use crate::operation::Write;
use crate::ops::queue::messages::{self, FoundText};
use crate::ops::queue::name::QueueName;
use crate::ops::queue::parameters::seconds;
use crate::ops::queue::render::{self, ShownMessages};
use crate::records::QueueRecord;
use crate::reply::Reply;
use crate::store::{Stamp, Transaction, View};

/// The Get Messages operation.
pub struct GetMessages {
    name: QueueName,
    count: usize,
    visibility_timeout_s: u64,
}

impl Write for GetMessages {
    type Checked = QueueRecord;
    type Output = ShownMessages;

    fn parse(call: &Call) -> Result<Self, StorageError> {
        let range = if call.version < ApiVersion::V2011_08_18 {
            VISIBILITY_GET_S_BEFORE_2011
        } else {
            VISIBILITY_GET_S
        };
        let count = seconds(call, "numofmessages", DEQUEUE_COUNT)?.unwrap_or(DEQUEUE_COUNT_DEFAULT);
        let timeout_s =
            seconds(call, "visibilitytimeout", range)?.unwrap_or(VISIBILITY_GET_S_DEFAULT);
        Ok(GetMessages {
            name: QueueName::of(call)?,
            count: count.unsigned_abs() as usize,
            visibility_timeout_s: timeout_s.unsigned_abs(),
        })
    }

    fn check(&self, view: &dyn View, _: &Stamp) -> Result<QueueRecord, StorageError> {
        self.name.find(view)
    }

    fn apply(
        self,
        queue: QueueRecord,
        tx: &mut Transaction<'_>,
        stamp: &Stamp,
    ) -> Result<Self::Output, StorageError> {
        messages::reap(tx, queue.generation, stamp.now)?;
        let found = messages::visible(tx, queue.generation, stamp.now, self.count)?;
        let visible = stamp.now.plus_s(self.visibility_timeout_s);
        let mut taken = Vec::with_capacity(found.len());
        for mut message in found {
            message.record.dequeue_count = message.record.dequeue_count.saturating_add(1);
            message.record.receipt = stamp.tick.ticks();
            // Use the message's sequence, which is unique, as its place: places counted on from the
            // tick would collide for messages of two gets at the same tick.
            let place = message.record.sequence;
            message.move_to(tx, queue.generation, visible, place)?;
            let text = FoundText::locate(tx, &message.record.text)?;
            taken.push((message, text));
        }
        Ok(ShownMessages::of(&queue, taken))
    }

    fn render(taken: ShownMessages, call: &Call) -> Result<Reply, StorageError> {
        render::taken(&taken, call)
    }
}
