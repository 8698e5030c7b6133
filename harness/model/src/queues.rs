//! Queues and messages. Source: "Operations on Queues", "Operations on Messages".

use std::collections::BTreeMap;

use smalt_protocol::{ErrorCode, Service};

use crate::expected::{Answer, Expected, Fact, Refusal, Shown};
use crate::state::{Message, Model, Queue};
use crate::vocabulary::{MessageId, Metadata, Receipt};

/// Default time to live of a message, in seconds.
const TTL_S: u64 = 7 * 24 * 60 * 60;

/// Id, receipt, text, dequeue count, times of insertion, expiration and next visibility.
pub(crate) type Apart<'a> = (MessageId, Receipt, &'a str, u32, (u64, Option<u64>, u64));

impl Message {
    pub(crate) fn is_alive(&self, now_s: u64) -> bool {
        self.expires_s.is_none_or(|expires_s| now_s < expires_s)
    }

    fn shown(&self, id: MessageId) -> Shown {
        Shown {
            id,
            receipt: Some(self.receipt),
            text: Some(self.text.to_string()),
            dequeue_count: Some(self.dequeue_count),
            inserted_s: self.inserted_s,
            expires_s: self.expires_s,
            visible_s: Some(self.visible_s),
        }
    }
}

impl Queue {
    /// Returns the messages with their pop receipts.
    pub(crate) fn receipts(&self) -> Vec<(MessageId, Receipt)> {
        let messages = self.messages.iter();
        messages
            .map(|(id, message)| (*id, message.receipt))
            .collect()
    }

    /// Returns visible messages from the head of the queue.
    fn head(&self, most: u32, now_s: u64) -> Vec<MessageId> {
        let visible = self
            .messages
            .iter()
            .filter(|(_, message)| message.is_alive(now_s) && message.visible_s <= now_s);
        let mut ordered: Vec<_> = visible
            .map(|(id, message)| (message.visible_s, message.place, *id))
            .collect();
        ordered.sort_unstable();
        let head = ordered.into_iter().take(most as usize);
        head.map(|(_, _, id)| id).collect()
    }

    /// Returns what distinguishes queues while time stands still: visible messages in the order of
    /// delivery, and hidden ones in no order. Get Messages hides for at least a second, so a hidden
    /// message becomes visible only by an update, which gives it a new position.
    pub(crate) fn told_apart(&self, now_s: u64) -> [Vec<Apart<'_>>; 2] {
        let apart = |id: MessageId| {
            let message = &self.messages[&id];
            let times = (message.inserted_s, message.expires_s, message.visible_s);
            (
                id,
                message.receipt,
                &*message.text,
                message.dequeue_count,
                times,
            )
        };
        let visible = self.head(u32::MAX, now_s);
        let hidden = self.messages.keys().filter(|id| !visible.contains(id));
        let hidden = hidden.map(|id| apart(*id)).collect();
        [visible.iter().map(|id| apart(*id)).collect(), hidden]
    }

    /// Returns the message with this id and receipt.
    fn message(
        &mut self,
        id: MessageId,
        receipt: Receipt,
        now_s: u64,
    ) -> Result<&mut Message, Refusal> {
        let found = self.messages.get_mut(&id);
        let found = found.filter(|message| message.is_alive(now_s));
        match found {
            None => Err(ErrorCode::MessageNotFound.into()),
            Some(message) if message.receipt == receipt => Ok(message),
            Some(_) => Err(ErrorCode::PopReceiptMismatch.into()),
        }
    }
}

impl Model {
    /// Returns the queue with this name, or 404 `QueueNotFound`.
    pub(crate) fn find_queue(&mut self, name: &str) -> Result<&mut Queue, Refusal> {
        let found = self.queues.get_mut(name);
        found.ok_or(ErrorCode::QueueNotFound.into())
    }

    pub(crate) fn delete_queue(&mut self, name: &str) -> Answer {
        let found = self.queues.remove(name);
        found.ok_or(ErrorCode::QueueNotFound)?;
        self.forget_policy(Service::Queue, name);
        Ok(Expected::ok(204))
    }

    pub(crate) fn get_queue(&mut self, name: &str) -> Answer {
        let now_s = self.now_s;
        let queue = self.find_queue(name)?;
        let alive = queue.messages.values().filter(|m| m.is_alive(now_s));
        let count = Some(alive.count().to_string());
        Ok(Expected::ok(200)
            .with(Fact::Header("x-ms-approximate-messages-count", count))
            .with(Fact::Metadata(queue.metadata.clone())))
    }

