//! The history of each message of a queue, from the requests that the service executed.

use smalt::Exchange;
use smalt_protocol::Timestamp;
use smalt_protocol::xml::read_queue_message;

use super::Work;
use super::blind::path_of;
use crate::scenario::history::element;

/// The messages of one queue, in the order of Put Message.
#[derive(Clone, Debug, PartialEq)]
pub struct Messages {
    queue: String,
    all: Vec<Message>,
    /// Texts of messages kept in other queues.
    kept: Vec<String>,
}

/// One message.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// Message id.
    pub id: String,
    /// Current text.
    pub text: String,
    /// Time of Put Message.
    pub put_at: Timestamp,
    /// Expiry time.
    pub expires_at: Timestamp,
    /// How the message ended; `None` while it is in the queue, visible or not.
    pub ended: Option<Ended>,
}

/// How a message ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// By Delete Message, at this time.
    Deleted(Timestamp),
    /// By Clear Messages or Delete Queue, at this time.
    Swept(Timestamp),
    /// By its time to live, at this time.
    Expired(Timestamp),
}

impl Messages {
    pub(super) fn of(history: &[Exchange], queue: &str, now: Timestamp) -> Self {
        let mut messages = Messages {
            queue: queue.to_owned(),
            all: Vec::new(),
            kept: Vec::new(),
        };
        for exchange in history {
            if exchange.response.status().is_success() {
                messages.executed(exchange);
            }
        }
        messages.expire(now);
        messages
    }

    fn executed(&mut self, exchange: &Exchange) {
        let path = path_of(exchange);
        let (queue, rest) = path.split_once('/').unwrap_or((&path, ""));
        if queue != self.queue {
            return;
        }
        let id = rest.strip_prefix("messages/").unwrap_or_default();
        match exchange.operation {
            Some("Messages_Enqueue") => self.put(exchange),
            Some("MessageId_Update") => {
                if let (Some(message), Ok(text)) = (
                    self.standing(id),
                    read_queue_message(exchange.request.body()),
                ) {
                    message.text = text;
                }
            }
            Some("MessageId_Delete") => {
                if let Some(message) = self.standing(id) {
                    message.ended = Some(Ended::Deleted(exchange.at));
                }
            }
            Some("Messages_Clear" | "Queue_Delete") => {
                self.expire(exchange.at);
                for message in self.all.iter_mut().filter(|m| m.ended.is_none()) {
                    message.ended = Some(Ended::Swept(exchange.at));
                }
            }
            _ => {}
        }
    }

    fn put(&mut self, exchange: &Exchange) {
        let answer = String::from_utf8_lossy(exchange.response.body()).into_owned();
        let text = |name| element(&answer, name).unwrap_or_default();
        self.all.push(Message {
            id: text("MessageId").to_owned(),
            text: read_queue_message(exchange.request.body()).unwrap_or_default(),
            put_at: exchange.at,
            expires_at: Timestamp::parse_rfc1123(text("ExpirationTime")).unwrap_or(Timestamp::MAX),
            ended: None,
        });
    }

    fn standing(&mut self, id: &str) -> Option<&mut Message> {
        self.all
            .iter_mut()
            .find(|m| m.id == id && m.ended.is_none())
    }

    fn expire(&mut self, now: Timestamp) {
        for message in self.all.iter_mut().filter(|m| m.expires_at <= now) {
            message
                .ended
                .get_or_insert(Ended::Expired(message.expires_at));
        }
    }

    /// Returns all messages.
    pub fn all(&self) -> &[Message] {
        &self.all
    }

    /// Returns the messages that are in the queue now.
    pub fn standing_now(&self) -> impl Iterator<Item = &Message> {
        self.all.iter().filter(|message| message.ended.is_none())
    }

    /// Also counts a message as kept while its text occurs in a message of `other`: a poison queue,
    /// or the queue of a later step.
    #[must_use]
    pub fn or_kept_in(mut self, other: &Messages) -> Self {
        let texts = other.standing_now().map(|message| message.text.clone());
        self.kept.extend(texts);
        self
    }

    /// Asserts that each message was done before it ended, or is in the queue, or is kept
    /// elsewhere.
    ///
    /// # Panics
    /// With the history of each message for which this does not hold.
    #[track_caller]
    pub fn assert_none_lost(&self, work: &Work) {
        let lost: Vec<String> = self.all.iter().filter_map(|m| self.lost(m, work)).collect();
        if !lost.is_empty() {
            super::fail(format!(
                "{} of {} messages of the queue {} were lost:\n{}",
                lost.len(),
                self.all.len(),
                self.queue,
                lost.join("\n")
            ));
        }
    }

    /// Describes in one line how a message was lost.
    fn lost(&self, message: &Message, work: &Work) -> Option<String> {
        let (how, at) = match message.ended? {
            Ended::Deleted(at) => ("was deleted", at),
            Ended::Swept(at) => ("was deleted by Clear Messages or Delete Queue", at),
            Ended::Expired(at) => ("expired", at),
        };
        let done = work.done_at(&message.text);
        if done.is_some_and(|done| done <= at) || self.is_kept(&message.text) {
            return None;
        }
        let when = match done {
            Some(done) => format!("before it was done at {done}"),
            None => "and was never done".to_owned(),
        };
        let Message {
            id, text, put_at, ..
        } = message;
        Some(format!(
            "  {text:?} ({id}), put at {put_at}, {how} at {at} {when}"
        ))
    }

    fn is_kept(&self, text: &str) -> bool {
        self.kept.iter().any(|kept| kept.contains(text))
    }
}
