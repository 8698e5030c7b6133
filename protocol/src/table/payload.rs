//! The documents of requests and answers, in the negotiated format.

use crate::error::StorageError;
use crate::table::entity::{Entity, EntityBody};
use crate::table::format::{BodyFormat, Format};
use crate::table::query::Select;
use crate::table::{atom, json};
use crate::time::Timestamp;

/// The service that an answer describes.
#[derive(Clone, Copy, Debug)]
pub struct Scope<'a> {
    /// The base address, with a trailing slash.
    pub endpoint: &'a str,
    /// The account's name.
    pub account: &'a str,
    /// The time of the answer.
    pub now: Timestamp,
}

/// Parses the entity in a body.
///
/// # Errors
/// 400 `InvalidInput` for a malformed body; `DuplicatePropertiesSpecified`, `TooManyProperties`,
/// `PropertyNameInvalid`, `PropertyNameTooLong`, `PropertyValueTooLarge`, `OutOfRangeInput` and
/// `KeyValueTooLarge` for an entity that may not be stored.
pub fn read_entity(format: BodyFormat, body: &[u8]) -> Result<EntityBody, StorageError> {
    match format {
        BodyFormat::Atom => atom::read::read_entity(body),
        BodyFormat::Json => json::read::read_entity(body),
    }
}

/// Parses the name of a table to create, without validating it.
///
/// # Errors
/// 400 `InvalidInput` for a malformed body, 400 `PropertiesNeedValue` without a name.
pub fn read_table_name(format: BodyFormat, body: &[u8]) -> Result<String, StorageError> {
    match format {
        BodyFormat::Atom => atom::read::read_table_name(body),
        BodyFormat::Json => json::read::read_table_name(body),
    }
}

/// Writes one entity: the answer to a read or an insert.
pub fn write_entity(
    format: Format,
    scope: &Scope<'_>,
    table: &str,
    select: Option<&Select>,
    entity: &Entity,
) -> Vec<u8> {
    match format {
        Format::Atom => atom::write::entity(scope, table, select, entity),
        Format::Json(metadata) => json::write::entity(metadata, scope, table, select, entity),
    }
}

/// Writes a page of entities.
pub fn write_entities<'a>(
    format: Format,
    scope: &Scope<'_>,
    table: &str,
    select: Option<&Select>,
    entities: impl IntoIterator<Item = &'a Entity>,
) -> Vec<u8> {
    match format {
        Format::Atom => atom::write::entities(scope, table, select, entities),
        Format::Json(metadata) => json::write::entities(metadata, scope, table, select, entities),
    }
}

/// Writes one table, with its name as created.
pub fn write_table(format: Format, scope: &Scope<'_>, name: &str) -> Vec<u8> {
    match format {
        Format::Atom => atom::write::table(scope, name),
        Format::Json(metadata) => json::write::table(metadata, scope, name),
    }
}

/// Writes a page of tables, with their names as created.
pub fn write_tables<'a>(
    format: Format,
    scope: &Scope<'_>,
    select: Option<&Select>,
    names: impl IntoIterator<Item = &'a str>,
) -> Vec<u8> {
    match format {
        Format::Atom => atom::write::tables(scope, names),
        Format::Json(metadata) => json::write::tables(metadata, scope, select, names),
    }
}
