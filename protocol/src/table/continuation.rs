//! Continuation tokens: the position of the next page of a query.
//!
//! `x-ms-continuation-NextPartitionKey: 1!8!cGtleQ--` contains the key of the next entity: a format
//! number, the length of the rest, and the text in Base64 with `-` for `=`. A token of the list of
//! tables contains the name in lower case, a character U+0001 and sixteen hexadecimal digits.
//! Source: recordings; to clients a token is opaque.

use base64::Engine as _;
use base64::alphabet::Alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use crate::error::{ErrorCode, StorageError};

/// The format of every recorded token.
const FORMAT: &str = "1!";
/// Maximum length of a token: smalt's own limit, above a key of 512 characters.
const TOKEN_BYTES_MAX: usize = 4 * 1024;
/// Separates a table's name from its creation number.
const SEPARATOR: char = '\u{1}';

/// Base64 whose 62nd and 63rd characters need no escape in a query; no recording shows them.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    match &Alphabet::new("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789*_") {
        Ok(alphabet) => alphabet,
        Err(_) => &base64::alphabet::URL_SAFE,
    },
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::RequireCanonical),
);

/// The position of a page of tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TablePosition {
    /// The table's name in lower case.
    pub key: String,
    /// A number that identifies the table's creation.
    pub created: u64,
}

/// Writes a token.
pub fn write(text: &str) -> String {
    let encoded = BASE64.encode(text).replace('=', "-");
    format!("{FORMAT}{}!{encoded}", encoded.len())
}

/// Parses a token. Also accepts the standard Base64 alphabet and `=`.
///
/// # Errors
/// 400 `InvalidInput` for a token that the service did not issue.
pub fn read(token: &str) -> Result<String, StorageError> {
    decode(token).ok_or_else(|| ErrorCode::InvalidInput.into())
}

/// Writes the token of a page of tables.
pub fn write_table(position: &TablePosition) -> String {
    write(&format!(
        "{}{SEPARATOR}{:016x}",
        position.key, position.created
    ))
}

/// Parses the token of a page of tables.
///
/// # Errors
/// 400 `InvalidInput` for a token that the service did not issue.
pub fn read_table(token: &str) -> Result<TablePosition, StorageError> {
    let text = read(token)?;
    let (key, created) = match text.split_once(SEPARATOR) {
        Some((key, digits)) => (key, u64::from_str_radix(digits, 16)),
        None => (text.as_str(), Ok(0)),
    };
    let created = created.map_err(|_| ErrorCode::InvalidInput)?;
    let key = key.to_owned();
    Ok(TablePosition { key, created })
}

fn decode(token: &str) -> Option<String> {
    let (length, encoded) = token.strip_prefix(FORMAT)?.split_once('!')?;
    if token.len() > TOKEN_BYTES_MAX || length.parse() != Ok(encoded.len()) {
        return None;
    }
    let plain = |c| match c {
        '-' => '=',
        '+' | ' ' => '*',
        '/' => '_',
        other => other,
    };
    let encoded: String = encoded.chars().map(plain).collect();
    String::from_utf8(BASE64.decode(encoded).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn tokens_match_the_recordings() {
        for (text, token) in [
            ("1", "1!4!MQ--"),
            ("binary1", "1!12!YmluYXJ5MQ--"),
            ("contToken", "1!12!Y29udFRva2Vu"),
            ("", "1!0!"),
            (
                "huguesnode\u{1}01d07d13bfbed380",
                "1!36!aHVndWVzbm9kZQEwMWQwN2QxM2JmYmVkMzgw",
            ),
        ] {
            assert_eq!(write(text), token);
            assert_eq!(read(token).as_deref(), Ok(text));
        }
        let position = TablePosition {
            key: "huguesnode".to_owned(),
            created: 0x01d0_7d13_bfbe_d380,
        };
        let token = "1!36!aHVndWVzbm9kZQEwMWQwN2QxM2JmYmVkMzgw";
        assert_eq!(write_table(&position), token);
        assert_eq!(read_table(token), Ok(position));
    }

    #[test]
    fn malformed_tokens_are_rejected() {
        for token in [
            "", "1", "1!", "1!4", "1!4!MQ", "2!4!MQ--", "1!5!MQ--", "1!x!MQ--", "1!4!M?--",
            "1!4!/w==", "1!2!MQ",
        ] {
            assert_eq!(
                read(token).unwrap_err().code(),
                ErrorCode::InvalidInput,
                "{token}"
            );
        }
        assert!(read_table(&write("abc\u{1}x")).is_err());
        assert!(read_table(&write("abc")).is_ok());
    }

    proptest! {
        #[test]
        fn any_key_parses_back(text in ".{0,64}", created in any::<u64>()) {
            let token = write(&text);
            prop_assert!(token.chars().all(|c| c.is_ascii_alphanumeric() || "!*_-".contains(c)));
            prop_assert_eq!(read(&token), Ok(text));
            let position = TablePosition { key: "abc".to_owned(), created };
            prop_assert_eq!(read_table(&write_table(&position)), Ok(position));
        }

        #[test]
        fn any_token_is_parsed_or_rejected(token in "(1!)?[0-9]{0,3}!?[A-Za-z-]{0,20}.{0,5}") {
            let _ = read(&token);
            let _ = read_table(&token);
        }
    }
}
