//! Names of tables: case is kept, and ignored in comparisons.
//!
//! Source: *Understanding the Table Service Data Model*, table names; recordings for the codes.

use std::fmt;

use crate::error::{ErrorCode, StorageError};
use crate::limits::TABLE_NAME_CHARS;
use crate::table::entity::Fields;
use crate::table::value::ValueRef;

/// The one property of a table in the list of tables.
pub const TABLE_NAME: &str = "TableName";
/// The resource that is the list of tables; no table can have this name.
pub const TABLES: &str = "Tables";

/// A valid table name. Names that differ only in case are equal.
#[derive(Clone, Debug)]
pub struct TableName {
    written: String,
    key: String,
}

impl TableName {
    /// Checks a name.
    ///
    /// # Errors
    /// 400 `TableNameEmpty` for an empty name, 400 `OutOfRangeInput` for a length outside 3 to 63
    /// characters, 400 `InvalidResourceName` for anything but ASCII letters and digits, for a
    /// leading digit and for the reserved name.
    pub fn parse(name: &str) -> Result<Self, StorageError> {
        if name.is_empty() {
            return Err(ErrorCode::TableNameEmpty.into());
        }
        let starts = name.starts_with(|c: char| c.is_ascii_alphabetic());
        if !starts || !name.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return Err(ErrorCode::InvalidResourceName.into());
        }
        if !TABLE_NAME_CHARS.contains(&name.len()) {
            return Err(ErrorCode::OutOfRangeInput.into());
        }
        if name.eq_ignore_ascii_case(TABLES) {
            return Err(ErrorCode::InvalidResourceName.into());
        }
        Ok(TableName {
            written: name.to_owned(),
            key: name.to_ascii_lowercase(),
        })
    }

    /// Returns the name as its creator wrote it.
    pub fn as_str(&self) -> &str {
        &self.written
    }

    /// Returns the name in lower case, by which tables are stored, found and listed.
    pub fn key(&self) -> &str {
        &self.key
    }
}

impl PartialEq for TableName {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for TableName {}

impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}

/// An entry of the list of tables, as filters see it.
#[derive(Clone, Copy, Debug)]
pub struct TableRow<'a>(
    /// The table's name as written.
    pub &'a str,
);

impl Fields for TableRow<'_> {
    fn field(&self, name: &str) -> Option<ValueRef<'_>> {
        (name == TABLE_NAME).then_some(ValueRef::String(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked() {
        use ErrorCode::{InvalidResourceName, OutOfRangeInput, TableNameEmpty};
        let long = "a".repeat(63);
        let longer = "a".repeat(64);
        for (name, expected) in [
            ("abc", None),
            ("A1b", None),
            (long.as_str(), None),
            (longer.as_str(), Some(OutOfRangeInput)),
            ("ab", Some(OutOfRangeInput)),
            ("", Some(TableNameEmpty)),
            ("1ab", Some(InvalidResourceName)),
            ("a-b", Some(InvalidResourceName)),
            ("啊齄丂狛狜", Some(InvalidResourceName)),
            ("tAbLeS", Some(InvalidResourceName)),
        ] {
            let code = TableName::parse(name).err().map(|error| error.code());
            assert_eq!(code, expected, "{name}");
        }
    }

    #[test]
    fn names_keep_their_case_but_ignore_it_in_comparisons() {
        let (one, other) = (
            TableName::parse("MyTable").unwrap(),
            TableName::parse("mytable").unwrap(),
        );
        assert_eq!(one, other);
        assert_eq!((one.as_str(), one.key()), ("MyTable", "mytable"));
    }
}
