//! What one call carries through the SDK's pipeline, and the policies that act on it.
//!
//! The order is: per call [`keep`] (bodies that are read here), [`query`] (spaces, SAS), then
//! [`retry`]; per try [`stamp`] (date, request id, extra headers, signature). The SDK's own retries
//! are switched off: they repeat Put Message.

pub(crate) mod backoff;
pub(crate) mod keep;
pub(crate) mod query;
pub(crate) mod retry;
pub(crate) mod stamp;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use azure_core::http::{ClientMethodOptions, Context};
use bytes::Bytes;

/// May an operation be repeated, and how is the answer to a repetition to be read?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// Changes nothing.
    Read,
    /// Ends in the same state however often it runs.
    Idempotent,
    /// A write that conditions may refuse: after an unanswered try a refusal may be our own doing.
    Conditional,
    /// Removes something: after an unanswered try "not there" means done.
    Removal,
    /// Makes something new each time (Put Message): only what surely never ran is repeated.
    Never,
}

/// One call of the port on its way through the pipeline.
#[derive(Debug)]
pub(crate) struct Call {
    /// Operation, as in the register.
    pub(crate) operation: &'static str,
    /// What it is done to, for messages.
    pub(crate) resource: String,
    pub(crate) repeat: Repeat,
    /// `x-ms-client-request-id`.
    pub(crate) request_id: Option<String>,
    /// Headers that the SDK has no option for.
    pub(crate) headers: Vec<(&'static str, &'static str)>,
    /// Whether the body of the answer is read here, and not by the SDK.
    pub(crate) keeps_body: bool,
    /// That body.
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

    /// The body of the answer, when it was kept.
    pub(crate) fn body(&self) -> Option<&Bytes> {
        self.body.get()
    }

    /// Some try may have been executed although nothing said so.
    pub(crate) fn maybe_done(&self) -> bool {
        self.maybe_done.load(Ordering::Relaxed)
    }

    /// Some try was sent and never answered.
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

/// The SDK's options that carry a call.
pub(crate) fn options(call: &Arc<Call>) -> ClientMethodOptions<'static> {
    ClientMethodOptions {
        context: context(call),
    }
}

/// The SDK's context that carries a call.
pub(crate) fn context(call: &Arc<Call>) -> Context<'static> {
    Context::new().with_value(Arc::clone(call))
}

/// The call in a context. The pipeline of the sleeve always has one.
fn call<'a>(ctx: &'a Context<'_>) -> Option<&'a Arc<Call>> {
    ctx.value::<Arc<Call>>()
}
