//! Sets of headers and groups of outcomes that rows of the matrix share.

use smalt_protocol::ErrorCode as E;

use super::{Outcome, Set};

pub(super) const NONE: Set = 1;
pub(super) const IF_MATCH: Set = 1 << 1;
pub(super) const IF_MATCH_ANY: Set = 1 << 2;
pub(super) const IF_NONE_MATCH: Set = 1 << 3;
pub(super) const IF_NONE_MATCH_ANY: Set = 1 << 4;
pub(super) const SINCE: Set = 1 << 5;
pub(super) const NOT_SINCE: Set = 1 << 6;
pub(super) const TAGS: Set = 1 << 7;
pub(super) const SOURCE_MATCH: Set = 1 << 8;
pub(super) const SOURCE_MATCH_ANY: Set = 1 << 9;
pub(super) const SOURCE_NONE_MATCH: Set = 1 << 10;
pub(super) const SOURCE_SINCE: Set = 1 << 11;
pub(super) const SOURCE_NOT_SINCE: Set = 1 << 12;
pub(super) const AT: Set = 1 << 13;
pub(super) const MOST: Set = 1 << 14;
pub(super) const SEQUENCE: Set = 7 << 15;

/// The headers that containers accept.
pub(super) const DATES: Set = NONE | SINCE | NOT_SINCE;
/// The headers that blobs accept.
pub(super) const ANY: Set = DATES | TAGGED | TAGS;
pub(super) const TAGGED: Set = IF_MATCH | IF_MATCH_ANY | IF_NONE_MATCH | IF_NONE_MATCH_ANY;
pub(super) const SOURCE: Set =
    SOURCE_MATCH | SOURCE_MATCH_ANY & !NONE | SOURCE_NONE_MATCH | SOURCE_SINCE | SOURCE_NOT_SINCE;
pub(super) const COPY: Set = ANY | SOURCE;
pub(super) const APPEND: Set = ANY | AT | MOST;
pub(super) const PAGES: Set = ANY | SEQUENCE;
/// The headers that can be unmet in a write to an existing resource.
pub(super) const UNMET: Set = IF_MATCH | IF_NONE_MATCH | SINCE | NOT_SINCE | TAGS;
/// The headers that can be unmet in a creation: also `If-Match: *`, if nothing exists.
pub(super) const UNMET_CREATE: Set = UNMET | IF_MATCH_ANY;

pub(super) const fn done(status: u16) -> Outcome {
    Outcome { status, code: None }
}

pub(super) const fn no(code: E) -> Outcome {
    Outcome {
        status: code.status(),
        code: Some(code),
    }
}

pub(super) const fn told(code: E, status: u16) -> Outcome {
    Outcome {
        status,
        code: Some(code),
    }
}

/// Outcomes of an operation with a lease id: no lease, another lease, a lease that ended.
pub(super) const fn named(set: Set) -> [(Outcome, Set); 3] {
    [
        (no(E::LeaseNotPresentWithBlobOperation), set),
        (no(E::LeaseIdMismatchWithBlobOperation), set),
        (no(E::LeaseLost), set),
    ]
}

/// Outcomes of a write to an existing blob that an active lease protects.
pub(super) const fn guarded(set: Set) -> [(Outcome, Set); 6] {
    let [absent, mismatch, lost] = named(set);
    [
        (no(E::ContainerNotFound), set),
        (no(E::LeaseIdMissing), set),
        absent,
        mismatch,
        lost,
        (no(E::ConditionNotMet), UNMET & set),
    ]
}

/// Outcomes of a write that creates a blob.
pub(super) const fn creation(set: Set) -> [(Outcome, Set); 7] {
    let [container, missing, absent, mismatch, lost, _] = guarded(set);
    [
        container,
        missing,
        absent,
        mismatch,
        lost,
        (no(E::ConditionNotMet), UNMET_CREATE),
        (no(E::BlobAlreadyExists), IF_NONE_MATCH_ANY),
    ]
}

/// Outcomes of a copy.
pub(super) const fn copied(set: Set) -> [(Outcome, Set); 8] {
    let [container, missing, absent, mismatch, lost, ..] = creation(set);
    [
        container,
        missing,
        absent,
        mismatch,
        lost,
        (no(E::TargetConditionNotMet), UNMET_CREATE & !TAGS),
        (no(E::ConditionNotMet), TAGS),
        (no(E::BlobAlreadyExists), IF_NONE_MATCH_ANY),
    ]
}