    pub(crate) fn peek(&mut self, name: &str, most: u32) -> Answer {
        let now_s = self.now_s;
        let queue = self.find_queue(name)?;
        let shown = queue.head(most, now_s).into_iter().map(|id| Shown {
            receipt: None,
            visible_s: None,
            ..queue.messages[&id].shown(id)
        });
        Ok(Expected::ok(200).with(Fact::Messages(shown.collect())))
    }

    pub(crate) fn delete_message(&mut self, name: &str, id: MessageId, by: Receipt) -> Answer {
        let now_s = self.now_s;
        let queue = self.find_queue(name)?;
        queue.message(id, by, now_s)?;
        queue.messages.remove(&id);
        Ok(Expected::ok(204))
    }

    pub(crate) fn create_queue(&mut self, name: &str, metadata: &Metadata) -> Answer {
        match self.queues.get(name) {
            Some(queue) if queue.metadata == *metadata => Ok(Expected::ok(204)),
            Some(_) => Err(ErrorCode::QueueAlreadyExists.into()),
            None => {
                let queue = Queue {
                    metadata: metadata.clone(),
                    messages: BTreeMap::new(),
                };
                self.queues.insert(name.to_owned(), queue);
                Ok(Expected::ok(201))
            }
        }
    }

    pub(crate) fn put_message(
        &mut self,
        name: &str,
        text: &str,
        ttl_s: Option<i64>,
        visibility_timeout_s: u64,
    ) -> Answer {
        let now_s = self.now_s;
        let lives_s = match ttl_s {
            None => Some(TTL_S),
            // -1: the message does not expire.
            Some(ttl_s) => u64::try_from(ttl_s).ok(),
        };
        // "The visibility timeout of a message cannot be set to a value later than the expiry
        // time." The service checks this before it looks up the queue.
        if lives_s.is_some_and(|lives_s| visibility_timeout_s >= lives_s) {
            return Err(ErrorCode::InvalidQueryParameterValue.into());
        }
        let sequence = self.numbers.place();
        let message = Message {
            text: text.into(),
            receipt: self.numbers.receipt(),
            dequeue_count: 0,
            inserted_s: now_s,
            expires_s: lives_s.map(|lives_s| now_s + lives_s),
            visible_s: now_s + visibility_timeout_s,
            sequence,
            place: sequence,
        };
        let id = self.numbers.message();
        let shown = Shown {
            text: None,
            dequeue_count: None,
            ..message.shown(id)
        };
        let queue = self.find_queue(name)?;
        queue.messages.insert(id, message);
        Ok(Expected::ok(201).with(Fact::Messages(vec![shown])))
    }

    pub(crate) fn receive(&mut self, name: &str, most: u32, visibility_timeout_s: u64) -> Answer {
        let now_s = self.now_s;
        let queue = self.queues.get_mut(name).ok_or(ErrorCode::QueueNotFound)?;
        // Recorded: the messages of one answer share one receipt, which is valid for each of them.
        let receipt = self.numbers.receipt();
        let mut shown = Vec::new();
        for id in queue.head(most, now_s) {
            if let Some(message) = queue.messages.get_mut(&id) {
                message.receipt = receipt;
                message.place = message.sequence;
                message.dequeue_count += 1;
                message.visible_s = now_s + visibility_timeout_s;
                shown.push(message.shown(id));
            }
        }
        Ok(Expected::ok(200).with(Fact::Messages(shown)))
    }

    pub(crate) fn update(
        &mut self,
        name: &str,
        id: MessageId,
        receipt: Receipt,
        visibility_timeout_s: u64,
        text: Option<&str>,
    ) -> Answer {
        let now_s = self.now_s;
        let queue = self.queues.get_mut(name).ok_or(ErrorCode::QueueNotFound)?;
        let message = queue.message(id, receipt, now_s)?;
        let visible_s = now_s + visibility_timeout_s;
        // "The new value cannot be later than the expiry time of the message."
        if message.expires_s.is_some_and(|end_s| visible_s > end_s) {
            return Err(ErrorCode::OutOfRangeQueryParameterValue.into());
        }
        message.receipt = self.numbers.receipt();
        message.place = self.numbers.place();
        message.visible_s = visible_s;
        if let Some(text) = text {
            message.text = text.into();
        }
        Ok(Expected::ok(204).with(Fact::Receipt(message.receipt)))
    }
}
