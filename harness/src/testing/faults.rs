//! Planned faults, as a builder for tests.

use std::time::Duration;

use smalt::faults::{Fault, Faults, Rule};
use smalt_protocol::connection_string::EMULATOR_ACCOUNT_NAME;

/// Selects the calls that fail. Nothing is planned until a method says how they fail.
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

    /// Selects the nth matching call from now on, counted from 1.
    #[must_use]
    pub fn nth(mut self, nth: u64) -> Self {
        self.nth = nth;
        self
    }

    /// Number of calls that fail from there on.
    #[must_use]
    pub fn times(mut self, times: u64) -> Self {
        self.times = times;
        self
    }

    /// Selects calls whose path begins with this: `orders`, `events/2026/`.
    #[must_use]
    pub fn on(mut self, path: &str) -> Self {
        self.resource = format!("/{EMULATOR_ACCOUNT_NAME}/{path}");
        self
    }

    /// Executes the call and breaks the connection before the answer, so that the client cannot
    /// know the outcome.
    pub fn answer_lost(self) {
        self.plan(Fault::AnswerLost);
    }

    /// Breaks the connection before the call is executed.
    pub fn connection_reset(self) {
        self.plan(Fault::Reset);
    }

    /// Answers 503 `ServerBusy`, with `Retry-After` in whole seconds if given.
    pub fn server_busy(self, retry_after: Option<Duration>) {
        self.plan(Fault::Refuse {
            status: 503,
            retry_after_s: retry_after.map(|after| after.as_secs()),
        });
    }

    /// Answers 500 `InternalError`.
    pub fn internal_error(self) {
        self.plan(Fault::Refuse {
            status: 500,
            retry_after_s: None,
        });
    }

    /// Delays the call.
    pub fn late(self, by: Duration) {
        let delay_ms = u64::try_from(by.as_millis()).unwrap_or(u64::MAX);
        self.plan(Fault::Latency { delay_ms });
    }

    /// Breaks off the answer's body after this many bytes.
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
