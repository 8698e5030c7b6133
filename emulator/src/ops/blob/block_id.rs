//! Block ids: Base64 on the wire, bytes in the store.
//!
//! Source: "Put Block": at most 64 bytes before encoding, and one length for all blocks of a blob.

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use smalt_protocol::limits::BLOCK_ID_BYTES_MAX;
use smalt_protocol::{ErrorCode, StorageError};

use crate::call::Call;

const PARAMETER: &str = "blockid";

/// Requires padding and ignores the unused last bits: the service accepts what .NET decodes.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

/// Parses the block id in the query.
///
/// # Errors
/// 400 `MissingRequiredQueryParameter` without one, 400 `InvalidQueryParameterValue` for a string
/// that is not Base64, empty or too long.
pub fn of(call: &Call) -> Result<Vec<u8>, StorageError> {
    let text = call
        .query(PARAMETER)
        .ok_or_else(|| StorageError::missing_query(PARAMETER))?;
    let refused = |reason| StorageError::invalid_query(PARAMETER, text, reason);
    let id = BASE64
        .decode(text)
        .map_err(|_| refused("Not a valid base64 string."))?;
    match id.len() {
        0 => Err(refused("Block ID cannot be empty.")),
        length if length > BLOCK_ID_BYTES_MAX => Err(refused("Block ID is too long.")),
        _ => Ok(id),
    }
}

/// Parses the id of an entry of a block list.
///
/// # Errors
/// 400 `InvalidBlockId` for a string that is not Base64.
pub fn of_entry(text: &str) -> Result<Vec<u8>, StorageError> {
    BASE64
        .decode(text)
        .map_err(|_| ErrorCode::InvalidBlockId.into())
}

/// Encodes an id for block lists.
pub fn encode(id: &[u8]) -> String {
    BASE64.encode(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_round_trip_and_invalid_ones_are_rejected() {
        for (text, expected) in [
            ("MQ==", Some(&b"1"[..])),
            // Unused bits are set.
            ("MR==", Some(b"1")),
            ("0000", Some(b"\xd3\x4d\x34")),
            ("MQ", None),
            ("M Q==", None),
            ("-_==", None),
        ] {
            assert_eq!(of_entry(text).ok().as_deref(), expected, "{text}");
        }
        assert_eq!(encode(b"1"), "MQ==");
        let error = of_entry("?").unwrap_err();
        assert_eq!(
            (error.status(), error.code()),
            (400, ErrorCode::InvalidBlockId)
        );
    }
}
