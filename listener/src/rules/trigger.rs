//! The event that wakes a listener: `{"queue": "orders", "account": "acct"}` (L32).
//!
//! Names are compared as Azure compares them, without case, on both sides (DL21). Whoever puts
//! messages sends the event after the last of them (DL19): one that is sent before the first may
//! find the queue still empty, and the listener asleep again when they come. An event that is lost
//! costs latency only: the watchdog looks anyway (DL18).

use serde::{Deserialize, Serialize};

/// Longest event that is read.
pub const EVENT_MAX_BYTES: usize = 4096;

/// The event. Other members, such as the payload's size, are allowed and not needed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trigger {
    /// Queue that messages were put into.
    pub queue: String,
    /// Account of the queue; without, any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
}

impl Trigger {
    /// Reads an event.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.len() > EVENT_MAX_BYTES {
            return Err(format!("an event has {EVENT_MAX_BYTES} bytes at most"));
        }
        serde_json::from_str(text)
            .map_err(|error| format!("write {{\"queue\": \"NAME\"}}: {error}"))
    }

    /// Whether it is about this account.
    pub fn is_about(&self, account: &str) -> bool {
        let named = self.account.as_deref();
        named.is_none_or(|named| named.trim().eq_ignore_ascii_case(account))
    }

    /// The queue's name as Azure has it.
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
        assert_eq!(event.queue(), "orders");
        assert!(event.is_about("acct"));
        assert!(!event.is_about("other"));
        assert!(Trigger::parse(r#"{"queue":"q"}"#).unwrap().is_about("any"));
    }

    #[test]
    fn what_is_no_event_is_refused() {
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
