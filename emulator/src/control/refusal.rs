//! How the control endpoint refuses a request.

use http::StatusCode;

/// A refused control request: status, and what to do about it.
#[derive(Debug)]
pub(crate) struct Refusal(pub(super) StatusCode, pub(super) String);

impl Refusal {
    pub(crate) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Refusal(status, message.into())
    }
}

/// 405: the path is known, the method is not.
pub(super) fn no_such_method() -> Refusal {
    Refusal::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "this path has no such method",
    )
}

/// 500 with the cause, which only operators see.
pub(crate) fn failed(error: &dyn std::fmt::Display) -> Refusal {
    Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
}
