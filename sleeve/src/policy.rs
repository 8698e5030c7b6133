//! The state of one call in the SDK's pipeline, and the policies that act on it.
//!
//! The order is: per call [`keep`] (bodies parsed by the sleeve), [`query`] (spaces, SAS), then
//! [`retry`]; per attempt [`stamp`] (date, request id, extra headers, signature). The SDK's own
//! retries are switched off, because they repeat Put Message.

pub(crate) mod backoff;
pub(crate) mod keep;
pub(crate) mod query;
pub(crate) mod retry;
pub(crate) mod stamp;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use azure_core::http::{ClientMethodOptions, Context};
use bytes::Bytes;

/// Whether an operation may be repeated, and how the response to a repetition is interpreted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeat {
    Read,
    /// Ends in the same state however often it runs.
    Idempotent,
    /// A conditional write: after an unanswered attempt, a refusal may be caused by that attempt.
    Conditional,
    /// Removes something: after an unanswered attempt, "not found" means success.
    Removal,
    /// Creates something new each time (Put Message): repeated only if it surely was not executed.
    Never,
}

/// One call of the port in the pipeline.
#[derive(Debug)]
pub(crate) struct Call {
    /// Name of the operation as Azure documents it.
    pub(crate) operation: &'static str,
    /// Resource of the call, for messages.
    pub(crate) resource: String,
    pub(crate) repeat: Repeat,
    /// Value of `x-ms-client-request-id`.
    pub(crate) request_id: Option<String>,
    /// Headers for which the SDK has no option.
    pub(crate) headers: Vec<(&'static str, &'static str)>,
    /// Whether the sleeve parses the response body instead of the SDK.
    pub(crate) keeps_body: bool,
    body: OnceLock<Bytes>,
    maybe_done: AtomicBool,
    unanswered: AtomicBool,
}

impl Call {
    pub(crate) fn new(
        operation: &'static str,
        resource: String,
        repeat: Repeat,
        request_id: Option<String>,
    ) -> Self {
        Call {
            operation,
            resource,
            repeat,
            request_id,
            headers: Vec::new(),
            keeps_body: false,
            body: OnceLock::new(),
            maybe_done: AtomicBool::new(false),
            unanswered: AtomicBool::new(false),
        }
    }

    pub(crate) fn with_header(mut self, name: &'static str, value: &'static str) -> Self {
        self.headers.push((name, value));
        self
    }

    /// Returns the response body, if it was kept.
    pub(crate) fn body(&self) -> Option<&Bytes> {
        self.body.get()
    }

    /// Returns whether some attempt may have been executed without saying so.
    pub(crate) fn maybe_done(&self) -> bool {
        self.maybe_done.load(Ordering::Relaxed)
    }

    /// Returns whether some attempt was sent and never answered.
    pub(crate) fn unanswered(&self) -> bool {
        self.unanswered.load(Ordering::Relaxed)
    }

    fn note(&self, attempt: &retry::Attempt) {
        match attempt {
            retry::Attempt::Failed { .. } => self.maybe_done.store(true, Ordering::Relaxed),
            retry::Attempt::Unanswered => {
                self.maybe_done.store(true, Ordering::Relaxed);
                self.unanswered.store(true, Ordering::Relaxed);
            }
            _ => {}
        }
    }
}

/// Returns the SDK options that carry a call.
pub(crate) fn options(call: &Arc<Call>) -> ClientMethodOptions<'static> {
    ClientMethodOptions {
        context: context(call),
    }
}

/// Returns the SDK context that carries a call.
pub(crate) fn context(call: &Arc<Call>) -> Context<'static> {
    Context::new().with_value(Arc::clone(call))
}

/// Returns the call of a context. The sleeve's pipeline always has one.
fn call<'a>(ctx: &'a Context<'_>) -> Option<&'a Arc<Call>> {
    ctx.value::<Arc<Call>>()
}
