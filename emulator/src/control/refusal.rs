//! Error responses of the control endpoint.

use http::StatusCode;

/// A rejected control request: its status and a message that says what to do.
#[derive(Debug)]
pub(crate) struct Refusal(pub(super) StatusCode, pub(super) String);

impl Refusal {
    pub(crate) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Refusal(status, message.into())
    }
}

/// Returns 405 for a known path with an unsupported method.
pub(super) fn no_such_method() -> Refusal {
    Refusal::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "this path does not support the method",
    )
}

/// Returns 500 with the cause; only operators reach this endpoint.
pub(crate) fn failed(error: &dyn std::fmt::Display) -> Refusal {
    Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
}
