//! The rows of the Table service. The rules name the sources.

use smalt_protocol::ErrorCode as E;

use super::groups::{IF_MATCH, IF_MATCH_ANY, NONE, SIGNED, done, no};
use super::{Outcome, Row, Set};

const CONDITIONED: Set = IF_MATCH | IF_MATCH_ANY;

/// The outcome of an entity operation without a table.
const TABLE: &[(Outcome, Set)] = &[(no(E::TableNotFound), NONE)];
/// Outcomes of a write that may create the entity.
const UPSERT: &[&[(Outcome, Set)]] = &[TABLE, &[(done(204), NONE)]];
/// Outcomes of a write to an existing entity.
const CONDITIONAL: &[&[(Outcome, Set)]] = &[&[
    (no(E::TableNotFound), CONDITIONED),
    (done(204), CONDITIONED),
    (no(E::ResourceNotFound), CONDITIONED),
    (no(E::UpdateConditionNotSatisfied), IF_MATCH),
]];

/// The outcome of a malformed request.
const INPUT: &[&[(Outcome, Set)]] = &[&[(no(E::InvalidInput), NONE)]];

const fn row(operation: &'static str, outcomes: &'static [&'static [(Outcome, Set)]]) -> Row {
    Row {
        operation,
        outcomes,
    }
}

pub(super) const ROWS: &[Row] = &[
    row(
        "table create",
        &[&[(done(204), NONE), (no(E::TableAlreadyExists), NONE)]],
    ),
    row(
        "table delete",
        &[&[(done(204), NONE), (no(E::ResourceNotFound), NONE)]],
    ),
    row("table set policy", &[TABLE, &[(done(204), NONE)]]),
    row("table signed query", &[TABLE, SIGNED]),
    row(
        "entity insert",
        &[
            TABLE,
            &[(done(204), NONE), (no(E::EntityAlreadyExists), NONE)],
        ],
    ),
    row("entity insert or replace", UPSERT),
    row("entity insert or merge", UPSERT),
    row("entity update", CONDITIONAL),
    row("entity merge", CONDITIONAL),
    row("entity delete", CONDITIONAL),
    row(
        "entity group transaction",
        &[
            TABLE,
            &[
                (done(204), NONE),
                (no(E::EntityAlreadyExists), NONE),
                (no(E::ResourceNotFound), NONE),
                (no(E::UpdateConditionNotSatisfied), NONE),
                (no(E::CommandsInBatchActOnDifferentPartitions), NONE),
                (no(E::InvalidDuplicateRow), NONE),
            ],
        ],
    ),
    row(
        "entity get",
        &[TABLE, &[(done(200), NONE), (no(E::ResourceNotFound), NONE)]],
    ),
    row("entity query", &[TABLE, &[(done(200), NONE)]]),
    row("entity query one page", &[TABLE, &[(done(200), NONE)]]),
    row(
        "malformed table name",
        &[&[(no(E::InvalidResourceName), NONE)]],
    ),
    row("malformed filter", INPUT),
    row("malformed top", INPUT),
    row("malformed entity", INPUT),
    row("malformed keys", &[&[(no(E::PropertiesNeedValue), NONE)]]),
    row(
        "malformed property name",
        &[&[(no(E::PropertyNameInvalid), NONE)]],
    ),
];
