//! Planned faults: what tests ask the service to do wrong, and an account of what fired.
//!
//! A rule names an operation, which calls of it, and a resource; [`Faults::plan`] decides before a
//! request runs. *Answer lost after commit* runs the request and cuts the connection instead of
//! answering: the first fault to test a client with.

use std::time::Duration;

use http::Response;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use smalt_protocol::{ErrorCode, StorageError};

use crate::body::Body;
use crate::call::Call;
pub use crate::rules::pending_copy::Hold;

/// No answer: a fault rule cut the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the connection was cut by a fault rule")]
pub struct ConnectionLost;

/// What goes wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Fault {
    /// The answer comes this much later.
    Latency {
        /// Delay in milliseconds, on the runtime's time.
        delay_ms: u64,
    },
    /// The request is refused before it runs.
    Refuse {
        /// 500 or 503.
        status: u16,
        /// `Retry-After`, in seconds.
        #[serde(default)]
        retry_after_s: Option<u64>,
    },
    /// The connection is cut before the request runs.
    Reset,
    /// The request runs, and the connection is cut instead of answering.
    AnswerLost,
    /// The answer's body is cut after this many bytes.
    CutBody {
        /// Bytes that still arrive.
        after_bytes: u64,
    },
    /// A Copy Blob that would be done at once is pending for a while, on the emulator's clock.
    PendingCopy(Hold),
}

/// When it goes wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Operation id of the register (`BlockBlob_Upload`), or `*`.
    #[serde(default = "any")]
    pub operation: String,
    /// Path that the request must start with, as sent; empty for any.
    #[serde(default)]
    pub resource: String,
    /// First matching call that fires, counted from 1.
    #[serde(default = "one")]
    pub nth: u64,
    /// How many matching calls fire from there on.
    #[serde(default = "one")]
    pub times: u64,
    /// What happens.
    pub fault: Fault,
}

/// A rule with its account.
#[derive(Clone, Debug, Serialize)]
pub struct Account {
    /// The rule.
    pub rule: Rule,
    /// Calls that matched.
    pub seen: u64,
    /// Calls that it fired for.
    pub fired: u64,
}

fn any() -> String {
    "*".to_owned()
}

fn one() -> u64 {
    1
}

/// The rules of one emulator.
#[derive(Debug, Default)]
pub struct Faults(Mutex<Vec<Account>>);

/// What a fault made of a request before it ran.
#[derive(Debug)]
pub enum Faulted {
    /// Nothing: it runs.
    No,
    /// It is refused.
    Refused(StorageError),
    /// Cuts the connection.
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

    /// Every rule with its account.
    pub fn account(&self) -> Vec<Account> {
        self.0.lock().clone()
    }

    /// The fault of this call: the first rule that fires. Every rule that matches counts it.
    pub fn plan(&self, operation: &str, call: &Call) -> Option<Plan> {
        self.first(operation, call, |fault| {
            !matches!(fault, Fault::PendingCopy(_))
        })
    }

    /// How a copy is held pending whose source may be read. Only such copies count.
    pub fn hold(&self, operation: &str, call: &Call) -> Option<Hold> {
        let plan = self.first(operation, call, |fault| {
            matches!(fault, Fault::PendingCopy(_))
        });
        match plan {
            Some(Plan(Fault::PendingCopy(hold))) => Some(hold),
            _ => None,
        }
    }

    fn first(&self, operation: &str, call: &Call, is_wanted: fn(&Fault) -> bool) -> Option<Plan> {
        let mut rules = self.0.lock();
        let mut plan = None;
        let matching =
            |a: &&mut Account| is_wanted(&a.rule.fault) && a.rule.matches(operation, call);
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
    fn matches(&self, operation: &str, call: &Call) -> bool {
        (self.operation == "*" || self.operation == operation)
            && call.target.raw_path.starts_with(&self.resource)
    }
}

impl Plan {
    /// What happens before the request runs.
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
            Fault::AnswerLost | Fault::CutBody { .. } | Fault::PendingCopy(_) => Faulted::No,
        }
    }

    /// Whether the answer is sent whole.
    pub fn delivers(&self) -> bool {
        !matches!(self.0, Fault::AnswerLost | Fault::CutBody { .. })
    }

    /// What happens to the answer.
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
