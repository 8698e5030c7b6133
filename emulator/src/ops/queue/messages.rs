//! Messages and their two orders: delivery and expiry.
//!
//! A queue maps id to message, (visible at, place) to id and (expires at, sequence) to id. Every
//! operation accesses a message by its id, or the head of an order: none scans the queue.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::ControlFlow;

use bytes::Bytes;
use smalt_protocol::{ErrorCode, StorageError, Timestamp};
use uuid::Uuid;

use crate::keys::{self, Generation};
use crate::operation::Received;
use crate::records::{MessageRecord, MessageText, Record};
use crate::store::{
    INLINE_BYTES_MAX, Payload, Staged, StoreResult, Transaction, View, adopt, location, release,
};

/// Maximum number of expired messages that one operation removes.
const REAPED_MAX: usize = 1_000;
/// Maximum number of expired messages that a count skips.
const EXPIRED_COUNTED_MAX: u64 = 5_000;
/// Maximum number of messages that a scan visits for each one wanted; the rest are looked up one by
/// one.
const SCANNED_PER_MESSAGE_MAX: usize = 2;

/// A message with its id.
#[derive(Clone, Debug)]
pub struct Message {
    /// The message id.
    pub id: Uuid,
    /// Everything else.
    pub record: MessageRecord,
}

impl Message {
    /// Loads a message, unless it has expired.
    pub fn load(
        view: &dyn View,
        generation: Generation,
        id: Uuid,
        now: Timestamp,
    ) -> StoreResult<Option<Self>> {
        let record = MessageRecord::load(view, &keys::message(generation, id.as_bytes()))?;
        Ok(Self::living(id, record, now))
    }

    fn living(id: Uuid, record: Option<MessageRecord>, now: Timestamp) -> Option<Self> {
        record
            .filter(|record| now < record.expires)
            .map(|record| Message { id, record })
    }

    /// Returns the message with this id and receipt.
    ///
    /// # Errors
    /// 404 `MessageNotFound` when there is none, 400 `PopReceiptMismatch` when a newer receipt was
    /// issued.
    pub fn find(
        view: &dyn View,
        generation: Generation,
        id: Option<Uuid>,
        receipt: u64,
        now: Timestamp,
    ) -> Result<Self, StorageError> {
        let id = id.ok_or(ErrorCode::MessageNotFound)?;
        let found = Self::load(view, generation, id, now)?.ok_or(ErrorCode::MessageNotFound)?;
        if found.record.receipt == receipt {
            Ok(found)
        } else {
            Err(ErrorCode::PopReceiptMismatch.into())
        }
    }

    /// Adds a new message and counts it.
    pub fn insert(&self, tx: &mut Transaction<'_>, generation: Generation) -> StoreResult<()> {
        self.place(tx, generation)?;
        if self.record.expires < Timestamp::MAX {
            let key = keys::expiry(generation, self.record.expires, self.record.sequence);
            tx.put(key, self.id.as_bytes().to_vec());
        }
        set_count(tx, generation, count(tx, generation)?.saturating_add(1));
        Ok(())
    }

    /// Moves the message to another place in delivery order.
    pub fn move_to(
        &mut self,
        tx: &mut Transaction<'_>,
        generation: Generation,
        visible: Timestamp,
        place: u64,
    ) -> StoreResult<()> {
        tx.delete(keys::visible(
            generation,
            self.record.visible,
            self.record.place,
        ));
        self.record.visible = visible;
        self.record.place = place;
        self.place(tx, generation)
    }

    fn place(&self, tx: &mut Transaction<'_>, generation: Generation) -> StoreResult<()> {
        let order = keys::visible(generation, self.record.visible, self.record.place);
        tx.put(order, self.id.as_bytes().to_vec());
        self.record
            .save(tx, keys::message(generation, self.id.as_bytes()))
    }

    /// Removes the message, its places in both orders and its text, and counts it out.
    pub fn remove(self, tx: &mut Transaction<'_>, generation: Generation) -> StoreResult<()> {
        tx.delete(keys::message(generation, self.id.as_bytes()));
        tx.delete(keys::visible(
            generation,
            self.record.visible,
            self.record.place,
        ));
        tx.delete(keys::expiry(
            generation,
            self.record.expires,
            self.record.sequence,
        ));
        if let MessageText::Payload(payload, _) = self.record.text {
            release(tx, payload)?;
        }
        set_count(tx, generation, count(tx, generation)?.saturating_sub(1));
        Ok(())
    }
}

/// Returns up to `most` visible messages in delivery order.
pub fn visible(
    view: &dyn View,
    generation: Generation,
    now: Timestamp,
    most: usize,
) -> StoreResult<Vec<Message>> {
    let from = keys::visible(generation, Timestamp::MIN, 0);
    let to = keys::visible(generation, now.plus_ticks(1), 0);
    let mut found = Vec::with_capacity(most);
    let mut from = Some(from);
    while let Some(begin) = from.take() {
        let mut ids = Vec::with_capacity(most);
        view.scan(&begin, &to, &mut |place, id| {
            ids.extend(uuid(id));
            if found.len() + ids.len() < most {
                return ControlFlow::Continue(());
            }
            // Some may have expired without being removed: then continue from here.
            from = Some([place, &[0]].concat());
            ControlFlow::Break(())
        })?;
        found.extend(load_all(view, generation, &ids, now)?);
        from = from.filter(|_| found.len() < most);
    }
    Ok(found)
}

