//! Update Message: sets the visibility timeout of a message and optionally its text.
//!
//! Source: "Update Message". The receipt changes; dequeue count and expiry do not.
//!
//! ```http
//! PUT /devstoreaccount1/orders/messages/{id}?popreceipt=AgAAAAMAAAA...&visibilitytimeout=30
//!
//! 204 No Content
//! x-ms-popreceipt: AwAAAAMAAAA...
//! ```

use bytes::Bytes;
use smalt_protocol::limits::{MESSAGE_BODY_BYTES_MAX, VISIBILITY_PUT_S};
use smalt_protocol::xml::read_queue_message;
use smalt_protocol::{ApiVersion, StorageError};
use uuid::Uuid;

use crate::call::Call;
use crate::keys::Generation;
use crate::operation::{Received, Takes, Write};
use crate::ops::queue::messages::{Message, NewText};
use crate::ops::queue::name::QueueName;
use crate::ops::queue::parameters::{check_length, message_id, pop_receipt, seconds};
use crate::ops::queue::receipt;
use crate::records::MessageText;
use crate::reply::Reply;
use crate::store::{Stamp, Transaction, View, release};

/// The Update Message operation.
pub struct UpdateMessage {
    name: QueueName,
    id: Option<Uuid>,
    receipt: u64,
    version: ApiVersion,
    visibility_timeout_s: u64,
    text: Option<NewText>,
}

impl Write for UpdateMessage {
    type Checked = (Generation, Message);
    type Output = Message;

    fn parse(call: &Call) -> Result<Self, StorageError> {
        let name = "visibilitytimeout";
        let timeout_s = seconds(call, name, VISIBILITY_PUT_S)?
            .ok_or_else(|| StorageError::missing_query(name))?;
        Ok(UpdateMessage {
            name: QueueName::of(call)?,
            id: message_id(call),
            receipt: pop_receipt(call)?,
            version: call.version,
            visibility_timeout_s: timeout_s.unsigned_abs(),
            text: None,
        })
    }

    fn takes(&self) -> Takes {
        Takes::Document(MESSAGE_BODY_BYTES_MAX)
    }

    fn document(&mut self, document: Bytes) -> Result<(), StorageError> {
        if !document.is_empty() {
            let text = read_queue_message(&document)?;
            check_length(text.len(), self.version)?;
            self.text = Some(NewText::Inline(text));
        }
        Ok(())
    }

    fn spill(&mut self) -> Option<Bytes> {
        self.text.as_mut()?.spill()
    }

    fn payload(&mut self, received: Received) -> Result<(), StorageError> {
        self.text = Some(NewText::staged(received));
        Ok(())
    }

    fn check(&self, view: &dyn View, stamp: &Stamp) -> Result<Self::Checked, StorageError> {
        let queue = self.name.find(view)?;
        let found = Message::find(view, queue.generation, self.id, self.receipt, stamp.now)?;
        // "The new value cannot be later than the expiry time of the message."
        let until = stamp.now.plus_s(self.visibility_timeout_s);
        if until > found.record.expires {
            let most = found.record.expires.since(stamp.now).as_secs();
            let value = self.visibility_timeout_s.to_string();
            return Err(StorageError::query_out_of_range(
                "visibilitytimeout",
                &value,
                0,
                i64::try_from(most).unwrap_or(i64::MAX),
            ));
        }
        Ok((queue.generation, found))
    }

    fn apply(
        self,
        (generation, mut message): Self::Checked,
        tx: &mut Transaction<'_>,
        stamp: &Stamp,
    ) -> Result<Message, StorageError> {
        if let Some(text) = self.text {
            if let MessageText::Payload(old, _) = message.record.text {
                release(tx, old)?;
            }
            message.record.text = text.adopt(tx)?;
        }
        let tick = stamp.tick.ticks();
        message.record.receipt = tick;
        message.move_to(
            tx,
            generation,
            stamp.now.plus_s(self.visibility_timeout_s),
            tick,
        )?;
        Ok(message)
    }

    fn render(message: Message, _: &Call) -> Result<Reply, StorageError> {
        Ok(Reply::new(204)
            .header("x-ms-popreceipt", receipt::updated(message.record.receipt))
            .header("x-ms-time-next-visible", message.record.visible.rfc1123()))
    }
}
