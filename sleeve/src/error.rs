//! Typed errors of the port: what a worker may decide by.

use std::time::Duration;

/// What kind of refusal or failure it was. The classes are those of the workers' failure policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// 404: container, blob, queue or message is not there.
    NotFound,
    /// 412 `ConditionNotMet` (also source and target condition): another version is there.
    ConditionNotMet,
    /// 409 `BlobAlreadyExists` under `If-None-Match: *`.
    AlreadyExists,
    /// 412 `LeaseIdMissing`: the blob is leased by somebody.
    Leased,
    /// 409 `LeaseAlreadyPresent`: the lease could not be taken.
    LeaseTaken,
    /// 412 or 409 about our own lease: mismatch, lost, broken, expired.
    LeaseLost,
    /// 409 `SnapshotsPresent`.
    SnapshotsPresent,
    /// 409: immutable by policy or legal hold.
    Immutable,
    /// 409 `BlobArchived` or being rehydrated.
    Archived,
    /// 409 `PendingCopyOperation`.
    CopyPending,
    /// 400 `PopReceiptMismatch`: somebody else has the message.
    ReceiptMismatch,
    /// 401 or 403.
    Denied,
    /// 503, 500, 429 or a time-out reported by the service, after the sleeve's own retries.
    Busy,
    /// Sent, but no answer came (reset, cut, timed out): it may have happened.
    OutcomeUnknown,
    /// Never reached the service (refused connection, unknown host, TLS).
    Unreachable,
    /// Nothing was sent: the certificate of whoever answers is not trusted.
    Untrusted,
    /// The request was wrong before it was sent (name, size, configuration).
    Invalid,
    /// Any other refusal of the service.
    Refused,
}

/// A failed call.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{operation} {resource}: {kind:?}{}: {message}", shown_code(.code.as_deref()))]
pub struct PortError {
    /// Class.
    pub kind: ErrorKind,
    /// Status, when there was an answer.
    pub status: Option<u16>,
    /// `x-ms-error-code`, when there was one.
    pub code: Option<String>,
    /// `Retry-After`, when there was one.
    pub retry_after: Option<Duration>,
    /// Operation, as in the register (`Delete Blob`).
    pub operation: &'static str,
    /// What it was done to; never with credentials.
    pub resource: String,
    /// One line for people; never with credentials.
    pub message: String,
}

fn shown_code(code: Option<&str>) -> String {
    code.map(|code| format!(" ({code})")).unwrap_or_default()
}

impl PortError {
    /// A call that this storage does not offer.
    pub(crate) fn unsupported(operation: &'static str, blob: &crate::port::BlobId) -> Self {
        PortError {
            kind: ErrorKind::Refused,
            status: None,
            code: None,
            retry_after: None,
            operation,
            resource: format!("{}/{}", blob.container, blob.name),
            message: "this storage does not offer it".to_owned(),
        }
    }

    /// Whether waiting and asking again may help.
    pub fn is_transient(&self) -> bool {
        matches!(
            self.kind,
            ErrorKind::Busy | ErrorKind::OutcomeUnknown | ErrorKind::Unreachable
        )
    }
}
