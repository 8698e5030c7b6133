//! Fault rules, with which tests make the service fail, and counts of the calls that they affected.
//!
//! A rule names an operation, a resource, and the calls to affect; [`Faults::plan`] decides before
//! a request runs. *Answer lost after commit* runs the request and cuts the connection instead of
//! answering: the first fault to test a client with.

use std::collections::BTreeMap;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, Response};
use parking_lot::Mutex;
use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore as _, SeedableRng as _};
use serde::{Deserialize, Serialize};
use smalt_protocol::{ErrorCode, StorageError};

use crate::body::Body;
use crate::call::Call;
use crate::records::is_default;
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
    /// Refuses the request with an error of the service before it runs.
    Error {
        /// The code, such as `LeaseIdMissing`.
        #[serde(with = "code_name")]
        code: ErrorCode,
        /// HTTP status, 304 or 400 to 599; `None` for that of the code.
        #[serde(default)]
        status: Option<u16>,
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

/// Which calls that match a rule it affects.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct When {
    /// By name, how a header's value begins; `None` for a header that the call must not have. Other
    /// calls do not match the rule.
    #[serde(default)]
    pub headers: BTreeMap<String, Option<String>>,
    /// Probability with which a call is affected, 0 to 1.
    #[serde(default = "always")]
    pub probability: f64,
    /// Decides which calls these are: equal seeds choose equally.
    #[serde(default)]
    pub seed: u64,
}

impl Default for When {
    fn default() -> Self {
        When {
            headers: BTreeMap::new(),
            probability: always(),
            seed: 0,
        }
    }
}

/// A rule with the number of its calls.
#[derive(Clone, Debug, Serialize)]
pub struct Account {
    /// The rule as it was added.
    pub rule: Rule,
    /// Its conditions; the default affects every matching call.
    #[serde(skip_serializing_if = "is_default")]
    pub when: When,
    #[serde(skip)]
    dice: ChaCha8Rng,
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

fn always() -> f64 {
    1.0
}

/// The wire name of an error code.
mod code_name {
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};
    use smalt_protocol::ErrorCode;

    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "the signature that serde asks for"
    )]
    pub fn serialize<S: Serializer>(code: &ErrorCode, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(code.as_str())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<ErrorCode, D::Error> {
        let name = String::deserialize(from)?;
        ErrorCode::parse(&name).ok_or_else(|| D::Error::custom(format!("unknown code {name}")))
    }
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
        self.add_when(rule, When::default());
    }

    /// Adds a rule with conditions.
    pub fn add_when(&self, rule: Rule, when: When) {
        self.0.lock().push(Account {
            rule,
            dice: ChaCha8Rng::seed_from_u64(when.seed),
            when,
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
        let (path, headers) = (&call.target.raw_path, &call.headers);
        self.first(operation, path, headers, |fault| {
            !matches!(fault, Fault::PendingCopy(_)) && !fault.is_of_events()
        })
    }

    /// Returns how long to keep a copy pending. Call it only for copies whose source is readable,
    /// so that the rules count only those.
    pub fn hold(&self, operation: &str, call: &Call) -> Option<Hold> {
        let (path, headers) = (&call.target.raw_path, &call.headers);
        let plan = self.first(operation, path, headers, |fault| {
            matches!(fault, Fault::PendingCopy(_))
        });
        match plan {
            Some(Plan(Fault::PendingCopy(hold))) => Some(hold),
            _ => None,
        }
    }

    /// Returns the fault of delivering an event of the blob at `path`.
    pub fn event(&self, path: &str) -> Option<EventFault> {
        let none = HeaderMap::new();
        let plan = self.first(EVENTS_DELIVER, path, &none, Fault::is_of_events)?;
        match plan.0 {
            Fault::EventDrop => Some(EventFault::Drop),
            Fault::EventDuplicate => Some(EventFault::Duplicate),
            Fault::EventDelay { delay_s, overtaken } => {
                Some(EventFault::Delay { delay_s, overtaken })
            }
            _ => None,
        }
    }

    fn first(
        &self,
        operation: &str,
        path: &str,
        headers: &HeaderMap,
        is_wanted: fn(&Fault) -> bool,
    ) -> Option<Plan> {
        let mut rules = self.0.lock();
        let mut plan = None;
        let matching = |a: &&mut Account| {
            is_wanted(&a.rule.fault) && a.rule.matches(operation, path) && a.when.matches(headers)
        };
        for account in rules.iter_mut().filter(matching) {
            account.seen += 1;
            let first = account.rule.nth.max(1);
            let is_meant = account.seen >= first && account.seen - first < account.rule.times;
            if is_meant && account.is_chosen() && plan.is_none() {
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

impl When {
    /// Rejects conditions that no call can meet.
    ///
    /// # Errors
    /// The field and its valid values.
    pub fn validate(&self) -> Result<(), &'static str> {
        if !(0.0..=1.0).contains(&self.probability) {
            return Err("invalid probability: use 0 to 1");
        }
        let is_name = |name: &String| HeaderName::from_bytes(name.as_bytes()).is_ok();
        match self.headers.keys().all(is_name) {
            true => Ok(()),
            false => Err("invalid headers: use names of HTTP headers"),
        }
    }

    fn matches(&self, headers: &HeaderMap) -> bool {
        self.headers.iter().all(|(name, wanted)| {
            let value = headers.get(name).map(HeaderValue::as_bytes);
            match wanted {
                Some(start) => value.is_some_and(|value| value.starts_with(start.as_bytes())),
                None => value.is_none(),
            }
        })
    }
}

impl Account {
    /// Draws whether the probability hits a call. A rule without one draws nothing.
    fn is_chosen(&mut self) -> bool {
        let bits = |dice: &mut ChaCha8Rng| f64::from(dice.next_u32()) / (f64::from(u32::MAX) + 1.0);
        self.when.probability >= 1.0 || bits(&mut self.dice) < self.when.probability
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
                Faulted::Refused(with_retry(error, *retry_after_s))
            }
            Fault::Error {
                code,
                status,
                retry_after_s,
            } => {
                let error = StorageError::new(*code);
                let error = status
                    .iter()
                    .fold(error, |error, status| error.with_status(*status));
                Faulted::Refused(with_retry(error, *retry_after_s))
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

fn with_retry(error: StorageError, retry_after_s: Option<u64>) -> StorageError {
    match retry_after_s {
        Some(seconds) => error.with_header("retry-after", &seconds.to_string()),
        None => error,
    }
}
