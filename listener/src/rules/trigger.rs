//! The event that wakes a listener: `{"queue": "orders", "account": "acct"}` (L32).
//!
//! Names are compared as Azure compares them, ignoring case on both sides (DL21). A sender sends
//! the event after its last message (DL19): an event sent before the first message may find the
//! queue still empty, and the listener asleep again when the messages arrive. A lost event costs
//! only latency, because the watchdog still looks (DL18).

use serde::{Deserialize, Serialize};

/// Length of the longest event that is accepted.
pub const EVENT_MAX_BYTES: usize = 4096;

/// The event. Other members, such as the payload's size, are allowed and ignored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trigger {
    /// Queue that messages were put into.
    pub queue: String,
    /// Account of the queue; `None` for any account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
}

impl Trigger {
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
        assert_eq!(event.queue(), "orders");
        assert!(event.is_about("acct"));
        assert!(!event.is_about("other"));
        assert!(Trigger::parse(r#"{"queue":"q"}"#).unwrap().is_about("any"));
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
