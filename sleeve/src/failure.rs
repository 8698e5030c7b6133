//! Converts a failed call to [`PortError`]: the table of error codes, and the effect of earlier
//! attempts.

use std::time::Duration;

use azure_core::error::ErrorKind as SdkKind;
use azure_core::http::RawResponse;
use smalt_protocol::Timestamp;

use crate::error::{ErrorKind, PortError};
use crate::policy::retry::{parse_retry_after, transport_error};
use crate::policy::{Call, Repeat};
use crate::port::PortResult;
use crate::redact::redact;
use crate::transport::TransportError;

/// Maximum length of a quoted service message.
const MESSAGE_CHARS_MAX: usize = 300;

/// Error codes and their kinds. Other codes are classified by status.
const BY_CODE: &[(&str, ErrorKind)] = &[
    // 404, also where Azure sends these codes with another status.
    ("BlobNotFound", ErrorKind::NotFound),
    ("ContainerNotFound", ErrorKind::NotFound),
    ("MessageNotFound", ErrorKind::NotFound),
    ("QueueNotFound", ErrorKind::NotFound),
    ("ResourceNotFound", ErrorKind::NotFound),
    // The version is different.
    ("ConditionNotMet", ErrorKind::ConditionNotMet),
    ("SourceConditionNotMet", ErrorKind::ConditionNotMet),
    ("TargetConditionNotMet", ErrorKind::ConditionNotMet),
    // The resource already exists.
    ("BlobAlreadyExists", ErrorKind::AlreadyExists),
    ("ContainerAlreadyExists", ErrorKind::AlreadyExists),
    ("QueueAlreadyExists", ErrorKind::AlreadyExists),
    // Another client's lease.
    ("LeaseIdMissing", ErrorKind::Leased),
    ("LeaseAlreadyPresent", ErrorKind::LeaseTaken),
    ("LeaseIsBreakingAndCannotBeAcquired", ErrorKind::LeaseTaken),
    // Our own lease.
    ("LeaseAlreadyBroken", ErrorKind::LeaseLost),
    ("LeaseIdMismatchWithBlobOperation", ErrorKind::LeaseLost),
    (
        "LeaseIdMismatchWithContainerOperation",
        ErrorKind::LeaseLost,
    ),
    ("LeaseIdMismatchWithLeaseOperation", ErrorKind::LeaseLost),
    ("LeaseIsBreakingAndCannotBeChanged", ErrorKind::LeaseLost),
    ("LeaseIsBrokenAndCannotBeRenewed", ErrorKind::LeaseLost),
    ("LeaseLost", ErrorKind::LeaseLost),
    ("LeaseNotPresentWithBlobOperation", ErrorKind::LeaseLost),
    (
        "LeaseNotPresentWithContainerOperation",
        ErrorKind::LeaseLost,
    ),
    ("LeaseNotPresentWithLeaseOperation", ErrorKind::LeaseLost),
    // Obstacles to a delete.
    ("SnapshotsPresent", ErrorKind::SnapshotsPresent),
    ("BlobImmutableDueToLegalHold", ErrorKind::Immutable),
    ("BlobImmutableDueToPolicy", ErrorKind::Immutable),
    ("BlobArchived", ErrorKind::Archived),
    ("BlobBeingRehydrated", ErrorKind::Archived),
    ("PendingCopyOperation", ErrorKind::CopyPending),
    ("PopReceiptMismatch", ErrorKind::ReceiptMismatch),
    // The service is busy.
    ("InternalError", ErrorKind::Busy),
    ("OperationTimedOut", ErrorKind::Busy),
    ("ServerBusy", ErrorKind::Busy),
];

/// Returns the kind of an error response. `code` is `x-ms-error-code`.
pub(crate) fn classify(status: u16, code: Option<&str>) -> ErrorKind {
    let known = code.and_then(|code| BY_CODE.iter().find(|(name, _)| *name == code));
    match (known, status) {
        (Some((_, kind)), _) => *kind,
        (None, 401 | 403) => ErrorKind::Denied,
        (None, 404) => ErrorKind::NotFound,
        // A response to HEAD may lack a code; 304 and 412 still refer to the condition.
        (None, 304 | 412) => ErrorKind::ConditionNotMet,
        (None, 408 | 429 | 500 | 502..=504) => ErrorKind::Busy,
        (None, _) => ErrorKind::Refused,
    }
}

