//! Names of accounts, containers, queues, blobs and metadata, validated as Azure does.
//!
//! Sources: *Naming and Referencing Containers, Blobs, and Metadata*, *Naming Queues and Metadata*.
//! The codes come from recordings: a name of a forbidden length is 400 `OutOfRangeInput`, one with
//! forbidden characters 400 `InvalidResourceName`. Lengths are counted in UTF-16 units, as the
//! service counts them.

use std::ops::RangeInclusive;

use crate::error::{ErrorCode, StorageError};
use crate::limits;

/// Container names that the ordinary rules would reject.
pub const SPECIAL_CONTAINERS: [&str; 4] = ["$root", "$web", "$logs", "$blobchangefeed"];
/// The container that a path with one segment addresses.
pub const ROOT_CONTAINER: &str = "$root";

/// Checks a container's name; the special names are valid.
///
/// # Errors
/// 400 `OutOfRangeInput` for its length, 400 `InvalidResourceName` for its characters.
pub fn validate_container_name(name: &str) -> Result<(), StorageError> {
    if SPECIAL_CONTAINERS.contains(&name) {
        return Ok(());
    }
    check_length(name, &limits::CONTAINER_NAME_CHARS)?;
    check_dashed(name)
}

/// Checks a queue's name.
///
/// # Errors
/// 400 `OutOfRangeInput` for its length, 400 `InvalidResourceName` for its characters.
pub fn validate_queue_name(name: &str) -> Result<(), StorageError> {
    check_length(name, &limits::QUEUE_NAME_CHARS)?;
    check_dashed(name)
}

/// Checks a blob's name (decoded). Every character except control characters is allowed. A name
/// that ends in `.` or `/` is valid, though discouraged.
///
/// # Errors
/// 400 `OutOfRangeInput` for its length or number of segments, 400 `InvalidResourceName` for a
/// control character.
pub fn validate_blob_name(name: &str) -> Result<(), StorageError> {
    check_length(name, &limits::BLOB_NAME_CHARS)?;
    if name.split('/').count() > limits::BLOB_NAME_SEGMENTS_MAX {
        return Err(ErrorCode::OutOfRangeInput.into());
    }
    refuse(name.chars().any(|c| c < ' ' || c == '\u{81}'))
}

/// Checks an account's name: lower-case letters and digits.
///
/// # Errors
/// 400 `OutOfRangeInput` for its length, 400 `InvalidResourceName` for its characters.
pub fn validate_account_name(name: &str) -> Result<(), StorageError> {
    check_length(name, &limits::ACCOUNT_NAME_CHARS)?;
    refuse(!name.bytes().all(is_lower_or_digit))
}

/// Checks a metadata name: a C# identifier. Header names are ASCII, so only ASCII can occur.
///
/// # Errors
/// 400 `EmptyMetadataKey` when empty, 400 `InvalidMetadata` for anything but an identifier.
pub fn validate_metadata_name(name: &str) -> Result<(), StorageError> {
    let Some(first) = name.bytes().next() else {
        return Err(ErrorCode::EmptyMetadataKey.into());
    };
    let word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    if first.is_ascii_digit() || !name.bytes().all(word) {
        return Err(ErrorCode::InvalidMetadata.into());
    }
    Ok(())
}

fn check_length(name: &str, permitted: &RangeInclusive<usize>) -> Result<(), StorageError> {
    if permitted.contains(&name.encode_utf16().count()) {
        Ok(())
    } else {
        Err(ErrorCode::OutOfRangeInput.into())
    }
}

/// Allows lower-case letters, digits and single dashes, with no dash at either end.
fn check_dashed(name: &str) -> Result<(), StorageError> {
    let characters = name.bytes().all(|b| is_lower_or_digit(b) || b == b'-');
    let dashes = name.starts_with('-') || name.ends_with('-') || name.contains("--");
    refuse(!characters || dashes)
}

