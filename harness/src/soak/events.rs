//! The calls of a long run, in order.

use serde::Serialize;

/// A call with its answer. Ticks count calls and answers of all clients; times are those of the
/// service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Event {
    /// Number of the client; [`DRAIN`] fetched what was left at the end.
    pub client: usize,
    /// Tick of the call.
    pub called: u64,
    /// Tick of the answer; `None` when it was lost.
    pub returned: Option<u64>,
    /// Time of the answer in milliseconds; of the call when the answer was lost.
    pub at_ms: u64,
    /// Request and answer.
    pub what: What,
}

/// Number of the client that fetches what is left.
pub const DRAIN: usize = usize::MAX;

/// A call and its answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// Put Message with a unique text.
    Put {
        /// Number of the text.
        text: u64,
        /// The message in the answer; `None` when the answer was lost.
        made: Option<Given>,
    },
    /// Get Messages.
    Got {
        /// The messages in the answer; empty when it was lost.
        messages: Vec<Given>,
    },
    /// Update Message.
    Update {
        /// Message id.
        id: String,
        /// Pop receipt that was used.
        receipt: String,
        /// Result.
        outcome: Outcome,
        /// Latest time at which it is visible again, in seconds of the Unix epoch.
        visible_s: u64,
    },
    /// Delete Message.
    Delete {
        /// Message id.
        id: String,
        /// Pop receipt that was used.
        receipt: String,
        /// Result.
        outcome: Outcome,
    },
}

/// A message in an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Given {
    /// Message id.
    pub id: String,
    /// Pop receipt.
    pub receipt: String,
    /// Number of the text.
    pub text: u64,
    /// Dequeue count, including this delivery.
    pub count: u32,
    /// Time at which it is visible again, in seconds of the Unix epoch.
    pub visible_s: u64,
}

/// Result of using a pop receipt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Deleted.
    Deleted,
    /// Updated, with the new receipt.
    Updated(String),
    /// Rejected with this error code: no such message, or another receipt.
    Refused(String),
    /// The answer was lost.
    Lost,
}

impl Event {
    /// Returns the tick after which the call is over.
    pub fn end(&self) -> u64 {
        self.returned.unwrap_or(u64::MAX)
    }
}

/// Formats a history as JSON lines.
pub fn lines(events: &[Event]) -> Result<Vec<serde_json::Value>, serde_json::Error> {
    events.iter().map(serde_json::to_value).collect()
}
