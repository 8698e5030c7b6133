//! Planned faults, in the words of a test.

use std::time::Duration;

use smalt::faults::{Fault, Faults, Rule};
use smalt_protocol::connection_string::EMULATOR_ACCOUNT_NAME;

/// Which calls go wrong. Nothing is planned before it is said what happens to them.
#[derive(Debug)]
pub struct FaultPlan<'a> {
    faults: &'a Faults,
    operation: String,
    resource: String,
    nth: u64,
    times: u64,
}

impl<'a> FaultPlan<'a> {
    pub(super) fn new(faults: &'a Faults, operation: &str) -> Self {
        FaultPlan {
            faults,
            operation: operation.to_owned(),
            resource: String::new(),
            nth: 1,
            times: 1,
        }
    }

    /// The nth matching call from now on, counted from 1.
    #[must_use]
    pub fn nth(mut self, nth: u64) -> Self {
        self.nth = nth;
        self
    }

    /// So many calls from there on.
    #[must_use]
    pub fn times(mut self, times: u64) -> Self {
        self.times = times;
        self
    }

    /// Only calls to what begins like this: `orders`, `events/2026/`.
    #[must_use]
    pub fn on(mut self, path: &str) -> Self {
        self.resource = format!("/{EMULATOR_ACCOUNT_NAME}/{path}");
        self
    }

    /// It is executed, and the connection breaks before the answer: the client cannot know.
    pub fn answer_lost(self) {
        self.plan(Fault::AnswerLost);
    }

    /// The connection breaks before it is executed.
    pub fn connection_reset(self) {
        self.plan(Fault::Reset);
    }

    /// 503 `ServerBusy`, with `Retry-After` if a time is given, in whole seconds.
    pub fn server_busy(self, retry_after: Option<Duration>) {
        self.plan(Fault::Refuse {
            status: 503,
            retry_after_s: retry_after.map(|after| after.as_secs()),
        });
    }

    /// 500 `InternalError`.
    pub fn internal_error(self) {
        self.plan(Fault::Refuse {
            status: 500,
            retry_after_s: None,
        });
    }

    /// It is late by this much.
    pub fn late(self, by: Duration) {
        let delay_ms = u64::try_from(by.as_millis()).unwrap_or(u64::MAX);
        self.plan(Fault::Latency { delay_ms });
    }

    /// The answer's body breaks off after so many bytes.
    pub fn body_cut(self, after_bytes: u64) {
        self.plan(Fault::CutBody { after_bytes });
    }

    fn plan(self, fault: Fault) {
        self.faults.add(Rule {
            operation: self.operation,
            resource: self.resource,
            nth: self.nth,
            times: self.times,
            fault,
        });
    }
}
