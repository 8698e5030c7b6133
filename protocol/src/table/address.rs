//! Parses request paths of the Table service: the service, the list of tables, a table's entities,
//! or one entity.
//!
//! Source: *Addressing Table service resources*; recordings for the escapes.

use crate::error::{ErrorCode, StorageError};
use crate::table::entity::{PARTITION_KEY, ROW_KEY};
use crate::table::name::TABLES;
use crate::uri;

/// The path of an entity group transaction.
const BATCH: &str = "$batch";

/// An addressed resource with decoded names. The names are not validated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resource {
    /// The service itself.
    Service,
    /// `$batch`.
    Batch,
    /// `Tables` or `Tables()`: the list of tables.
    Tables,
    /// `Tables('name')`: one entry of that list.
    Table(String),
    /// `name` or `name()`: all entities of a table, or the table itself in requests for its
    /// policies.
    Entities(String),
    /// `name(PartitionKey='..',RowKey='..')`, in either order.
    Entity {
        /// The table's name as sent.
        table: String,
        /// The partition key, decoded.
        partition_key: String,
        /// The row key, decoded.
        row_key: String,
    },
}

/// Parses a path, percent-encoded and without the account. Ignores leading and trailing slashes.
///
/// # Errors
/// 400 `InvalidUri` for a malformed escape and for paths of several segments, 400 `InvalidInput`
/// for parentheses without a valid key.
pub fn parse_path(path: &str) -> Result<Resource, StorageError> {
    let decoded = uri::percent_decode(path.trim_matches('/'))?;
    let (name, literal) = split_brackets(&decoded)?;
    if name.contains('/') {
        return Err(ErrorCode::InvalidUri.into());
    }
    if name.is_empty() && literal.is_none() {
        return Ok(Resource::Service);
    }
    if name == BATCH && literal.is_none() {
        return Ok(Resource::Batch);
    }
    let literal = literal.unwrap_or_default().trim();
    if name.eq_ignore_ascii_case(TABLES) {
        return table_of(literal);
    }
    if literal.is_empty() {
        return Ok(Resource::Entities(name.to_owned()));
    }
    let (partition_key, row_key) = keys(literal).ok_or_else(bad_key)?;
    Ok(Resource::Entity {
        table: name.to_owned(),
        partition_key,
        row_key,
    })
}

/// Splits `name(literal)`; the literal is `None` without parentheses.
fn split_brackets(path: &str) -> Result<(&str, Option<&str>), StorageError> {
    let Some((name, rest)) = path.split_once('(') else {
        return Ok((path, None));
    };
    let literal = rest.strip_suffix(')').ok_or_else(bad_key)?;
    Ok((name, Some(literal)))
}

fn table_of(literal: &str) -> Result<Resource, StorageError> {
    if literal.is_empty() {
        return Ok(Resource::Tables);
    }
    let unnamed = literal
        .strip_prefix("TableName")
        .and_then(|rest| rest.trim_start().strip_prefix('='))
        .map_or(literal, str::trim_start);
    match quoted(unnamed) {
        Some((name, rest)) if rest.trim().is_empty() => Ok(Resource::Table(name)),
        _ => Err(bad_key()),
    }
}

/// Parses `PartitionKey='..',RowKey='..'` in either order, with white space around each piece.
fn keys(literal: &str) -> Option<(String, String)> {
    let (first, value, rest) = named(literal)?;
    let (second, other, rest) = named(rest.trim_start().strip_prefix(',')?)?;
    if !rest.trim().is_empty() {
        return None;
    }
    match (first, second) {
        (PARTITION_KEY, ROW_KEY) => Some((value, other)),
        (ROW_KEY, PARTITION_KEY) => Some((other, value)),
        _ => None,
    }
}

/// Parses a name and its literal; returns them and the rest.
fn named(text: &str) -> Option<(&str, String, &str)> {
    let (name, rest) = text.split_once('=')?;
    let (value, rest) = quoted(rest.trim_start())?;
    Some((name.trim(), value, rest))
}

