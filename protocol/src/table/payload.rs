//! The documents of requests and answers, in the format that was negotiated.

use crate::error::StorageError;
use crate::table::entity::{Entity, EntityBody};
use crate::table::format::{BodyFormat, Format};
use crate::table::query::Select;
use crate::table::{atom, json};
use crate::time::Timestamp;

/// What answers say of the service that gives them.
#[derive(Clone, Copy, Debug)]
pub struct Scope<'a> {
    /// The base address, with a slash at its end.
    pub endpoint: &'a str,
    /// The account's name.
    pub account: &'a str,
    /// The time of the answer.
    pub now: Timestamp,
}

/// Reads the entity in a body.
///
/// # Errors
/// 400 `InvalidInput` for what cannot be read; `DuplicatePropertiesSpecified`,
/// `TooManyProperties`, `PropertyNameInvalid`, `PropertyNameTooLong`, `PropertyValueTooLarge`,
/// `OutOfRangeInput` and `KeyValueTooLarge` for what may not be stored.
pub fn read_entity(format: BodyFormat, body: &[u8]) -> Result<EntityBody, StorageError> {
    match format {
        BodyFormat::Atom => atom::read::read_entity(body),
        BodyFormat::Json => json::read::read_entity(body),
    }
}

/// Reads the name of a table that is to be created, as it stands there.
///
/// # Errors
/// 400 `InvalidInput` for what cannot be read, 400 `PropertiesNeedValue` without a name.
pub fn read_table_name(format: BodyFormat, body: &[u8]) -> Result<String, StorageError> {
    match format {
        BodyFormat::Atom => atom::read::read_table_name(body),
        BodyFormat::Json => json::read::read_table_name(body),
    }
}

/// One entity: the answer to a read and to an insert.
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

/// A page of entities.
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

/// One table, by its name as written.
pub fn write_table(format: Format, scope: &Scope<'_>, name: &str) -> Vec<u8> {
    match format {
        Format::Atom => atom::write::table(scope, name),
        Format::Json(metadata) => json::write::table(metadata, scope, name),
    }
}

/// A page of tables, by their names as written.
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
