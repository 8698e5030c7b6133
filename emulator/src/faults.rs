//! Fault rules, with which tests make the service fail, and counts of the calls that they affected.
//!
//! A rule names an operation, a resource, and the calls to affect; [`Faults::plan`] decides before
//! a request runs. *Answer lost after commit* runs the request and cuts the connection instead of
//! answering: the first fault to test a client with.

use std::time::Duration;

use http::Response;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use smalt_protocol::{ErrorCode, StorageError};

use crate::body::Body;
use crate::call::Call;
pub use crate::rules::pending_copy::Hold;

/// A fault rule cut the connection before the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a fault rule cut the connection")]
pub struct ConnectionLost;

/// The kind of a fault.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Fault {
    /// Delays the response.
    Latency {
        /// Delay in milliseconds, on the runtime's time.
        delay_ms: u64,
    },
    /// Refuses the request before it runs.
    Refuse {
        /// HTTP status, 500 or 503.
        status: u16,
        /// `Retry-After`, in seconds.
        #[serde(default)]
        retry_after_s: Option<u64>,
    },
    /// Cuts the connection before the request runs.
    Reset,
    /// Runs the request, then cuts the connection instead of answering.
    AnswerLost,
    /// Cuts the response body after this many bytes.
    CutBody {
        /// Number of bytes that are still sent.
        after_bytes: u64,
    },
    /// Forgets an event instead of delivering it. For `Events_Deliver`, as the next two.
    EventDrop,
    /// Delivers an event twice.
    EventDuplicate,
    /// Delivers an event later.
    EventDelay {
        /// Delay in seconds, on the emulator's clock.
        delay_s: u64,
        /// Whether later events of the blob are delivered meanwhile.
        #[serde(default)]
        overtaken: bool,
    },
    /// Keeps a Copy Blob pending that would complete at once, on the emulator's clock.
    PendingCopy(Hold),
}

/// The operation that fault rules name for the delivery of an event. The resource is then the path
/// of the blob.
pub const EVENTS_DELIVER: &str = "Events_Deliver";

/// The fault of the delivery of one event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventFault {
    /// The event is forgotten.
    Drop,
    /// The event is delivered twice.
    Duplicate,
    /// The event is delivered later.
    Delay {
        /// Delay in seconds.
        delay_s: u64,
        /// Whether later events of the blob are delivered meanwhile.
        overtaken: bool,
    },
}

impl Fault {
    /// Returns whether the fault is one of a delivery of an event.
    pub const fn is_of_events(&self) -> bool {
        matches!(
            self,
            Fault::EventDrop | Fault::EventDuplicate | Fault::EventDelay { .. }
        )
    }
}

/// A fault, and the calls that it affects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Operation id of the register (`BlockBlob_Upload`), or `*`.
    #[serde(default = "any")]
    pub operation: String,
    /// Prefix of the request path as sent; empty for any path.
    #[serde(default)]
    pub resource: String,
    /// First matching call to affect, counted from 1.
    #[serde(default = "one")]
    pub nth: u64,
    /// Number of matching calls to affect from there on.
    #[serde(default = "one")]
    pub times: u64,
    /// The fault to cause.
    pub fault: Fault,
}

/// A rule with the number of its calls.
#[derive(Clone, Debug, Serialize)]
pub struct Account {
    /// The rule as it was added.
    pub rule: Rule,
    /// Number of calls that matched.
    pub seen: u64,
    /// Number of calls that the rule affected.
    pub fired: u64,
}

fn any() -> String {
    "*".to_owned()
}

fn one() -> u64 {
    1
}

/// The fault rules of one emulator.
#[derive(Debug, Default)]
pub struct Faults(Mutex<Vec<Account>>);

/// The effect of a fault before the request runs.
#[derive(Debug)]
pub enum Faulted {
    /// The request runs.
    No,
    /// The request is refused with this error.
    Refused(StorageError),
    /// The connection is cut.
    Lost,
}

/// The fault of one request.
#[derive(Clone, Debug)]
pub struct Plan(Fault);

