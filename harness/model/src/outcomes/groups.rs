//! What rows of the matrix have in common: sets of headers, groups of outcomes.

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

/// What containers take.
pub(super) const DATES: Set = NONE | SINCE | NOT_SINCE;
/// What blobs take.
pub(super) const ANY: Set = DATES | TAGGED | TAGS;
pub(super) const TAGGED: Set = IF_MATCH | IF_MATCH_ANY | IF_NONE_MATCH | IF_NONE_MATCH_ANY;
pub(super) const SOURCE: Set =
    SOURCE_MATCH | SOURCE_MATCH_ANY & !NONE | SOURCE_NONE_MATCH | SOURCE_SINCE | SOURCE_NOT_SINCE;
pub(super) const COPY: Set = ANY | SOURCE;
pub(super) const APPEND: Set = ANY | AT | MOST;
pub(super) const PAGES: Set = ANY | SEQUENCE;
/// What a write to what is there can find unmet.
pub(super) const UNMET: Set = IF_MATCH | IF_NONE_MATCH | SINCE | NOT_SINCE | TAGS;
/// What a creation can find unmet: the same, and `If-Match: *` where nothing is there.
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

/// A use that names a lease: none there, another, one that ended.
pub(super) const fn named(set: Set) -> [(Outcome, Set); 3] {
    [
        (no(E::LeaseNotPresentWithBlobOperation), set),
        (no(E::LeaseIdMismatchWithBlobOperation), set),
        (no(E::LeaseLost), set),
    ]
}

/// A write that an active lease guards, to a blob that is there.
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

/// One that makes a blob.
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

/// One that makes a blob out of another.
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

/// A read that takes conditions.
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

/// A lease operation but its own refusals.
pub(super) const fn leasing(set: Set) -> [(Outcome, Set); 2] {
    [
        (no(E::ContainerNotFound), set),
        (no(E::ConditionNotMet), UNMET & set),
    ]
}

/// The use of a container that names a lease.
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
pub(super) const MISMATCH: Outcome = no(E::LeaseIdMismatchWithLeaseOperation);

pub(super) const HEADER_VALUE: &[&[(Outcome, Set)]] = &[&[(no(E::InvalidHeaderValue), NONE)]];
pub(super) const OUT_OF_RANGE: &[&[(Outcome, Set)]] =
    &[&[(no(E::OutOfRangeQueryParameterValue), NONE)]];
/// A listing of a container that is there.
pub(super) const LISTED: &[&[(Outcome, Set)]] =
    &[&[(done(200), NONE), (no(E::InvalidQueryParameterValue), NONE)]];
pub(super) const MESSAGE: &[(Outcome, Set)] = &[
    (no(E::MessageNotFound), NONE),
    (no(E::PopReceiptMismatch), NONE),
];

/// The source of a copy by its bytes, read as anybody's URL.
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