impl Call {
    /// Returns the error for a request that is invalid before it is sent.
    pub(crate) fn invalid(&self, why: &str) -> PortError {
        self.error(ErrorKind::Invalid, why)
    }

    /// Returns the error for a success response that cannot be parsed. A write may have been
    /// executed.
    pub(crate) fn unreadable(&self, why: &str) -> PortError {
        let kind = match self.repeat {
            Repeat::Read => ErrorKind::Refused,
            _ => ErrorKind::OutcomeUnknown,
        };
        self.error(kind, &format!("unreadable response: {why}"))
    }

    /// Converts the error of an SDK's result.
    pub(crate) fn check<T>(&self, result: azure_core::Result<T>) -> PortResult<T> {
        result.map_err(|error| self.fail(&error))
    }

    /// Converts the result of a removal. The refusal that `is_gone` recognizes means success after
    /// an attempt whose response was lost: that attempt has removed it.
    pub(crate) fn removed<T>(
        &self,
        result: azure_core::Result<T>,
        is_gone: impl Fn(&PortError) -> bool,
    ) -> PortResult<()> {
        match self.check(result) {
            Err(error) if self.maybe_done() && is_gone(&error) => Ok(()),
            result => result.map(drop),
        }
    }

    pub(crate) fn fail(&self, error: &azure_core::Error) -> PortError {
        match error.kind() {
            SdkKind::HttpResponse {
                status,
                raw_response: Some(response),
                ..
            } => self.refused(u16::from(*status), response),
            SdkKind::HttpResponse { status, .. } => {
                let status = u16::from(*status);
                let failed = self.error(classify(status, None), "request rejected");
                self.in_view_of_earlier_tries(PortError {
                    status: Some(status),
                    ..failed
                })
            }
            _ => self.in_view_of_earlier_tries(self.unanswered_error(error)),
        }
    }

    fn refused(&self, status: u16, response: &RawResponse) -> PortError {
        if (200..300).contains(&status) {
            // A success status that this operation never returns; the request may have been
            // executed.
            return self.unreadable(&format!("unexpected status {status}"));
        }
        let told = ErrorDetails::read(response);
        let mut failed = self.error(classify(status, told.code.as_deref()), &told.message);
        failed.status = Some(status);
        failed.code = told.code;
        failed.retry_after = told.retry_after;
        self.in_view_of_earlier_tries(failed)
    }

    fn unanswered_error(&self, error: &azure_core::Error) -> PortError {
        let kind = match (transport_error(error), error.kind()) {
            // If the token could not be fetched, the storage service was never reached.
            (Some(TransportError::Malformed(_)), _) => ErrorKind::Invalid,
            (Some(TransportError::Untrusted(_)), _) => ErrorKind::Untrusted,
            (Some(too_large @ TransportError::AnswerTooLarge(_)), _) => {
                return self.unreadable(&too_large.to_string());
            }
            (Some(_), SdkKind::Credential) => ErrorKind::Unreachable,
            (None, SdkKind::Credential) => ErrorKind::Denied,
            (Some(TransportError::Unreachable(_)), _) => ErrorKind::Unreachable,
            (Some(TransportError::NoAnswer(_)), _) => ErrorKind::OutcomeUnknown,
            (None, SdkKind::DataConversion) => return self.unreadable("the document is malformed"),
            (None, _) => ErrorKind::Invalid,
        };
        self.error(kind, &error.to_string())
    }

    /// Adjusts the last error if an earlier attempt may have been executed.
    fn in_view_of_earlier_tries(&self, mut failed: PortError) -> PortError {
        let unknown = match (self.repeat, failed.kind) {
            (Repeat::Read, _) => false,
            // The message may have been put, so it must not be put again blindly.
            (_, ErrorKind::Busy) if self.repeat == Repeat::Never => self.maybe_done(),
            (_, ErrorKind::Busy | ErrorKind::Unreachable | ErrorKind::Untrusted) => {
                self.unanswered()
            }
            // The different version, blob or receipt may be the result of our own earlier attempt.
            (Repeat::Conditional, ErrorKind::ConditionNotMet) => {
                self.maybe_done() && failed.code.as_deref() != Some("SourceConditionNotMet")
            }
            (
                Repeat::Conditional,
                ErrorKind::AlreadyExists | ErrorKind::CopyPending | ErrorKind::ReceiptMismatch,
            ) => self.maybe_done(),
            _ => false,
        };
        if unknown {
            failed.kind = ErrorKind::OutcomeUnknown;
            failed.message = format!(
                "an earlier attempt may have been executed; the last one failed: {}",
                failed.message
            );
        }
        failed
    }

