//! From an answer of the service to [`ErrorKind`]: the one table.

use crate::error::ErrorKind;

/// What one code means to a worker. Codes that are not here are classed by their status.
const BY_CODE: &[(&str, ErrorKind)] = &[
    // 404, wherever Azure sends them with another status.
    ("BlobNotFound", ErrorKind::NotFound),
    ("ContainerNotFound", ErrorKind::NotFound),
    ("MessageNotFound", ErrorKind::NotFound),
    ("QueueNotFound", ErrorKind::NotFound),
    ("ResourceNotFound", ErrorKind::NotFound),
    // Another version is there.
    ("ConditionNotMet", ErrorKind::ConditionNotMet),
    ("SourceConditionNotMet", ErrorKind::ConditionNotMet),
    ("TargetConditionNotMet", ErrorKind::ConditionNotMet),
    // Something is there already.
    ("BlobAlreadyExists", ErrorKind::AlreadyExists),
    ("ContainerAlreadyExists", ErrorKind::AlreadyExists),
    ("QueueAlreadyExists", ErrorKind::AlreadyExists),
    // Leases of others.
    ("LeaseIdMissing", ErrorKind::Leased),
    ("LeaseAlreadyPresent", ErrorKind::LeaseTaken),
    ("LeaseIsBreakingAndCannotBeAcquired", ErrorKind::LeaseTaken),
    // Our own lease.
    ("LeaseAlreadyBroken", ErrorKind::LeaseLost),
    ("LeaseIdMismatchWithBlobOperation", ErrorKind::LeaseLost),
    ("LeaseIdMismatchWithContainerOperation", ErrorKind::LeaseLost),
    ("LeaseIdMismatchWithLeaseOperation", ErrorKind::LeaseLost),
    ("LeaseIsBreakingAndCannotBeChanged", ErrorKind::LeaseLost),
    ("LeaseIsBrokenAndCannotBeRenewed", ErrorKind::LeaseLost),
    ("LeaseLost", ErrorKind::LeaseLost),
    ("LeaseNotPresentWithBlobOperation", ErrorKind::LeaseLost),
    ("LeaseNotPresentWithContainerOperation", ErrorKind::LeaseLost),
    ("LeaseNotPresentWithLeaseOperation", ErrorKind::LeaseLost),
    // What stands in the way of a delete.
    ("SnapshotsPresent", ErrorKind::SnapshotsPresent),
    ("BlobImmutableDueToLegalHold", ErrorKind::Immutable),
    ("BlobImmutableDueToPolicy", ErrorKind::Immutable),
    ("ContainerImmutabilityPolicyLocked", ErrorKind::Immutable),
    ("BlobArchived", ErrorKind::Archived),
    ("BlobBeingRehydrated", ErrorKind::Archived),
    ("PendingCopyOperation", ErrorKind::CopyPending),
    ("PopReceiptMismatch", ErrorKind::ReceiptMismatch),
    // The service has no time now.
    ("InternalError", ErrorKind::Busy),
    ("OperationTimedOut", ErrorKind::Busy),
    ("ServerBusy", ErrorKind::Busy),
];

/// The class of an answer. `code` is `x-ms-error-code`.
pub(crate) fn classify(status: u16, code: Option<&str>) -> ErrorKind {
    let known = code.and_then(|code| BY_CODE.iter().find(|(name, _)| *name == code));
    match (known, status) {
        (Some((_, kind)), _) => *kind,
        (None, 401 | 403) => ErrorKind::Denied,
        (None, 404) => ErrorKind::NotFound,
        // An answer to HEAD may come without a code: 304 and 412 then still mean the condition.
        (None, 304 | 412) => ErrorKind::ConditionNotMet,
        (None, 408 | 429 | 500 | 502..=504) => ErrorKind::Busy,
        (None, _) => ErrorKind::Refused,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smalt_protocol::ErrorCode;

    /// Every code of the table is one of Azure's, and stands there once.
    #[test]
    fn the_table_names_codes_of_the_service() {
        for (index, (code, kind)) in BY_CODE.iter().enumerate() {
            let known = ErrorCode::parse(code);
            assert!(known.is_some(), "{code} is unknown to the protocol crate");
            assert!(BY_CODE[..index].iter().all(|(other, _)| other != code));
            let status = known.unwrap().status();
            assert_eq!(classify(status, Some(code)), *kind);
        }
    }

    #[test]
    fn a_status_without_code_is_classed() {
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

    /// A code decides over its status.
    #[test]
    fn a_code_wins_over_the_status() {
        let table = [
            (409, "ConditionNotMet", ErrorKind::ConditionNotMet),
            (412, "LeaseIdMissing", ErrorKind::Leased),
            (412, "InfiniteLeaseDurationRequired", ErrorKind::ConditionNotMet),
            (403, "AuthenticationFailed", ErrorKind::Denied),
            (409, "ContainerBeingDeleted", ErrorKind::Refused),
            (400, "PopReceiptMismatch", ErrorKind::ReceiptMismatch),
        ];
        for (status, code, kind) in table {
            assert_eq!(classify(status, Some(code)), kind, "{code}");
        }
    }
}
