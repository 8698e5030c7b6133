//! Operations on a hierarchical account, through both interfaces.

use smalt_protocol::ErrorCode as E;

use super::Row;
use super::groups::{NONE, done, no, told};
use super::{Outcome, Set};
use crate::vocabulary::{BlobOperation, ContainerOperation, LeaseAction, Operation, PathOperation};

/// Returns the row of an operation; `None` if it does not depend on the namespace.
pub(super) fn describe(operation: &Operation) -> Option<&'static str> {
    Some(match operation {
        Operation::Container(_, ContainerOperation::Create(_)) => "lake container create",
        Operation::Container(_, ContainerOperation::Delete(_)) => "lake container delete",
        Operation::Container(_, ContainerOperation::List { .. }) => "lake container list",
        Operation::Blob(_, BlobOperation::Put(..)) => "lake blob put",
        Operation::Blob(_, BlobOperation::Get { .. }) => "lake blob get",
        Operation::Blob(_, BlobOperation::Head { .. }) => "lake blob head",
        Operation::Blob(_, BlobOperation::SetMetadata(..)) => "lake blob set metadata",
        Operation::Blob(_, BlobOperation::Delete { .. }) => "lake blob delete",
        Operation::Blob(_, BlobOperation::Lease(action, _)) => match action {
            LeaseAction::Acquire { .. } => "lake blob acquire",
            _ => "lake blob lease",
        },
        Operation::Path(_, operation) => of_path(operation),
        _ => return None,
    })
}

/// Returns the row of an operation of the Data Lake interface.
pub(super) fn of_path(operation: &PathOperation) -> &'static str {
    match operation {
        PathOperation::Create {
            directory: true, ..
        } => "lake path create directory",
        PathOperation::Create { .. } => "lake path create file",
        PathOperation::Append { flush: false, .. } => "lake path append",
        PathOperation::Append { .. } => "lake path append and flush",
        PathOperation::Flush { .. } => "lake path flush",
        PathOperation::Rename(_) => "lake path rename",
        PathOperation::Delete { .. } => "lake path delete",
        PathOperation::Expire(..) => "lake path set expiry",
        PathOperation::Status(_) => "lake path status",
        PathOperation::Lease(LeaseAction::Acquire { .. }, _) => "lake path acquire",
        PathOperation::Lease(..) => "lake path lease",
        PathOperation::List { .. } => "lake path list",
    }
}

type Group = &'static [(Outcome, Set)];

/// Outcomes of the lease id of a request.
const NAMED: Group = &[
    (no(E::LeaseNotPresentWithBlobOperation), NONE),
    (no(E::LeaseIdMismatchWithBlobOperation), NONE),
    (no(E::LeaseLost), NONE),
];
const GUARDED: Group = &[(no(E::LeaseIdMissing), NONE)];
const UNMET: Group = &[(no(E::ConditionNotMet), NONE)];
const UNCHANGED: Group = &[
    (told(E::ConditionNotMet, 304), NONE),
    (no(E::UnsatisfiableCondition), NONE),
];
const NO_BLOB: Group = &[
    (no(E::ContainerNotFound), NONE),
    (no(E::BlobNotFound), NONE),
];
const NO_FILESYSTEM: Group = &[(no(E::FilesystemNotFound), NONE)];
const NO_PATH: Group = &[(no(E::PathNotFound), NONE)];
const CONFLICT: Group = &[(no(E::PathConflict), NONE)];
const FLUSHED: Group = &[(no(E::InvalidFlushPosition), NONE)];
const CREATED: Group = &[(done(201), NONE), (no(E::PathAlreadyExists), NONE)];
const OK: Group = &[(done(200), NONE)];
const ACCEPTED: Group = &[(done(202), NONE)];
const ACQUIRED: Group = &[
    (done(201), NONE),
    (no(E::LeaseAlreadyPresent), NONE),
    (no(E::LeaseIsBreakingAndCannotBeAcquired), NONE),
];
const LEASED: Group = &[
    (done(200), NONE),
    (done(202), NONE),
    (no(E::LeaseIdMismatchWithLeaseOperation), NONE),
    (no(E::LeaseNotPresentWithLeaseOperation), NONE),
    (no(E::LeaseIsBrokenAndCannotBeRenewed), NONE),
    (no(E::LeaseIsBreakingAndCannotBeChanged), NONE),
];

