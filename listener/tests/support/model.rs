//! A queue as Azure's documentation describes it: receipts, visibility, expiry, dequeue counts.

use std::collections::BTreeMap;
use std::time::Duration;

use smalt_protocol::Timestamp;
use smalt_sleeve::port::{ErrorKind, Lease, MessageTtl, QueueMessage, Receipt};

/// A stored message.
#[derive(Clone, Debug)]
pub struct Stored {
    pub id: String,
    pub receipt: String,
    pub inserted: Timestamp,
    pub expires: Timestamp,
    pub visible: Timestamp,
    pub dequeue_count: u32,
    pub text: String,
}

/// Requests that one queue, and the whole account, take in a second (*Scalability and performance
/// targets for Queue Storage*).
pub const QUEUE_RATE: u32 = 2_000;
pub const ACCOUNT_RATE: u32 = 20_000;

/// Requests of the current second, by queue; those of the account are at the empty name.
#[derive(Debug, Default)]
pub struct Rates {
    second: u64,
    taken: BTreeMap<String, u32>,
}

impl Rates {
    /// Counts a request unless the second has no room for it.
    pub fn admit(&mut self, queue: &str, now: Timestamp) -> bool {
        let second = now.unix_s();
        if self.second != second {
            self.second = second;
            self.taken.clear();
        }
        let mut count = |name: &str, most| {
            let taken = self.taken.entry(name.to_owned()).or_insert(0);
            let has_room = *taken < most;
            *taken += u32::from(has_room);
            has_room
        };
        count("", ACCOUNT_RATE) && (queue.is_empty() || count(queue, QUEUE_RATE))
    }
}

/// One queue. The caller passes all times.
#[derive(Debug, Default)]
pub struct Queue {
    pub messages: Vec<Stored>,
    next: u64,
}

impl Queue {
    pub fn put(
        &mut self,
        now: Timestamp,
        text: &str,
        ttl: MessageTtl,
        hidden: Duration,
    ) -> Receipt {
        self.next += 1;
        let expires = match ttl {
            MessageTtl::Never => Timestamp::MAX,
            MessageTtl::After(life) => now.plus(life),
        };
        let message = Stored {
            id: format!("m{}", self.next),
            receipt: format!("p{}", self.next),
            inserted: now,
            expires,
            visible: now.plus(hidden),
            dequeue_count: 0,
            text: text.to_owned(),
        };
        let receipt = receipt(&message);
        self.messages.push(message);
        receipt
    }

    pub fn get(&mut self, now: Timestamp, count: u32, hidden: Duration) -> Vec<QueueMessage> {
        self.expire(now);
        let mut taken = Vec::new();
        for message in &mut self.messages {
            if taken.len() == count as usize {
                break;
            }
            if message.visible > now {
                continue;
            }
            self.next += 1;
            message.receipt = format!("g{}", self.next);
            message.visible = now.plus(hidden);
            message.dequeue_count += 1;
            taken.push(shown(message, true));
        }
        taken
    }

    pub fn peek(&mut self, now: Timestamp, count: u32) -> Vec<QueueMessage> {
        self.expire(now);
        let visible = self.messages.iter().filter(|m| m.visible <= now);
        visible
            .take(count as usize)
            .map(|m| shown(m, false))
            .collect()
    }

    pub fn update(
        &mut self,
        now: Timestamp,
        id: &str,
        held: &str,
        hidden: Duration,
        text: Option<&str>,
    ) -> Result<Receipt, ErrorKind> {
        let at = self.find(now, id, held)?;
        self.next += 1;
        let fresh = format!("u{}", self.next);
        let message = &mut self.messages[at];
        if now.plus(hidden) > message.expires {
            return Err(ErrorKind::Refused);
        }
        message.receipt = fresh;
        message.visible = now.plus(hidden);
        if let Some(text) = text {
            text.clone_into(&mut message.text);
        }
        Ok(receipt(message))
    }

    pub fn delete(&mut self, now: Timestamp, id: &str, held: &str) -> Result<(), ErrorKind> {
        let at = self.find(now, id, held)?;
        self.messages.remove(at);
        Ok(())
    }

    pub fn expire(&mut self, now: Timestamp) {
        self.messages.retain(|m| m.expires > now);
    }

    fn find(&mut self, now: Timestamp, id: &str, held: &str) -> Result<usize, ErrorKind> {
        self.expire(now);
        let at = self.messages.iter().position(|m| m.id == id);
        let at = at.ok_or(ErrorKind::NotFound)?;
        if self.messages[at].receipt == held {
            Ok(at)
        } else {
            Err(ErrorKind::ReceiptMismatch)
        }
    }
}

fn receipt(m: &Stored) -> Receipt {
    Receipt {
        id: m.id.clone(),
        pop_receipt: m.receipt.clone(),
        next_visible: m.visible,
    }
}

fn shown(m: &Stored, taken: bool) -> QueueMessage {
    QueueMessage {
        id: m.id.clone(),
        pop_receipt: if taken {
            m.receipt.clone()
        } else {
            String::new()
        },
        inserted: m.inserted,
        expires: m.expires,
        next_visible: taken.then_some(m.visible),
        dequeue_count: m.dequeue_count,
        text: m.text.clone(),
    }
}

/// A blob, of which only the lease is modelled.
#[derive(Default)]
pub struct Blob {
    lease: Option<(String, Timestamp, u32)>,
}

impl Blob {
    pub fn acquire(&mut self, now: Timestamp, id: &str, s: u32) -> Result<Lease, ErrorKind> {
        let held = self.lease.as_ref().filter(|(_, until, _)| *until > now);
        if held.is_some_and(|(holder, ..)| holder != id) {
            return Err(ErrorKind::LeaseTaken);
        }
        self.lease = Some((id.to_owned(), now.plus_s(s.into()), s));
        let (id, server_time) = (id.to_owned(), now);
        Ok(Lease { id, server_time })
    }

    pub fn renew(&mut self, now: Timestamp, id: &str) -> Result<Lease, ErrorKind> {
        match &self.lease {
            Some((holder, _, s)) if holder == id => {
                let s = *s;
                self.acquire(now, id, s)
            }
            _ => Err(ErrorKind::LeaseLost),
        }
    }

    pub fn release(&mut self, id: &str) -> Result<(), ErrorKind> {
        match &self.lease {
            Some((holder, ..)) if holder == id => {
                self.lease = None;
                Ok(())
            }
            _ => Err(ErrorKind::LeaseLost),
        }
    }
}
