//! One queue: messages with the time from which each is visible and the receipt that works.
//!
//! The service promises no order of messages. smalt gives them out in the order in which they
//! became visible, and so does the model: the order is part of what is checked here.

use smalt_model::vocabulary::{MessageId, Metadata, Operation, QueueOperation, Receipt};
use smalt_protocol::ErrorCode;

use super::output::{Message as Shown, Output};
use super::value::{Taken, Value};
use super::{Done, Refused, hash_of, same, step};
use crate::bursts::linear::Spec;

/// How long a message lives that was given no time, in seconds.
const TTL_S: u64 = 7 * 24 * 60 * 60;

/// A queue, or the place of one, at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Queue {
    now_s: u64,
    there: Option<Messages>,
    /// Ids and receipts that cannot be those of an unseen one.
    taken: (Taken, Taken),
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Messages {
    metadata: Metadata,
    /// In the order of puts; an update counts as one.
    order: Vec<Message>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Message {
    id: Value,
    receipt: Value,
    text: String,
    dequeue_count: u32,
    visible_s: u64,
    expires_s: Option<u64>,
    /// Place in the order of puts; a message that was given out has this one again.
    put: usize,
    place: usize,
}

/// A message but for its places.
type Apart<'a> = (Value, Value, &'a str, u32, u64, Option<u64>);

/// What an operation answers when it is done.
enum Told {
    Status(u16),
    Properties,
    /// Messages at these places, with what an answer of its kind shows.
    Messages(u16, Vec<usize>, Shows),
    /// The receipt of the message at this place.
    Receipt(usize),
}

/// What is shown of a message.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shows {
    Put,
    Received,
    Peeked,
}

impl Queue {
    /// No queue; ids and receipts of these numbers were made by calls whose answers show it.
    pub fn absent(now_s: u64, messages: Taken, receipts: Taken) -> Self {
        Queue {
            now_s,
            there: None,
            taken: (messages, receipts),
        }
    }

    fn here(&mut self) -> Result<&mut Messages, Refused> {
        self.there.as_mut().ok_or(ErrorCode::QueueNotFound.into())
    }

    fn act(&mut self, operation: &QueueOperation) -> Result<Told, Refused> {
        let now_s = self.now_s;
        match operation {
            QueueOperation::Create(metadata) => return self.create(metadata),
            QueueOperation::Delete => {
                self.here()?;
                self.there = None;
            }
            QueueOperation::Get => {
                self.here()?;
                return Ok(Told::Properties);
            }
            QueueOperation::SetMetadata(metadata) => self.here()?.metadata.clone_from(metadata),
            QueueOperation::Clear => self.here()?.order.clear(),
            QueueOperation::Put {
                text,
                ttl_s,
                visibility_timeout_s,
            } => {
                let visible_s = now_s + visibility_timeout_s;
                let life_s = ttl_s.map_or(Some(TTL_S), |ttl_s| u64::try_from(ttl_s).ok());
                return Ok(self
                    .here()?
                    .put(text, visible_s, life_s.map(|life_s| now_s + life_s)));
            }
            QueueOperation::Receive {
                most,
                visibility_timeout_s,
            } => return Ok(self.here()?.receive(*most, now_s, *visibility_timeout_s)),
            QueueOperation::Peek { most } => {
                let head = self.here()?.head(*most, now_s);
                return Ok(Told::Messages(200, head, Shows::Peeked));
            }
            QueueOperation::Update {
                id,
                receipt,
                visibility_timeout_s,
                text,
            } => {
                let visible_s = now_s + visibility_timeout_s;
                return self
                    .here()?
                    .update((*id, *receipt), visible_s, text.as_deref());
            }
            QueueOperation::DeleteMessage { id, receipt } => {
                let here = self.here()?;
                let at = here.find((*id, *receipt))?;
                here.order.remove(at);
            }
        }
        Ok(Told::Status(204))
    }

    fn create(&mut self, metadata: &Metadata) -> Result<Told, Refused> {
        match &self.there {
            Some(there) if there.metadata == *metadata => Ok(Told::Status(204)),
            Some(_) => Err(ErrorCode::QueueAlreadyExists.into()),
            None => {
                self.there = Some(Messages {
                    metadata: metadata.clone(),
                    order: Vec::new(),
                });
                Ok(Told::Status(201))
            }
        }
    }

    /// Compares what is shown beside status and code.
    fn compare(&mut self, told: Told, seen: &Output) -> Result<(), String> {
        let Some(here) = &mut self.there else {
            return Ok(());
        };
        match told {
            Told::Status(_) => Ok(()),
            Told::Properties => {
                let count = Some(here.order.len().to_string());
                same("count", &count, &seen.count)?;
                same("metadata", &Some(&here.metadata), &seen.metadata.as_ref())
            }
            Told::Receipt(at) => {
                let shown = seen.receipt.ok_or("no receipt")?;
                let judged = here.order[at].receipt.see(shown, &mut self.taken.1);
                judged.map_err(|reason| format!("receipt: {reason}"))
            }
            Told::Messages(_, places, shows) => {
                let shown = seen.messages.as_deref().ok_or("no messages")?;
                same("number of messages", &places.len(), &shown.len())?;
                let mut pairs = places.iter().zip(shown);
                pairs.try_for_each(|(at, shown)| {
                    here.order[*at].compare(shown, shows, &mut self.taken)
                })
            }
        }
    }

