//! The event that wakes a listener: `{"queue": "orders", "account": "acct"}` (L32).
//!
//! Names are compared as Azure compares them, ignoring case on both sides (DL21). A sender sends
//! the event after its last message (DL19): an event sent before the first message may find the
//! queue still empty, and the listener asleep again when the messages arrive. A lost event costs
//! only latency, because the watchdog still looks (DL18).

use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Length of the longest event that is accepted.
pub const EVENT_MAX_BYTES: usize = 4096;

/// The event. Unknown members are allowed and ignored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trigger {
    /// Queue that messages were put into.
    #[serde(alias = "QueueName")]
    pub queue: String,
    /// Account of the queue; `None` for any account.
    #[serde(
        default,
        alias = "StorageAccount",
        skip_serializing_if = "Option::is_none"
    )]
    pub account: Option<String>,
    /// Name of the event: that of [`When::event`], or one that the application chooses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<String>,
    /// Approximate number of messages in the queue, hidden ones included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub depth: Option<u64>,
    /// Length of the body that was put, in bytes.
    #[serde(
        default,
        alias = "PayloadSize",
        skip_serializing_if = "Option::is_none"
    )]
    pub payload_size: Option<u64>,
}

/// When a sender publishes an event about the message that it puts (L3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum When {
    /// For every message.
    Each,
    /// For a message into an empty queue.
    #[default]
    First,
    /// When the queue reaches this depth.
    Depth(u64),
}

impl When {
    /// Returns the event to publish for a put, if any. `before` is the queue's depth before the
    /// put, `last` the depth at the sender's previous look; `None` if unknown. An event too many
    /// costs a few requests and one too few the watchdog's interval, so doubts publish.
    pub fn event(self, before: Option<u64>, last: Option<u64>) -> Option<&'static str> {
        let reaches =
            |depth: Option<u64>, most: u64| depth.is_none_or(|n| n.saturating_add(1) >= most);
        match self {
            When::Each => Some("put"),
            When::First => before.is_none_or(|depth| depth == 0).then_some("first"),
            When::Depth(most) => {
                let was_below = last.is_none_or(|_| !reaches(last, most));
                (reaches(before, most) && was_below).then_some("depth")
            }
        }
    }

    /// Returns whether the depth decides, which costs a request.
    pub fn asks_depth(self) -> bool {
        self != When::Each
    }
}

impl FromStr for When {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "each" => Ok(When::Each),
            "first" => Ok(When::First),
            number => match number.parse() {
                Ok(depth) if depth > 0 => Ok(When::Depth(depth)),
                _ => Err(format!("`{text}` is not each, first or a depth from 1")),
            },
        }
    }
}

impl Trigger {
    /// Creates an event about a queue of any account.
    pub fn about(queue: &str) -> Self {
        Trigger {
            queue: queue.to_owned(),
            ..Trigger::default()
        }
    }

    /// Parses an event.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.len() > EVENT_MAX_BYTES {
            return Err(format!("an event may have at most {EVENT_MAX_BYTES} bytes"));
        }
        serde_json::from_str(text)
            .map_err(|error| format!("expected {{\"queue\": \"NAME\"}}: {error}"))
    }

    /// Returns whether the event is about this account.
    pub fn is_about(&self, account: &str) -> bool {
        let named = self.account.as_deref();
        named.is_none_or(|named| named.trim().eq_ignore_ascii_case(account))
    }

    /// Returns the queue's name in lower case, as Azure has it.
    pub fn queue(&self) -> String {
        self.queue.trim().to_ascii_lowercase()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// DL21: `InputQueue` on one side and `inputqueue` on the other are one queue.
    #[test]
    fn dl21_names_are_normalised() {
        let event = Trigger::parse(r#"{"queue":" Orders ","account":"ACCT","PayloadSize":3}"#);
        let event = event.unwrap();
        assert_eq!(
            (event.queue(), event.payload_size),
            ("orders".to_owned(), Some(3))
        );
        assert!(event.is_about("acct"));
        assert!(!event.is_about("other"));
        assert!(Trigger::parse(r#"{"queue":"q"}"#).unwrap().is_about("any"));
    }

    /// L32: the article's event.
    #[test]
    fn l32_the_articles_names_are_read() {
        let event = r#"{"StorageAccount":"acct","QueueName":"InputQueue","PayloadSize":42}"#;
        let event = Trigger::parse(event).unwrap();
        assert!(event.is_about("ACCT") && event.queue() == "inputqueue");
        assert_eq!(event.payload_size, Some(42));
    }

    /// L3: each message, the first into an empty queue, a depth that is reached.
    #[test]
    fn l3_events_by_message_by_emptiness_and_by_depth() {
        for (when, before, last, event) in [
            (When::Each, Some(7), Some(6), Some("put")),
            (When::First, Some(0), Some(9), Some("first")),
            (When::First, Some(1), Some(0), None),
            (When::First, None, Some(5), Some("first")),
            (When::Depth(10), Some(8), Some(7), None),
            (When::Depth(10), Some(9), Some(8), Some("depth")),
            (When::Depth(10), Some(30), Some(8), Some("depth")),
            (When::Depth(10), Some(10), Some(9), None),
            (When::Depth(10), Some(30), None, Some("depth")),
            (When::Depth(10), None, Some(8), Some("depth")),
            (When::Depth(1), Some(u64::MAX), None, Some("depth")),
        ] {
            assert_eq!(
                when.event(before, last),
                event,
                "{when:?} {before:?} {last:?}"
            );
        }
        assert_eq!("12".parse(), Ok(When::Depth(12)));
        assert!("0".parse::<When>().is_err() && "often".parse::<When>().is_err());
    }

    #[test]
    fn invalid_events_are_rejected() {
        for text in ["", "[]", "{}", r#"{"queue":7}"#, "orders"] {
            assert!(Trigger::parse(text).is_err(), "{text}");
        }
        let frame_bytes = r#"{"queue":""}"#.len();
        for (bytes, is_event) in [(EVENT_MAX_BYTES, true), (EVENT_MAX_BYTES + 1, false)] {
            let long = format!(r#"{{"queue":"{}"}}"#, "x".repeat(bytes - frame_bytes));
            assert_eq!(
                (long.len(), Trigger::parse(&long).is_ok()),
                (bytes, is_event)
            );
        }
    }
}
