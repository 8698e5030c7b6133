//! Put Message: adds a message to the back of a queue.
//!
//! Source: "Put Message". The record comes back since 2016-05-31; before, the body is empty.
//!
//! ```http
//! POST /devstoreaccount1/orders/messages?messagettl=3600
//!
//! <QueueMessage><MessageText>hello</MessageText></QueueMessage>
//!
//! 201 Created
//! ```

use bytes::Bytes;
use smalt_protocol::limits::{
    MESSAGE_BODY_BYTES_MAX, MESSAGE_TTL_INFINITE, MESSAGE_TTL_S, MESSAGE_TTL_S_BEFORE_2017,
    MESSAGE_TTL_S_DEFAULT, VISIBILITY_PUT_S,
};
use smalt_protocol::xml::read_queue_message;
use smalt_protocol::{ApiVersion, StorageError, Timestamp};
use uuid::Uuid;

use crate::call::Call;
use crate::operation::{Received, Takes, Write};
use crate::ops::queue::messages::{Message, NewText};
use crate::ops::queue::name::QueueName;
use crate::ops::queue::parameters::{check_text, seconds};
use crate::ops::queue::render;
use crate::records::{MessageRecord, QueueRecord};
use crate::reply::Reply;
use crate::store::{Stamp, Transaction, View};

/// Put Message.
pub struct PutMessage {
    name: QueueName,
    id: Uuid,
    version: ApiVersion,
    ttl_s: i64,
    visibility_timeout_s: i64,
    /// Whether it takes any place among the messages of its moment.
    shuffled: bool,
    text: NewText,
}

impl Write for PutMessage {
    type Checked = QueueRecord;
    type Output = Message;

    fn parse(call: &Call) -> Result<Self, StorageError> {
        let ttl_s = time_to_live_s(call)?;
        let visibility_timeout_s =
            seconds(call, "visibilitytimeout", VISIBILITY_PUT_S)?.unwrap_or(0);
        // "The visibility timeout of a message cannot be set to a value later than the expiry."
        if ttl_s != MESSAGE_TTL_INFINITE && visibility_timeout_s >= ttl_s {
            let value = visibility_timeout_s.to_string();
            let reason = "messagettl must be greater than visibilitytimeout.";
            return Err(StorageError::invalid_query(
                "visibilitytimeout",
                &value,
                reason,
            ));
        }
        Ok(PutMessage {
            name: QueueName::of(call)?,
            id: call.fresh_id,
            version: call.version,
            ttl_s,
            visibility_timeout_s,
            shuffled: call.shuffle_messages,
            text: NewText::Inline(String::new()),
        })
    }

    fn takes(&self) -> Takes {
        Takes::Document {
            most: MESSAGE_BODY_BYTES_MAX,
        }
    }

    fn document(&mut self, document: Bytes) -> Result<(), StorageError> {
        let text = read_queue_message(&document)?;
        check_text(&text, self.version)?;
        self.text = NewText::Inline(text);
        Ok(())
    }

    fn spill(&mut self) -> Option<Bytes> {
        self.text.spill()
    }

    fn payload(&mut self, received: Received) -> Result<(), StorageError> {
        self.text = NewText::staged(received);
        Ok(())
    }

    fn check(&self, view: &dyn View, _: &Stamp) -> Result<QueueRecord, StorageError> {
        self.name.find(view)
    }

    fn apply(
        self,
        queue: QueueRecord,
        tx: &mut Transaction<'_>,
        stamp: &Stamp,
    ) -> Result<Message, StorageError> {
        let expires = match self.ttl_s {
            MESSAGE_TTL_INFINITE => Timestamp::MAX,
            ttl_s => stamp.now.plus_s(ttl_s.unsigned_abs()),
        };
        let tick = stamp.tick.ticks();
        let sequence = if self.shuffled {
            // Random, and as unlikely to be there twice as the id is.
            self.id.as_u64_pair().0
        } else {
            tick
        };
        let message = Message {
            id: self.id,
            record: MessageRecord {
                inserted: stamp.now,
                expires,
                visible: stamp.now.plus_s(self.visibility_timeout_s.unsigned_abs()),
                sequence,
                place: sequence,
                receipt: tick,
                dequeue_count: 0,
                text: self.text.adopt(tx)?,
            },
        };
        message.insert(tx, queue.generation)?;
        Ok(message)
    }

    fn render(message: Message, call: &Call) -> Result<Reply, StorageError> {
        if call.version < ApiVersion::V2016_05_31 {
            return Ok(Reply::new(201));
        }
        Ok(render::put(&message, call))
    }
}

fn time_to_live_s(call: &Call) -> Result<i64, StorageError> {
    let name = "messagettl";
    if call.version < ApiVersion::V2017_07_29 {
        return Ok(seconds(call, name, MESSAGE_TTL_S_BEFORE_2017)?.unwrap_or(MESSAGE_TTL_S_DEFAULT));
    }
    match call.query(name) {
        Some("-1") => Ok(MESSAGE_TTL_INFINITE),
        _ => Ok(seconds(call, name, MESSAGE_TTL_S)?.unwrap_or(MESSAGE_TTL_S_DEFAULT)),
    }
}
