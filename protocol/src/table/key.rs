//! Partition keys and row keys: their validation and their literals in URLs.
//!
//! Source: *Understanding the Table Service Data Model*, characters disallowed in key fields.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::error::{ErrorCode, StorageError};
use crate::limits::KEY_CHARS_MAX;
use crate::table::body::out_of_range;

/// The characters that the service escapes in the keys of an address, as recorded: all but the
/// unreserved characters and marks of RFC 2396.
const KEY: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'!')
    .remove(b'*')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')');

/// Checks a partition key or row key. The empty string is valid.
///
/// # Errors
/// 400 `KeyValueTooLarge` beyond 512 characters of UTF-16, 400 `OutOfRangeInput` for `/ \ # ?` and
/// control characters.
pub fn check_key(key: &str) -> Result<(), StorageError> {
    if key.encode_utf16().count() > KEY_CHARS_MAX {
        return Err(ErrorCode::KeyValueTooLarge.into());
    }
    if key.chars().any(is_forbidden) {
        return Err(out_of_range());
    }
    Ok(())
}

const fn is_forbidden(c: char) -> bool {
    matches!(c, '/' | '\\' | '#' | '?' | '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}')
}

/// Quotes a string as a literal of filters and addresses: `'O''Neil'`.
pub fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Returns the address of an entity within its service, such as
/// `Products(PartitionKey='a%20b',RowKey='c')`. Quotes in keys are doubled, then keys are
/// percent-encoded.
pub fn entity_path(table: &str, partition_key: &str, row_key: &str) -> String {
    let literal = |key: &str| utf8_percent_encode(&quote(key), KEY).to_string();
    let (partition, row) = (literal(partition_key), literal(row_key));
    format!("{table}(PartitionKey={partition},RowKey={row})")
}

/// Returns the address of a table within its service, such as `Tables('products')`.
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

    #[test]
    fn addresses_match_the_recordings() {
        for (partition, row, expected) in [
            (":@", "+,$", "T(PartitionKey='%3A%40',RowKey='%2B%2C%24')"),
            ("=& ", "a'b", "T(PartitionKey='%3D%26%20',RowKey='a''b')"),
            ("ü", "", "T(PartitionKey='%C3%BC',RowKey='')"),
        ] {
            assert_eq!(entity_path("T", partition, row), expected);
        }
        assert_eq!(table_path("MyTable"), "Tables('MyTable')");
    }
}