const fn row(operation: &'static str, outcomes: &'static [Group]) -> Row {
    Row {
        operation,
        outcomes,
    }
}

/// The rows of operations on a hierarchical account.
pub const ROWS: &[Row] = &[
    row(
        "lake container create",
        &[&[(done(201), NONE), (no(E::ContainerAlreadyExists), NONE)]],
    ),
    row(
        "lake container delete",
        &[ACCEPTED, &[(no(E::ContainerNotFound), NONE)]],
    ),
    row(
        "lake container list",
        &[OK, &[(no(E::ContainerNotFound), NONE)]],
    ),
    row(
        "lake blob put",
        &[
            NAMED,
            GUARDED,
            UNMET,
            CONFLICT,
            &[
                (done(201), NONE),
                (no(E::ContainerNotFound), NONE),
                (no(E::ResourceTypeMismatch), NONE),
                (no(E::BlobAlreadyExists), NONE),
            ],
        ],
    ),
    row(
        "lake blob get",
        &[
            NO_BLOB,
            NAMED,
            UNMET,
            UNCHANGED,
            OK,
            &[(done(206), NONE), (no(E::InvalidRange), NONE)],
        ],
    ),
    row("lake blob head", &[NO_BLOB, NAMED, UNMET, UNCHANGED, OK]),
    row(
        "lake blob set metadata",
        &[NO_BLOB, NAMED, GUARDED, UNMET, OK],
    ),
    row(
        "lake blob delete",
        &[
            NO_BLOB,
            NAMED,
            GUARDED,
            UNMET,
            ACCEPTED,
            &[(no(E::DirectoryIsNotEmpty), NONE)],
        ],
    ),
    row("lake blob acquire", &[NO_BLOB, UNMET, ACQUIRED]),
    row("lake blob lease", &[NO_BLOB, UNMET, LEASED]),
    row(
        "lake path create file",
        &[NO_FILESYSTEM, NAMED, GUARDED, UNMET, CONFLICT, CREATED],
    ),
    row(
        "lake path create directory",
        &[NO_FILESYSTEM, NAMED, GUARDED, UNMET, CONFLICT, CREATED],
    ),
    row(
        "lake path append",
        &[NO_FILESYSTEM, NO_PATH, NAMED, GUARDED, CONFLICT, ACCEPTED],
    ),
    row(
        "lake path append and flush",
        &[
            NO_FILESYSTEM,
            NO_PATH,
            NAMED,
            GUARDED,
            CONFLICT,
            FLUSHED,
            ACCEPTED,
        ],
    ),
    row(
        "lake path flush",
        &[
            NO_FILESYSTEM,
            NO_PATH,
            NAMED,
            GUARDED,
            UNMET,
            CONFLICT,
            FLUSHED,
            OK,
        ],
    ),
    row(
        "lake path rename",
        &[
            NO_FILESYSTEM,
            NAMED,
            GUARDED,
            UNMET,
            CONFLICT,
            CREATED,
            &[
                (no(E::SourcePathNotFound), NONE),
                (no(E::SourceConditionNotMet), NONE),
                (no(E::RenameDestinationParentPathNotFound), NONE),
                (no(E::InvalidRenameSourcePath), NONE),
                (no(E::InvalidSourceOrDestinationResourceType), NONE),
            ],
        ],
    ),
    row(
        "lake path delete",
        &[
            NO_FILESYSTEM,
            NO_PATH,
            NAMED,
            GUARDED,
            UNMET,
            OK,
            &[(no(E::DirectoryNotEmpty), NONE)],
        ],
    ),
    row(
        "lake path set expiry",
        &[
            NO_BLOB,
            NAMED,
            GUARDED,
            UNMET,
            OK,
            &[(no(E::ResourceTypeMismatch), NONE)],
        ],
    ),
    row(
        "lake path status",
        &[NO_FILESYSTEM, NO_PATH, NAMED, UNMET, UNCHANGED, OK],
    ),
    row(
        "lake path acquire",
        &[NO_FILESYSTEM, NO_PATH, UNMET, ACQUIRED],
    ),
    row("lake path lease", &[NO_FILESYSTEM, NO_PATH, UNMET, LEASED]),
    row("lake path list", &[NO_FILESYSTEM, NO_PATH, OK]),
];