fn is_lower_or_digit(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

fn refuse(bad: bool) -> Result<(), StorageError> {
    if bad {
        Err(ErrorCode::InvalidResourceName.into())
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn code(result: Result<(), StorageError>) -> Option<ErrorCode> {
        result.err().map(|error| error.code())
    }

    #[test]
    fn containers_and_queues() {
        use ErrorCode::{InvalidResourceName, OutOfRangeInput};
        let long = "a".repeat(63);
        let longer = "a".repeat(64);
        for (name, expected) in [
            ("abc", None),
            ("a-b-c9", None),
            ("012", None),
            (long.as_str(), None),
            (longer.as_str(), Some(OutOfRangeInput)),
            ("ab", Some(OutOfRangeInput)),
            ("", Some(OutOfRangeInput)),
            ("foo bar", Some(InvalidResourceName)),
            ("Abc", Some(InvalidResourceName)),
            ("a--b", Some(InvalidResourceName)),
            ("-ab", Some(InvalidResourceName)),
            ("ab-", Some(InvalidResourceName)),
            ("a_b", Some(InvalidResourceName)),
            ("啊齄丂狛狜", Some(InvalidResourceName)),
            ("$rooter", Some(InvalidResourceName)),
        ] {
            assert_eq!(code(validate_container_name(name)), expected, "{name}");
            assert_eq!(code(validate_queue_name(name)), expected, "{name}");
        }
        for name in SPECIAL_CONTAINERS {
            assert_eq!(code(validate_container_name(name)), None);
            assert_eq!(code(validate_queue_name(name)), Some(InvalidResourceName));
        }
    }

    #[test]
    fn blobs() {
        use ErrorCode::{InvalidResourceName, OutOfRangeInput};
        for (name, expected) in [
            ("a", None),
            ("A b/ü/😀?#%", None),
            ("ends.", None),
            ("ends/", None),
            ("//", None),
            ("", Some(OutOfRangeInput)),
            ("a\nb", Some(InvalidResourceName)),
            ("a\0", Some(InvalidResourceName)),
            ("\u{81}", Some(InvalidResourceName)),
            ("\u{ffff}", None),
        ] {
            assert_eq!(code(validate_blob_name(name)), expected, "{name:?}");
        }
        assert_eq!(code(validate_blob_name(&"b".repeat(1024))), None);
        assert_eq!(
            code(validate_blob_name(&"b".repeat(1025))),
            Some(OutOfRangeInput)
        );
        assert_eq!(code(validate_blob_name(&"😀".repeat(512))), None);
        assert_eq!(
            code(validate_blob_name(&"😀".repeat(513))),
            Some(OutOfRangeInput)
        );
        assert_eq!(code(validate_blob_name(&"a/".repeat(253))), None);
        assert_eq!(
            code(validate_blob_name(&"a/".repeat(254))),
            Some(OutOfRangeInput)
        );
    }

    #[test]
    fn accounts_and_metadata() {
        use ErrorCode::{EmptyMetadataKey, InvalidMetadata, InvalidResourceName, OutOfRangeInput};
        for (name, expected) in [
            ("devstoreaccount1", None),
            ("ab", Some(OutOfRangeInput)),
            ("abcdefghijklmnopqrstuvwxy", Some(OutOfRangeInput)),
            ("with-dash", Some(InvalidResourceName)),
            ("Upper", Some(InvalidResourceName)),
        ] {
            assert_eq!(code(validate_account_name(name)), expected, "{name}");
        }
        for (name, expected) in [
            ("hello", None),
            ("_x9", None),
            ("UPPER", None),
            ("", Some(EmptyMetadataKey)),
            ("9x", Some(InvalidMetadata)),
            ("a-b", Some(InvalidMetadata)),
            ("a.b", Some(InvalidMetadata)),
            ("ä", Some(InvalidMetadata)),
        ] {
            assert_eq!(code(validate_metadata_name(name)), expected, "{name}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_accepted_or_rejected(text in ".{0,80}") {
            for check in [
                validate_container_name, validate_queue_name, validate_blob_name,
                validate_account_name, validate_metadata_name,
            ] {
                prop_assert!(check(&text).err().is_none_or(|error| error.status() == 400));
            }
        }
    }
}