/// Parses a quoted literal at the start and undoubles its quotes; returns it and the rest.
pub(crate) fn quoted(text: &str) -> Option<(String, &str)> {
    let mut rest = text.strip_prefix('\'')?;
    let mut value = String::new();
    loop {
        let (piece, behind) = rest.split_once('\'')?;
        value.push_str(piece);
        match behind.strip_prefix('\'') {
            Some(more) => {
                value.push('\'');
                rest = more;
            }
            None => return Some((value, behind)),
        }
    }
}

fn bad_key() -> StorageError {
    StorageError::new(ErrorCode::InvalidInput)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::key::{check_key, entity_path, table_path};
    use proptest::prelude::*;

    fn entity(table: &str, partition_key: &str, row_key: &str) -> Resource {
        Resource::Entity {
            table: table.to_owned(),
            partition_key: partition_key.to_owned(),
            row_key: row_key.to_owned(),
        }
    }

    #[test]
    fn paths_are_parsed() {
        for (path, expected) in [
            ("", Resource::Service),
            ("/", Resource::Service),
            ("$batch", Resource::Batch),
            ("%24batch", Resource::Batch),
            ("Tables", Resource::Tables),
            ("Tables()", Resource::Tables),
            ("tables", Resource::Tables),
            ("Tables('abc')", Resource::Table("abc".to_owned())),
            ("Tables%28%27abc%27%29", Resource::Table("abc".to_owned())),
            ("Tables(TableName='abc')", Resource::Table("abc".to_owned())),
            ("abc", Resource::Entities("abc".to_owned())),
            ("/abc()", Resource::Entities("abc".to_owned())),
            ("a(PartitionKey='p',RowKey='r')", entity("a", "p", "r")),
            ("a(RowKey='r',PartitionKey='p')", entity("a", "p", "r")),
            (
                "a( PartitionKey = 'p' , RowKey = 'r' )",
                entity("a", "p", "r"),
            ),
            (
                "a(PartitionKey='a%27%27%27%27b',RowKey='')",
                entity("a", "a''b", ""),
            ),
            (
                "a(PartitionKey='table%40x,RowKey=''',RowKey='+%2B)')",
                entity("a", "table@x,RowKey='", "++)"),
            ),
        ] {
            assert_eq!(parse_path(path).unwrap(), expected, "{path}");
        }
    }

    #[test]
    fn malformed_paths_are_rejected() {
        use ErrorCode::{InvalidInput, InvalidUri};
        for (path, expected) in [
            ("a/b", InvalidUri),
            ("a%zz", InvalidUri),
            ("a%FF", InvalidUri),
            ("a(", InvalidInput),
            ("a('p'", InvalidInput),
            ("a('p')", InvalidInput),
            ("a(PartitionKey='p')", InvalidInput),
            ("a(PartitionKey='p',PartitionKey='q')", InvalidInput),
            ("a(PartitionKey='p',RowKey='r',X='y')", InvalidInput),
            ("a(PartitionKey=p,RowKey='r')", InvalidInput),
            ("a(PartitionKey='p',RowKey='r')()", InvalidInput),
            ("a(PartitionKey='p''r)", InvalidInput),
            ("Tables(abc)", InvalidInput),
            ("Tables('a','b')", InvalidInput),
        ] {
            let code = parse_path(path).unwrap_err().code();
            assert_eq!(code, expected, "{path}");
        }
    }

    proptest! {
        #[test]
        fn any_path_is_parsed_or_rejected(path in "(Tables|a)?\\(?[a-zA-Z='(), %/]{0,40}\\)?") {
            let _ = parse_path(&path);
        }

        #[test]
        fn addresses_parse_back(
            partition in "[ -\"$-.0->@-\\[\\]-~ü😀]{0,20}",
            row in "['=(),% ]{0,20}",
            name in "[a-z]{3,9}",
        ) {
            prop_assert!(check_key(&partition).is_ok() && check_key(&row).is_ok());
            let read = parse_path(&entity_path(&name, &partition, &row)).unwrap();
            prop_assert_eq!(read, entity(&name, &partition, &row));
            prop_assume!(name != "tables");
            let table = parse_path(&table_path(&name)).unwrap();
            prop_assert_eq!(table, Resource::Table(name));
        }
    }
}