/// Outcomes of a read with conditions.
pub(super) const fn read() -> [(Outcome, Set); 8] {
    let set = ANY & !IF_NONE_MATCH_ANY;
    let [absent, mismatch, lost] = named(set);
    [
        (no(E::ContainerNotFound), set),
        (no(E::BlobNotFound), set),
        absent,
        mismatch,
        lost,
        (told(E::ConditionNotMet, 304), IF_NONE_MATCH | SINCE),
        (no(E::ConditionNotMet), IF_MATCH | NOT_SINCE | TAGS),
        (no(E::UnsatisfiableCondition), IF_NONE_MATCH_ANY),
    ]
}

/// Outcomes of a lease operation besides its own errors.
pub(super) const fn leasing(set: Set) -> [(Outcome, Set); 2] {
    [
        (no(E::ContainerNotFound), set),
        (no(E::ConditionNotMet), UNMET & set),
    ]
}

/// Outcomes of a container operation with a lease id.
pub(super) const CONTAINER: &[(Outcome, Set)] = &[
    (no(E::ContainerNotFound), NONE),
    (no(E::LeaseNotPresentWithContainerOperation), NONE),
    (no(E::LeaseIdMismatchWithContainerOperation), NONE),
    (no(E::LeaseLost), NONE),
];
pub(super) const READ: &[(Outcome, Set)] = &read();
pub(super) const READABLE: Set = ANY & !IF_NONE_MATCH_ANY;
pub(super) const WRITE: &[(Outcome, Set)] = &guarded(ANY);
pub(super) const MISSING: &[(Outcome, Set)] = &[(no(E::BlobNotFound), ANY)];
pub(super) const QUEUE: &[(Outcome, Set)] = &[(no(E::QueueNotFound), NONE)];
/// Outcomes of a read with a signature of its own.
pub(super) const SIGNED: &[(Outcome, Set)] = &[
    (done(200), NONE),
    (no(E::AuthenticationFailed), NONE),
    (no(E::AuthorizationPermissionMismatch), NONE),
];
/// Outcomes of an access to an archived blob; only requests without conditions make one.
pub(super) const OFFLINE: &[(Outcome, Set)] = &[
    (no(E::BlobArchived), NONE),
    (no(E::BlobBeingRehydrated), NONE),
];
pub(super) const MISMATCH: Outcome = no(E::LeaseIdMismatchWithLeaseOperation);

pub(super) const HEADER_VALUE: &[&[(Outcome, Set)]] = &[&[(no(E::InvalidHeaderValue), NONE)]];
pub(super) const OUT_OF_RANGE: &[&[(Outcome, Set)]] =
    &[&[(no(E::OutOfRangeQueryParameterValue), NONE)]];
/// Outcomes of a listing of an existing container.
pub(super) const LISTED: &[&[(Outcome, Set)]] =
    &[&[(done(200), NONE), (no(E::InvalidQueryParameterValue), NONE)]];
pub(super) const MESSAGE: &[(Outcome, Set)] = &[
    (no(E::MessageNotFound), NONE),
    (no(E::PopReceiptMismatch), NONE),
];

/// Outcomes of reading a copy's source by its URL.
pub(super) const READ_BYTES: &[(Outcome, Set)] = &[
    (told(E::CannotVerifyCopySource, 404), COPY),
    (
        told(E::CannotVerifyCopySource, 304),
        ANY & !NONE | SOURCE_NONE_MATCH | SOURCE_SINCE,
    ),
    (
        told(E::CannotVerifyCopySource, 412),
        ANY & !NONE | SOURCE_MATCH | SOURCE_NOT_SINCE,
    ),
];

pub(super) const PAGE_WRITE: &[&[(Outcome, Set)]] = &[
    &guarded(PAGES),
    &[
        (done(201), PAGES),
        (no(E::BlobNotFound), PAGES),
        (no(E::InvalidBlobType), PAGES),
        (no(E::SequenceNumberConditionNotMet), ANY & !NONE | SEQUENCE),
        (no(E::InvalidPageRange), PAGES),
    ],
];