/// Returns the messages with these ids that have not expired, in the order of `ids`.
///
/// Messages that were put at one time are adjacent, as ids increase with it: one scan finds them
/// all, and the others are looked up one by one.
fn load_all(
    view: &dyn View,
    generation: Generation,
    ids: &[Uuid],
    now: Timestamp,
) -> StoreResult<Vec<Message>> {
    let (Some(first), Some(last)) = (ids.iter().min(), ids.iter().max()) else {
        return Ok(Vec::new());
    };
    let mut records = BTreeMap::new();
    let from = keys::message(generation, first.as_bytes());
    let to = match first == last {
        // A single id is looked up alone.
        true => from.clone(),
        false => keys::after(keys::message(generation, last.as_bytes())),
    };
    let mut left = ids.len() * SCANNED_PER_MESSAGE_MAX;
    view.scan(&from, &to, &mut |key, value| {
        records.insert(key.to_vec(), value.clone());
        left -= 1;
        match left {
            0 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    })?;
    let mut found = Vec::with_capacity(ids.len());
    for id in ids {
        let key = keys::message(generation, id.as_bytes());
        let record = match records.get(&key) {
            Some(value) => Some(MessageRecord::decode(value)?),
            None => MessageRecord::load(view, &key)?,
        };
        found.extend(Message::living(*id, record, now));
    }
    Ok(found)
}

/// Removes some expired messages, so that they do not accumulate at the head of an order.
pub fn reap(
    tx: &mut Transaction<'_>,
    generation: Generation,
    now: Timestamp,
) -> StoreResult<usize> {
    let from = keys::expiry(generation, Timestamp::MIN, 0);
    let to = keys::expiry(generation, now.plus_ticks(1), 0);
    let mut ids = Vec::new();
    tx.scan(&from, &to, &mut |_, id| {
        ids.extend(uuid(id));
        if ids.len() < REAPED_MAX {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    })?;
    for id in &ids {
        let key = keys::message(generation, id.as_bytes());
        if let Some(record) = MessageRecord::load(tx, &key)? {
            Message { id: *id, record }.remove(tx, generation)?;
        }
    }
    Ok(ids.len())
}

/// Returns the number of messages without those known to be expired.
pub fn approximate_count(
    view: &dyn View,
    generation: Generation,
    now: Timestamp,
) -> StoreResult<u64> {
    let from = keys::expiry(generation, Timestamp::MIN, 0);
    let to = keys::expiry(generation, now.plus_ticks(1), 0);
    let mut expired = 0;
    view.scan(&from, &to, &mut |_, _| {
        expired += 1;
        if expired < EXPIRED_COUNTED_MAX {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    })?;
    Ok(count(view, generation)?.saturating_sub(expired))
}

fn count(view: &dyn View, generation: Generation) -> StoreResult<u64> {
    let value = view.get(&keys::message_count(generation))?;
    Ok(value
        .and_then(|v| v.as_ref().try_into().ok())
        .map_or(0, u64::from_be_bytes))
}

fn set_count(tx: &mut Transaction<'_>, generation: Generation, count: u64) {
    tx.put(
        keys::message_count(generation),
        count.to_be_bytes().to_vec(),
    );
}

fn uuid(bytes: &[u8]) -> Option<Uuid> {
    Uuid::from_slice(bytes).ok()
}

/// The text of a new message.
#[derive(Debug)]
pub enum NewText {
    /// Short enough for the message's record.
    Inline(String),
    /// A staged payload, and its length.
    Staged(Staged, u32),
}

/// Texts up to this many bytes are stored in the message's record.
pub const TEXT_INLINE_BYTES_MAX: usize = INLINE_BYTES_MAX - 512;

impl NewText {
    /// Takes the text out if it is too large for the record.
    pub fn spill(&mut self) -> Option<Bytes> {
        match self {
            NewText::Inline(text) if text.len() > TEXT_INLINE_BYTES_MAX => {
                Some(std::mem::take(text).into())
            }
            _ => None,
        }
    }

    /// Creates the text from a staged payload.
    pub fn staged(received: Received) -> Self {
        let length = u32::try_from(received.length).unwrap_or(u32::MAX);
        NewText::Staged(received.staged, length)
    }

    /// Moves the text into the store.
    pub fn adopt(self, tx: &mut Transaction<'_>) -> StoreResult<MessageText> {
        Ok(match self {
            NewText::Inline(text) => MessageText::Inline(text),
            NewText::Staged(staged, length) => MessageText::Payload(adopt(tx, staged)?, length),
        })
    }
}

/// The location of a message's text.
#[derive(Clone, Debug)]
pub enum FoundText {
    /// In the record.
    Inline(String),
    /// In a payload that is kept alive.
    Payload(Payload),
}

impl FoundText {
    /// Locates a text.
    pub fn locate(view: &dyn View, text: &MessageText) -> StoreResult<Self> {
        Ok(match text {
            MessageText::Inline(text) => FoundText::Inline(text.clone()),
            MessageText::Payload(id, _) => FoundText::Payload(location(view, *id)?),
        })
    }

    /// Reads the text.
    pub fn read(&self) -> Result<Cow<'_, str>, StorageError> {
        match self {
            FoundText::Inline(text) => Ok(text.into()),
            FoundText::Payload(payload) => {
                let bytes = payload.reader(0..payload.len()).read_all()?;
                let text = String::from_utf8(bytes.into()).map_err(StorageError::internal)?;
                Ok(text.into())
            }
        }
    }
}