impl Faults {
    /// Adds a rule.
    pub fn add(&self, rule: Rule) {
        self.0.lock().push(Account {
            rule,
            seen: 0,
            fired: 0,
        });
    }

    /// Removes every rule.
    pub fn clear(&self) {
        self.0.lock().clear();
    }

    /// Returns every rule with its counts.
    pub fn account(&self) -> Vec<Account> {
        self.0.lock().clone()
    }

    /// Returns the fault of the first rule that fires for this call. Every matching rule counts the
    /// call.
    pub fn plan(&self, operation: &str, call: &Call) -> Option<Plan> {
        self.first(operation, &call.target.raw_path, |fault| {
            !matches!(fault, Fault::PendingCopy(_)) && !fault.is_of_events()
        })
    }

    /// Returns how long to keep a copy pending. Call it only for copies whose source is readable,
    /// so that the rules count only those.
    pub fn hold(&self, operation: &str, call: &Call) -> Option<Hold> {
        let plan = self.first(operation, &call.target.raw_path, |fault| {
            matches!(fault, Fault::PendingCopy(_))
        });
        match plan {
            Some(Plan(Fault::PendingCopy(hold))) => Some(hold),
            _ => None,
        }
    }

    /// Returns the fault of delivering an event of the blob at `path`.
    pub fn event(&self, path: &str) -> Option<EventFault> {
        let plan = self.first(EVENTS_DELIVER, path, Fault::is_of_events)?;
        match plan.0 {
            Fault::EventDrop => Some(EventFault::Drop),
            Fault::EventDuplicate => Some(EventFault::Duplicate),
            Fault::EventDelay { delay_s, overtaken } => {
                Some(EventFault::Delay { delay_s, overtaken })
            }
            _ => None,
        }
    }

    fn first(&self, operation: &str, path: &str, is_wanted: fn(&Fault) -> bool) -> Option<Plan> {
        let mut rules = self.0.lock();
        let mut plan = None;
        let matching =
            |a: &&mut Account| is_wanted(&a.rule.fault) && a.rule.matches(operation, path);
        for account in rules.iter_mut().filter(matching) {
            account.seen += 1;
            let first = account.rule.nth.max(1);
            let fires = account.seen >= first && account.seen - first < account.rule.times;
            if fires && plan.is_none() {
                account.fired += 1;
                plan = Some(Plan(account.rule.fault.clone()));
            }
        }
        plan
    }
}

impl Rule {
    fn matches(&self, operation: &str, path: &str) -> bool {
        (self.operation == "*" || self.operation == operation) && path.starts_with(&self.resource)
    }
}

impl Plan {
    /// Applies the fault before the request runs; waits for a delay.
    pub async fn before(&self) -> Faulted {
        match &self.0 {
            Fault::Latency { delay_ms } => {
                tokio::time::sleep(Duration::from_millis(*delay_ms)).await;
                Faulted::No
            }
            Fault::Refuse {
                status,
                retry_after_s,
            } => {
                let code = match status {
                    503 => ErrorCode::ServerBusy,
                    _ => ErrorCode::InternalError,
                };
                let error = StorageError::new(code).with_status(*status);
                Faulted::Refused(match retry_after_s {
                    Some(seconds) => error.with_header("retry-after", &seconds.to_string()),
                    None => error,
                })
            }
            Fault::Reset => Faulted::Lost,
            Fault::AnswerLost
            | Fault::CutBody { .. }
            | Fault::PendingCopy(_)
            | Fault::EventDrop
            | Fault::EventDuplicate
            | Fault::EventDelay { .. } => Faulted::No,
        }
    }

    /// Returns whether the whole response is sent.
    pub fn delivers(&self) -> bool {
        !matches!(self.0, Fault::AnswerLost | Fault::CutBody { .. })
    }

    /// Applies the fault to the response.
    pub fn after(self, response: Response<Body>) -> Result<Response<Body>, ConnectionLost> {
        match self.0 {
            Fault::AnswerLost => Err(ConnectionLost),
            Fault::CutBody { after_bytes } => {
                Ok(response.map(|b| crate::body::cut(b, after_bytes)))
            }
            _ => Ok(response),
        }
    }
}
