//! What happened in a long run, one call after the other.

use serde::{Deserialize, Serialize};

/// A call with its answer. Ticks count calls and answers of all clients; times are the service's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Who called; [`DRAIN`] fetched what was left at the end.
    pub client: usize,
    /// Tick of the call.
    pub called: u64,
    /// Tick of the answer; absent: it was lost.
    pub returned: Option<u64>,
    /// Time of the answer in milliseconds; of the call when it was lost.
    pub at_ms: u64,
    /// What was asked and answered.
    pub what: What,
}

/// The client that fetches what is left.
pub const DRAIN: usize = usize::MAX;

/// A call and its answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// Put Message of a text that no other has.
    Put {
        /// Text.
        text: u64,
        /// As answered.
        made: Option<Given>,
    },
    /// Get Messages.
    Got {
        /// As answered; none when the answer was lost.
        messages: Vec<Given>,
    },
    /// Update Message.
    Update {
        /// Id.
        id: String,
        /// Receipt that was used.
        receipt: String,
        /// What came of it.
        outcome: Outcome,
        /// When it is visible again, in seconds, as asked for at the latest.
        visible_s: u64,
    },
    /// Delete Message.
    Delete {
        /// Id.
        id: String,
        /// Receipt that was used.
        receipt: String,
        /// What came of it.
        outcome: Outcome,
    },
}

/// A message in somebody's hands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Given {
    /// Id.
    pub id: String,
    /// Receipt.
    pub receipt: String,
    /// Text.
    pub text: u64,
    /// How often it was given out, this time included.
    pub count: u32,
    /// When it is visible again, in seconds of the Unix epoch.
    pub visible_s: u64,
}

/// What came of the use of a receipt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Deleted.
    Deleted,
    /// Updated: the new receipt.
    Updated(String),
    /// Refused with this code: no such message, or another receipt.
    Refused(String),
    /// Nobody knows.
    Lost,
}

impl Event {
    /// The tick after which it is over.
    pub fn end(&self) -> u64 {
        self.returned.unwrap_or(u64::MAX)
    }
}

/// The event of a saved line.
///
/// # Errors
/// When the line is none.
pub fn read(line: &str) -> Result<Event, serde_json::Error> {
    serde_json::from_str(line)
}

/// The lines of a history.
///
/// # Errors
/// Never for events as they are made here.
pub fn lines(events: &[Event]) -> Result<Vec<serde_json::Value>, serde_json::Error> {
    events.iter().map(serde_json::to_value).collect()
}