    /// What was made by an operation whose answer was seen is what the answer shows.
    fn take_made(&mut self, told: &Told, seen: &Output) -> Result<(), String> {
        let Some(here) = &mut self.there else {
            return Ok(());
        };
        match told {
            Told::Messages(_, places, shows) if *shows != Shows::Peeked => {
                let shown = seen.messages.as_deref().unwrap_or_default();
                for (at, shown) in places.iter().zip(shown) {
                    let message = &mut here.order[*at];
                    message.receipt = Value::made(false, shown.receipt)?;
                    if *shows == Shows::Put {
                        message.id = Value::Seen(shown.id);
                    }
                }
                Ok(())
            }
            Told::Receipt(at) => {
                here.order[*at].receipt = Value::made(false, seen.receipt)?;
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

impl Messages {
    /// Visible messages from the head, as places.
    fn head(&self, most: u32, now_s: u64) -> Vec<usize> {
        let visible = (0..self.order.len()).filter(|at| self.order[*at].visible_s <= now_s);
        let mut head: Vec<usize> = visible.collect();
        head.sort_by_key(|at| (self.order[*at].visible_s, self.order[*at].place));
        head.truncate(most as usize);
        head
    }

    /// What tells states apart: visible messages in the order in which they are given out, the
    /// others in none. Time stands still, and Get Messages hides for a second at least: a hidden
    /// message is seen again by an update alone, which gives it another place.
    fn told_apart(&self, now_s: u64) -> (Vec<Apart<'_>>, Vec<Apart<'_>>) {
        let visible = self.head(u32::MAX, now_s);
        let visible = visible.into_iter().map(|at| self.order[at].told_apart());
        let hidden = self
            .order
            .iter()
            .filter(|message| message.visible_s > now_s);
        let mut hidden: Vec<Apart<'_>> = hidden.map(Message::told_apart).collect();
        hidden.sort_unstable();
        (visible.collect(), hidden)
    }

    fn find(&self, (id, receipt): (MessageId, Receipt)) -> Result<usize, Refused> {
        let at = self.order.iter().position(|message| message.id.is(id.0));
        let at = at.ok_or(ErrorCode::MessageNotFound)?;
        match self.order[at].receipt.is(receipt.0) {
            true => Ok(at),
            false => Err(ErrorCode::PopReceiptMismatch.into()),
        }
    }

    /// A place behind all others.
    fn next_place(&self) -> usize {
        let places = self
            .order
            .iter()
            .map(|message| message.place.max(message.put));
        places.max().map_or(0, |last| last + 1)
    }

    fn put(&mut self, text: &str, visible_s: u64, expires_s: Option<u64>) -> Told {
        let place = self.next_place();
        self.order.push(Message {
            id: Value::Unseen,
            receipt: Value::Unseen,
            text: text.to_owned(),
            dequeue_count: 0,
            visible_s,
            expires_s,
            put: place,
            place,
        });
        Told::Messages(201, vec![self.order.len() - 1], Shows::Put)
    }

    fn receive(&mut self, most: u32, now_s: u64, hidden_s: u64) -> Told {
        let head = self.head(most, now_s);
        for at in &head {
            let message = &mut self.order[*at];
            message.receipt = Value::Unseen;
            message.dequeue_count += 1;
            message.visible_s = now_s + hidden_s;
            message.place = message.put;
        }
        Told::Messages(200, head, Shows::Received)
    }

    fn update(
        &mut self,
        which: (MessageId, Receipt),
        visible_s: u64,
        text: Option<&str>,
    ) -> Result<Told, Refused> {
        let at = self.find(which)?;
        let place = self.next_place();
        let message = &mut self.order[at];
        if message.expires_s.is_some_and(|end_s| visible_s > end_s) {
            return Err(ErrorCode::OutOfRangeQueryParameterValue.into());
        }
        message.receipt = Value::Unseen;
        message.visible_s = visible_s;
        message.place = place;
        if let Some(text) = text {
            text.clone_into(&mut message.text);
        }
        Ok(Told::Receipt(at))
    }
}

impl Message {
    fn told_apart(&self) -> Apart<'_> {
        let (id, receipt, text) = (self.id, self.receipt, self.text.as_str());
        (
            id,
            receipt,
            text,
            self.dequeue_count,
            self.visible_s,
            self.expires_s,
        )
    }

    fn compare(
        &mut self,
        shown: &Shown,
        shows: Shows,
        taken: &mut (Taken, Taken),
    ) -> Result<(), String> {
        let judged = self.id.see(shown.id, &mut taken.0);
        judged.map_err(|reason| format!("message id: {reason}"))?;
        if shows != Shows::Put {
            same("text", &Some(&self.text), &shown.text.as_ref())?;
            same(
                "dequeue count",
                &Some(self.dequeue_count),
                &shown.dequeue_count,
            )?;
        }
        if shows == Shows::Peeked {
            return same("receipt of a peek", &None, &shown.receipt);
        }
        same("time next visible", &Some(self.visible_s), &shown.visible_s)
    }
}

impl Done for Told {
    fn status(&self) -> u16 {
        match self {
            Told::Status(status) | Told::Messages(status, ..) => *status,
            Told::Properties => 200,
            Told::Receipt(_) => 204,
        }
    }
}

impl Spec for Queue {
    type Output = Output;

    fn step(&self, operation: &Operation, seen: Option<&Output>) -> Result<Self, String> {
        let Operation::Queue(_, operation) = operation else {
            return Err("this is no operation on a queue".to_owned());
        };
        let act = |after: &mut Self| after.act(operation);
        step(self, seen, act, |after, told, seen| {
            after.take_made(&told, seen)?;
            after.compare(told, seen)
        })
    }

    fn fingerprint(&self) -> u64 {
        let there = self.there.as_ref();
        let there = there.map(|there| (&there.metadata, there.told_apart(self.now_s)));
        hash_of(&(there, &self.taken))
    }
}
