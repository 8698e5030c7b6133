//! Typed errors of the port, on which workers base their decisions.

use std::time::Duration;

/// The kind of a failure, as the workers' failure policy classifies it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// 404: the container, blob, queue or message does not exist.
    NotFound,
    /// 412 `ConditionNotMet` (also source and target condition): the version is different.
    ConditionNotMet,
    /// 409 `BlobAlreadyExists` under `If-None-Match: *`.
    AlreadyExists,
    /// 412 `LeaseIdMissing`: another client holds a lease on the blob.
    Leased,
    /// 409 `LeaseAlreadyPresent`: the lease could not be acquired.
    LeaseTaken,
    /// 412 or 409 about our own lease: mismatch, lost, broken, expired.
    LeaseLost,
    /// 409 `SnapshotsPresent`.
    SnapshotsPresent,
    /// 409: immutable because of a policy or legal hold.
    Immutable,
    /// 409 `BlobArchived`, or the blob is being rehydrated.
    Archived,
    /// 409 `PendingCopyOperation`.
    CopyPending,
    /// 400 `PopReceiptMismatch`: another client has taken the message.
    ReceiptMismatch,
    /// 401 or 403.
    Denied,
    /// 503, 500, 429 or a timeout reported by the service, after the sleeve's own retries.
    Busy,
    /// The request was sent but not answered (reset, cut, timed out); it may have been executed.
    OutcomeUnknown,
    /// The request never reached the service (connection refused, unknown host, TLS).
    Unreachable,
    /// Nothing was sent, because the server's certificate is not trusted.
    Untrusted,
    /// The request was invalid before it was sent (name, size, configuration).
    Invalid,
    /// The service rejected the request for another reason.
    Refused,
}

/// A failed call.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{operation} {resource}: {kind:?}{}: {message}", shown_code(.code.as_deref()))]
pub struct PortError {
    /// Kind of the failure.
    pub kind: ErrorKind,
    /// HTTP status, if there was a response.
    pub status: Option<u16>,
    /// Value of `x-ms-error-code`, if present.
    pub code: Option<String>,
    /// Value of `Retry-After`, if present.
    pub retry_after: Option<Duration>,
    /// Name of the operation as Azure documents it (`Delete Blob`).
    pub operation: &'static str,
    /// Resource of the call, without credentials.
    pub resource: String,
    /// One line of text, without credentials.
    pub message: String,
}

fn shown_code(code: Option<&str>) -> String {
    code.map(|code| format!(" ({code})")).unwrap_or_default()
}

impl PortError {
    /// Creates an error without a response.
    pub fn new(
        kind: ErrorKind,
        operation: &'static str,
        resource: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        PortError {
            kind,
            status: None,
            code: None,
            retry_after: None,
            operation,
            resource: resource.into(),
            message: message.into(),
        }
    }

    /// Returns whether a later retry may succeed.
    pub fn is_transient(&self) -> bool {
        matches!(
            self.kind,
            ErrorKind::Busy | ErrorKind::OutcomeUnknown | ErrorKind::Unreachable
        )
    }
}
