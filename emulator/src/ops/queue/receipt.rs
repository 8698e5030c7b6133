//! Pop receipts: opaque to clients; they contain the tick of the put, get or update that issued
//! them.
//!
//! Their form is as recorded: 20 bytes from put and get, 24 from update, in Base64.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use smalt_protocol::StorageError;

const TAKEN: [u8; 12] = [2, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0];
const UPDATED: [u8; 12] = [3, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0];
const UPDATED_END: [u8; 4] = [1, 0, 0, 0];

/// Returns the receipt of a put or get.
pub fn taken(tick: u64) -> String {
    let mut bytes = TAKEN.to_vec();
    bytes.extend_from_slice(&tick.to_le_bytes());
    BASE64.encode(bytes)
}

/// Returns the receipt of an update.
pub fn updated(tick: u64) -> String {
    let mut bytes = UPDATED.to_vec();
    bytes.extend_from_slice(&tick.to_le_bytes());
    bytes.extend_from_slice(&UPDATED_END);
    BASE64.encode(bytes)
}

/// Parses the tick of a receipt.
///
/// # Errors
/// 400 `InvalidQueryParameterValue` for a malformed receipt.
pub fn parse(text: &str) -> Result<u64, StorageError> {
    let invalid = || StorageError::invalid_query("popreceipt", text, "Invalid pop receipt format");
    // Some clients do not escape the plus sign, so it arrives as a space.
    let bytes = BASE64
        .decode(text.replace(' ', "+"))
        .map_err(|_| invalid())?;
    let tick = match bytes.len() {
        20 if bytes.starts_with(&TAKEN) => bytes.get(12..20),
        24 if bytes.starts_with(&UPDATED) => bytes.get(12..20),
        _ => None,
    };
    let tick = tick
        .and_then(|tick| tick.try_into().ok())
        .ok_or_else(invalid)?;
    Ok(u64::from_le_bytes(tick))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn receipts_round_trip(tick: u64) {
            prop_assert_eq!(parse(&taken(tick)).unwrap(), tick);
            prop_assert_eq!(parse(&updated(tick)).unwrap(), tick);
        }

        #[test]
        fn any_text_is_parsed_or_rejected(text in ".{0,60}") {
            let _ = parse(&text);
        }
    }
}
