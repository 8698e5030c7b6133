//! Partition keys and row keys: what they may hold, and their literals in URLs.
//!
//! Source: *Understanding the Table Service Data Model*, characters disallowed in key fields.

use crate::error::{ErrorCode, StorageError};
use crate::limits::KEY_CHARS_MAX;
use crate::uri;

/// Checks a partition key or row key. The empty text is one.
///
/// # Errors
/// 400 `KeyValueTooLarge` beyond 512 characters of UTF-16, 400 `OutOfRangeInput` for `/ \ # ?` and
/// control characters.
pub fn check_key(key: &str) -> Result<(), StorageError> {
    if key.encode_utf16().count() > KEY_CHARS_MAX {
        return Err(ErrorCode::KeyValueTooLarge.into());
    }
    if key.chars().any(is_forbidden) {
        let message = "One of the request inputs is out of range.";
        return Err(StorageError::new(ErrorCode::OutOfRangeInput).with_message(message));
    }
    Ok(())
}

const fn is_forbidden(c: char) -> bool {
    matches!(c, '/' | '\\' | '#' | '?' | '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}')
}

/// `'O''Neil'`: a text as a literal, in filters and addresses.
pub fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// `Products(PartitionKey='a%20b',RowKey='c')`: the address of an entity within its service, each
/// key percent-encoded, a quote in it doubled before.
pub fn entity_path(table: &str, partition_key: &str, row_key: &str) -> String {
    let literal = |key: &str| uri::encode_query(&key.replace('\'', "''"));
    format!(
        "{table}(PartitionKey='{}',RowKey='{}')",
        literal(partition_key),
        literal(row_key)
    )
}

/// `Tables('products')`: the address of a table within its service.
pub fn table_path(table: &str) -> String {
    format!("Tables('{table}')")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_checked() {
        use ErrorCode::{KeyValueTooLarge, OutOfRangeInput};
        let long = "k".repeat(512);
        let longer = "k".repeat(513);
        let wide = "😀".repeat(257);
        for (key, expected) in [
            ("", None),
            ("a b'%&+=\"ü😀", None),
            (long.as_str(), None),
            (longer.as_str(), Some(KeyValueTooLarge)),
            (wide.as_str(), Some(KeyValueTooLarge)),
            ("a/b", Some(OutOfRangeInput)),
            ("a\\b", Some(OutOfRangeInput)),
            ("a#", Some(OutOfRangeInput)),
            ("?", Some(OutOfRangeInput)),
            ("\t", Some(OutOfRangeInput)),
            ("\0", Some(OutOfRangeInput)),
            ("\u{7f}", Some(OutOfRangeInput)),
            ("\u{9f}", Some(OutOfRangeInput)),
            ("\u{a0}", None),
        ] {
            let code = check_key(key).err().map(|error| error.code());
            assert_eq!(code, expected, "{key:?}");
        }
    }
}