    fn error(&self, kind: ErrorKind, message: &str) -> PortError {
        let resource = redact(&self.resource);
        PortError::new(kind, self.operation, resource, one_line(message))
    }
}

struct ErrorDetails {
    code: Option<String>,
    message: String,
    retry_after: Option<Duration>,
}

impl ErrorDetails {
    fn read(response: &RawResponse) -> Self {
        let (mut code, mut retry_after, mut date) = (None, None, None);
        for (name, value) in response.headers().iter() {
            match name.as_str() {
                "x-ms-error-code" => code = Some(value.as_str().to_owned()),
                "retry-after" => retry_after = Some(value.as_str()),
                "date" => date = Timestamp::parse_rfc1123(value.as_str()),
                _ => {}
            }
        }
        // A date in Retry-After is relative to the service's own clock.
        let now = date.unwrap_or(Timestamp::MAX);
        let body = String::from_utf8_lossy(response.body().as_ref());
        ErrorDetails {
            code: code.or_else(|| element(&body, "Code")),
            message: element(&body, "Message").unwrap_or_else(|| "request rejected".to_owned()),
            retry_after: retry_after.and_then(|text| parse_retry_after(text, now)),
        }
    }
}

/// Returns the text of the first `<name>` in an error document, which has no relevant nested or
/// repeated elements.
fn element(body: &str, name: &str) -> Option<String> {
    let start = body.find(&format!("<{name}>"))? + name.len() + 2;
    let length = body[start..].find(&format!("</{name}>"))?;
    Some(body[start..start + length].to_owned())
}

fn one_line(message: &str) -> String {
    let line = message.lines().next().unwrap_or_default();
    redact(line).chars().take(MESSAGE_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use smalt_protocol::ErrorCode;

    #[test]
    fn messages_are_one_line_without_signatures() {
        let body = "<Error><Code>X</Code><Message>no sig=abc here\nRequestId:1</Message></Error>";
        assert_eq!(element(body, "Code").as_deref(), Some("X"));
        let message = element(body, "Message").unwrap();
        assert_eq!(one_line(&message), "no sig=REDACTED here");
        assert_eq!(element("<Code>", "Code"), None);
        assert_eq!(one_line(&"x".repeat(999)).len(), MESSAGE_CHARS_MAX);
    }

    /// Every code in the table is one of Azure's and occurs once.
    #[test]
    fn table_contains_only_codes_of_the_service() {
        for (index, (code, kind)) in BY_CODE.iter().enumerate() {
            let known = ErrorCode::parse(code);
            assert!(known.is_some(), "{code} is unknown to the protocol crate");
            assert!(BY_CODE[..index].iter().all(|(other, _)| other != code));
            let status = known.unwrap().status();
            assert_eq!(classify(status, Some(code)), *kind);
        }
    }

    #[test]
    fn status_without_code_is_classified() {
        let table = [
            (304, ErrorKind::ConditionNotMet),
            (400, ErrorKind::Refused),
            (401, ErrorKind::Denied),
            (403, ErrorKind::Denied),
            (404, ErrorKind::NotFound),
            (408, ErrorKind::Busy),
            (409, ErrorKind::Refused),
            (412, ErrorKind::ConditionNotMet),
            (416, ErrorKind::Refused),
            (429, ErrorKind::Busy),
            (500, ErrorKind::Busy),
            (501, ErrorKind::Refused),
            (503, ErrorKind::Busy),
            (599, ErrorKind::Refused),
        ];
        for (status, kind) in table {
            assert_eq!(classify(status, None), kind, "{status}");
            assert_eq!(classify(status, Some("NeverHeardOf")), kind, "{status}");
        }
    }

    #[test]
    fn code_takes_precedence_over_status() {
        let table = [
            (409, "ConditionNotMet", ErrorKind::ConditionNotMet),
            (412, "LeaseIdMissing", ErrorKind::Leased),
            (
                412,
                "InfiniteLeaseDurationRequired",
                ErrorKind::ConditionNotMet,
            ),
            (403, "AuthenticationFailed", ErrorKind::Denied),
            (409, "ContainerBeingDeleted", ErrorKind::Refused),
            (400, "PopReceiptMismatch", ErrorKind::ReceiptMismatch),
        ];
        for (status, code, kind) in table {
            assert_eq!(classify(status, Some(code)), kind, "{code}");
        }
    }
}
