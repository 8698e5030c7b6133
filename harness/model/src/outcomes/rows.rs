//! The matrix: one row per operation. The rules name the sources.

use smalt_protocol::ErrorCode as E;

use super::groups::*;
use super::{Outcome, Row, Set};

const fn row(operation: &'static str, outcomes: &'static [&'static [(Outcome, Set)]]) -> Row {
    Row {
        operation,
        outcomes,
    }
}

/// The outcomes that are specific to each of a resource's five lease actions.
macro_rules! leases {
    ($of:literal, $set:expr, $missing:expr) => {
        [
            row(
                concat!($of, " lease acquire"),
                &[
                    &leasing($set),
                    $missing,
                    &[
                        (done(201), $set),
                        (no(E::LeaseAlreadyPresent), $set),
                        (no(E::LeaseIsBreakingAndCannotBeAcquired), $set),
                    ],
                ],
            ),
            row(
                concat!($of, " lease renew"),
                &[
                    &leasing($set),
                    $missing,
                    &[
                        (done(200), $set),
                        (MISMATCH, $set),
                        (no(E::LeaseIsBrokenAndCannotBeRenewed), $set),
                    ],
                ],
            ),
            row(
                concat!($of, " lease change"),
                &[
                    &leasing($set),
                    $missing,
                    &[
                        (done(200), $set),
                        (MISMATCH, $set),
                        (no(E::LeaseNotPresentWithLeaseOperation), $set),
                        (no(E::LeaseIsBreakingAndCannotBeChanged), $set),
                    ],
                ],
            ),
            row(
                concat!($of, " lease release"),
                &[
                    &leasing($set),
                    $missing,
                    &[(done(200), $set), (MISMATCH, $set)],
                ],
            ),
            row(
                concat!($of, " lease break"),
                &[
                    &leasing($set),
                    $missing,
                    &[
                        (done(202), $set),
                        (no(E::LeaseNotPresentWithLeaseOperation), $set),
                    ],
                ],
            ),
        ]
    };
}

const BLOB_LEASES: [Row; 5] = leases!("blob", ANY, MISSING);
const CONTAINER_LEASES: [Row; 5] = leases!("container", DATES, &[]);

/// The matrix.
pub const ROWS: &[Row] = &[
    row("account list containers", &[&[(done(200), NONE)]]),
    row("account list queues", &[&[(done(200), NONE)]]),
    row("account set retention", &[&[(done(202), NONE)]]),
    row(
        "account find blobs",
        &[&[(done(200), NONE), (no(E::ContainerNotFound), NONE)]],
    ),
    row(
        "container set policy",
        &[&[(done(200), NONE), (no(E::ContainerNotFound), NONE)]],
    ),
    row(
        "container signed list",
        &[SIGNED, &[(no(E::ContainerNotFound), NONE)]],
    ),
    row(
        "container create",
        &[&[(done(201), NONE), (no(E::ContainerAlreadyExists), NONE)]],
    ),
    row(
        "container delete",
        &[&[
            (done(202), DATES),
            (no(E::ContainerNotFound), DATES),
            (no(E::LeaseIdMissing), DATES),
            (no(E::LeaseNotPresentWithContainerOperation), DATES),
            (no(E::LeaseIdMismatchWithContainerOperation), DATES),
            (no(E::LeaseLost), DATES),
            (no(E::ConditionNotMet), SINCE | NOT_SINCE),
        ]],
    ),
    row("container get", &[CONTAINER, &[(done(200), NONE)]]),
    row("container set metadata", &[CONTAINER, &[(done(200), NONE)]]),
    CONTAINER_LEASES[0],
    CONTAINER_LEASES[1],
    CONTAINER_LEASES[2],
    CONTAINER_LEASES[3],
    CONTAINER_LEASES[4],
    row(
        "container list",
        &[&[
            (done(200), NONE),
            (no(E::ContainerNotFound), NONE),
            (no(E::InvalidQueryParameterValue), NONE),
        ]],
    ),
    row("container list (blocks alone)", LISTED),
    row("container list (lapsed blocks)", LISTED),
    row("blob put", &[&creation(ANY), &[(done(201), ANY)]]),
    row("blob put append", &[&creation(ANY), &[(done(201), ANY)]]),
    row("blob put pages", &[&creation(ANY), &[(done(201), ANY)]]),
    row(
        "blob get",
        &[
            READ,
            OFFLINE,
            &[
                (done(200), READABLE),
                (done(206), READABLE),
                (no(E::InvalidRange), READABLE),
            ],
        ],
    ),
    row("blob head", &[READ, &[(done(200), READABLE)]]),
    row(
        "blob set metadata",
        &[WRITE, MISSING, OFFLINE, &[(done(200), ANY)]],
    ),
    row(
        "blob set tier",
        &[&[
            (done(200), NONE),
            (done(202), NONE),
            (no(E::BlobBeingRehydrated), NONE),
            (no(E::BlobNotFound), NONE),
            (no(E::ContainerNotFound), NONE),
        ]],
    ),
    row(
        "blob set properties",
        &[WRITE, MISSING, &[(done(200), ANY)]],
    ),
    row(
        "blob resize",
        &[
            WRITE,
            MISSING,
            &[(done(200), ANY), (no(E::InvalidBlobType), ANY)],
        ],
    ),
    row(
        "blob set number",
        &[
            WRITE,
            MISSING,
            &[
                (done(200), ANY),
                (no(E::InvalidBlobType), ANY),
                (no(E::SequenceNumberIncrementTooLarge), ANY),
            ],
        ],
    ),
    row(
        "blob delete",
        &[
            WRITE,
            MISSING,
            &[
                (done(202), ANY),
                (no(E::SnapshotsPresent), ANY),
                (no(E::InvalidQueryParameterValue), ANY),
            ],
        ],
    ),
    row(
        "blob undelete",
        &[&[
            (done(200), NONE),
            (no(E::ContainerNotFound), NONE),
            (no(E::BlobNotFound), NONE),
        ]],
    ),
    row(
        "blob snapshot",
        &[&named(ANY), MISSING, &leasing(ANY), &[(done(201), ANY)]],
    ),
    BLOB_LEASES[0],
    BLOB_LEASES[1],
    BLOB_LEASES[2],
    BLOB_LEASES[3],
    BLOB_LEASES[4],
    row("blob delete (blocks alone)", &[&[(done(202), ANY)]]),
    row(
        "blob delete (lapsed blocks)",
        &[&[(no(E::BlobNotFound), ANY)]],
    ),
    row(
        "blob put block (lapsed blocks)",
        &[&[
            (done(201), NONE),
            (no(E::InvalidHeaderValue), NONE),
            (no(E::LeaseNotPresentWithBlobOperation), NONE),
        ]],
    ),
    row(
        "blob put block list (lapsed blocks)",
        &[&[(no(E::InvalidBlockList), NONE)]],
    ),
    row(
        "blob get block list (lapsed blocks)",
        &[&[(no(E::BlobNotFound), NONE)]],
    ),
    row(
        "blob put block",
        &[
            &guarded(NONE),
            &[
                (done(201), NONE),
                (no(E::InvalidHeaderValue), NONE),
                (no(E::InvalidBlobType), NONE),
                (no(E::InvalidBlobOrBlock), NONE),
            ],
        ],
    ),
    row(
        "blob put block list",
        &[
            &creation(ANY),
            &[
                (done(201), ANY),
                (no(E::InvalidBlobType), ANY),
                (no(E::InvalidBlockList), ANY),
            ],
        ],
    ),
    row(
        "blob get block list",
        &[
            &named(NONE),
            &[
                (done(200), NONE),
                (no(E::ContainerNotFound), NONE),
                (no(E::BlobNotFound), NONE),
                (no(E::InvalidBlobType), NONE),
            ],
        ],
    ),
    row(
        "blob copy",
        &[
            &copied(COPY),
            &[
                (done(202), COPY),
                (no(E::InfiniteLeaseDurationRequired), COPY),
                (no(E::InvalidBlobType), COPY),
                (told(E::CannotVerifyCopySource, 404), COPY),
                (
                    no(E::SourceConditionNotMet),
                    ANY & !NONE | SOURCE & !SOURCE_MATCH_ANY,
                ),
            ],
        ],
    ),
    row(
        "blob copy from url",
        &[&copied(COPY), READ_BYTES, &[(done(202), COPY)]],
    ),
    row(
        "blob put from url",
        &[&copied(COPY), READ_BYTES, &[(done(201), COPY)]],
    ),
    row(
        "blob set tags",
        &[
            &guarded(NONE),
            &[(done(204), NONE), (no(E::BlobNotFound), NONE)],
        ],
    ),
    row(
        "blob get tags",
        &[
            &named(NONE),
            &[
                (done(200), NONE),
                (no(E::ContainerNotFound), NONE),
                (no(E::BlobNotFound), NONE),
            ],
        ],
    ),
    row(
        "blob append",
        &[
            &guarded(APPEND),
            &[
                (done(201), APPEND),
                (no(E::BlobNotFound), APPEND),
                (no(E::InvalidBlobType), APPEND),
                (no(E::BlobIsSealed), APPEND),
                (no(E::AppendPositionConditionNotMet), ANY & !NONE | AT),
                (no(E::MaxBlobSizeConditionNotMet), ANY & !NONE | MOST),
            ],
        ],
    ),
    row(
        "blob seal",
        &[
            &guarded(ANY | AT),
            &[
                (done(200), ANY | AT),
                (no(E::BlobNotFound), ANY | AT),
                (no(E::InvalidBlobType), ANY | AT),
                (no(E::AppendPositionConditionNotMet), ANY & !NONE | AT),
            ],
        ],
    ),
    row("blob put pages data", PAGE_WRITE),
    row("blob clear pages", PAGE_WRITE),
    row(
        "blob get page ranges",
        &[
            READ,
            &[(done(200), READABLE), (no(E::InvalidBlobType), READABLE)],
        ],
    ),
    row(
        "queue create",
        &[&[
            (done(201), NONE),
            (done(204), NONE),
            (no(E::QueueAlreadyExists), NONE),
        ]],
    ),
    row("queue delete", &[QUEUE, &[(done(204), NONE)]]),
    row("queue set policy", &[QUEUE, &[(done(204), NONE)]]),
    row("queue signed peek", &[QUEUE, SIGNED]),
    row("queue get", &[QUEUE, &[(done(200), NONE)]]),
    row("queue set metadata", &[QUEUE, &[(done(204), NONE)]]),
    row(
        "message put",
        &[
            QUEUE,
            &[(done(201), NONE), (no(E::InvalidQueryParameterValue), NONE)],
        ],
    ),
    row("message get", &[QUEUE, &[(done(200), NONE)]]),
    row("message peek", &[QUEUE, &[(done(200), NONE)]]),
    row(
        "message update",
        &[
            QUEUE,
            MESSAGE,
            &[
                (done(204), NONE),
                (no(E::OutOfRangeQueryParameterValue), NONE),
            ],
        ],
    ),
    row("message delete", &[QUEUE, MESSAGE, &[(done(204), NONE)]]),
    row("message clear", &[QUEUE, &[(done(204), NONE)]]),
    row(
        "malformed container name",
        &[&[(no(E::InvalidResourceName), NONE)]],
    ),
    row("malformed lease id", HEADER_VALUE),
    row("malformed date", HEADER_VALUE),
    row(
        "malformed two conditions",
        &[&[(no(E::MultipleConditionHeadersNotSupported), NONE)]],
    ),
    row("malformed lease duration", HEADER_VALUE),
    row("malformed lease action", HEADER_VALUE),
    row(
        "malformed block id",
        &[&[(no(E::InvalidQueryParameterValue), NONE)]],
    ),
    row(
        "malformed blob type",
        &[&[(no(E::MissingRequiredHeader), NONE)]],
    ),
    row("malformed page of none", OUT_OF_RANGE),
    row("malformed too many messages", OUT_OF_RANGE),
    row("malformed visibility timeout", OUT_OF_RANGE),
    row(
        "malformed time to live",
        &[&[(no(E::InvalidQueryParameterValue), NONE)]],
    ),
    row("malformed page range", HEADER_VALUE),
    row("malformed page blob length", HEADER_VALUE),
];
