//! Index tags of a blob.
//!
//! Source: "Set Blob Tags". At most ten; keys of 1 to 128 characters, values of up to 256; letters,
//! digits, space and `+ - . / : = _`. Tags are case-sensitive.

use smalt_protocol::limits::{TAG_KEY_CHARS, TAG_VALUE_CHARS, TAGS_MAX};
use smalt_protocol::{ErrorCode, StorageError};

/// Validates tags and sorts them by key, the order in which Azure lists them.
///
/// # Errors
/// 400 `TagsTooLarge` for too many or too long tags, 400 `EmptyTagName`, 400 `InvalidTag` for a
/// character that is not permitted, 400 `DuplicateTagNames`.
pub fn validate(mut tags: Vec<(String, String)>) -> Result<Vec<(String, String)>, StorageError> {
    if tags.len() > TAGS_MAX {
        return Err(ErrorCode::TagsTooLarge.into());
    }
    for (at, (key, value)) in tags.iter().enumerate() {
        if key.is_empty() {
            return Err(ErrorCode::EmptyTagName.into());
        }
        if !(key.chars().all(is_permitted) && value.chars().all(is_permitted)) {
            return Err(ErrorCode::InvalidTag.into());
        }
        // All characters are known to be ASCII, so bytes are characters.
        if !TAG_KEY_CHARS.contains(&key.len()) || !TAG_VALUE_CHARS.contains(&value.len()) {
            return Err(ErrorCode::TagsTooLarge.into());
        }
        if tags[..at].iter().any(|(earlier, _)| earlier == key) {
            return Err(ErrorCode::DuplicateTagNames.into());
        }
    }
    tags.sort_unstable();
    Ok(tags)
}

pub(super) fn is_permitted(c: char) -> bool {
    c.is_ascii_alphanumeric() || " +-./:=_".contains(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(tags: &[(&str, &str)]) -> Option<ErrorCode> {
        let tags = tags.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
        validate(tags.collect()).err().map(|error| error.code())
    }

    #[test]
    fn tags_are_sorted_by_key() {
        let given = ["b", "a1", "a"].map(|key| (key.to_owned(), String::new()));
        let kept = validate(given.to_vec()).unwrap();
        assert!(
            kept.iter()
                .map(|(key, _)| key.as_str())
                .eq(["a", "a1", "b"])
        );
    }

    #[test]
    fn tags_are_accepted_or_rejected() {
        let ten: Vec<String> = (0..10).map(|n| n.to_string()).collect();
        let ten: Vec<_> = ten.iter().map(|key| (key.as_str(), "1")).collect();
        let (key, value) = ("k".repeat(128), "v".repeat(256));
        let (long_key, long_value) = ("k".repeat(129), "v".repeat(257));
        for (tags, expected) in [
            (&[("a", "1"), ("A", "1")][..], None),
            (&[("tag name", "a/b:c=d_e-f.g+h")], None),
            (&[("a", "")], None),
            (&[(key.as_str(), value.as_str())], None),
            (&[], None),
            (ten.as_slice(), None),
            (&[("", "1")], Some(ErrorCode::EmptyTagName)),
            (
                &[("a", "1"), ("a", "2")],
                Some(ErrorCode::DuplicateTagNames),
            ),
            (&[("a*", "1")], Some(ErrorCode::InvalidTag)),
            (&[("a", "ü")], Some(ErrorCode::InvalidTag)),
            (&[(long_key.as_str(), "1")], Some(ErrorCode::TagsTooLarge)),
            (&[("a", long_value.as_str())], Some(ErrorCode::TagsTooLarge)),
            (&[("a", "1"); 11], Some(ErrorCode::TagsTooLarge)),
        ] {
            assert_eq!(code(tags), expected, "{tags:?}");
        }
    }
}
