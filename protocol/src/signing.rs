//! Signatures: Shared Key in the `Authorization` header, and shared access signatures (SAS).
//!
//! Both are an HMAC-SHA256 with the account's key over a string built from the request. Source:
//! *Authorize with Shared Key*, *Create a service SAS*, *Create an account SAS*, *Create a user
//! delegation SAS*.

pub mod permissions;
pub mod sas;
pub mod shared_key;

use std::fmt;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD as BASE64};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use subtle::ConstantTimeEq as _;

/// Accepts missing padding and trailing bits.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The decoded key of an account. Its `Debug` output does not contain the key.
#[derive(Clone, PartialEq, Eq)]
pub struct AccountKey(Vec<u8>);

impl AccountKey {
    /// Decodes a key from Base64. Returns `None` for anything else and for an empty key.
    ///
    /// Emulator keys are often made up by hand: padding may be missing, trailing bits may be set,
    /// and the URL-safe alphabet is accepted too, as Node.js (and so Azurite) decodes Base64.
    pub fn parse(text: &str) -> Option<Self> {
        let standard = text.trim().replace('-', "+").replace('_', "/");
        let bytes = LENIENT.decode(standard).ok()?;
        (!bytes.is_empty()).then_some(AccountKey(bytes))
    }

    /// Returns the bytes to sign with.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the key in Base64, as in a connection string.
    pub fn to_base64(&self) -> String {
        BASE64.encode(&self.0)
    }
}

impl fmt::Debug for AccountKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AccountKey(redacted)")
    }
}

/// Signs `text` with the decoded `key`: returns the Base64 of its HMAC-SHA256.
pub fn sign(key: &[u8], text: &str) -> String {
    BASE64.encode(mac(key, text))
}

/// Returns whether `signature` (Base64) is the signature of `text`. Compares in constant time.
pub fn verify(key: &[u8], text: &str, signature: &str) -> bool {
    let Ok(given) = BASE64.decode(signature) else {
        return false;
    };
    mac(key, text).as_slice().ct_eq(&given).into()
}

/// Returns whether two texts are the same, in a time that depends on their lengths only.
pub fn is_same(one: &str, other: &str) -> bool {
    one.as_bytes().ct_eq(other.as_bytes()).into()
}

/// Returns the HMAC-SHA256 of `text`.
pub fn mac(key: &[u8], text: &str) -> [u8; 32] {
    // HMAC accepts keys of any length, so this cannot fail.
    let Ok(mut hmac) = Hmac::<Sha256>::new_from_slice(key) else {
        return [0; 32];
    };
    hmac.update(text.as_bytes());
    hmac.finalize().into_bytes().into()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Returns the public key of the emulator account.
    pub(crate) fn key() -> AccountKey {
        AccountKey::parse(crate::connection_string::EMULATOR_ACCOUNT_KEY).unwrap()
    }

    #[test]
    fn verifies_its_own_signature_only() {
        let key = key();
        let signature = sign(key.as_bytes(), "text");
        assert!(verify(key.as_bytes(), "text", &signature));
        assert!(!verify(key.as_bytes(), "test", &signature));
        assert!(!verify(b"other", "text", &signature));
        for bad in ["", "not Base64!", "AAAA", "REDACTED"] {
            assert!(!verify(key.as_bytes(), "text", bad), "{bad}");
        }
    }

    #[test]
    fn keys_are_parsed_and_never_displayed() {
        assert_eq!(key().as_bytes().len(), 64);
        assert_eq!(
            key().to_base64(),
            crate::connection_string::EMULATOR_ACCOUNT_KEY
        );
        assert_eq!(format!("{:?}", key()), "AccountKey(redacted)");
        assert_eq!(AccountKey::parse(""), None);
        assert_eq!(AccountKey::parse("?"), None);
        // Node.js decodes these too: no padding, the URL-safe alphabet, trailing bits.
        let made_up = AccountKey::parse("testing_key").unwrap();
        assert_eq!(
            made_up.as_bytes(),
            [0xb5, 0xeb, 0x2d, 0x8a, 0x78, 0x3f, 0x91, 0xec]
        );
    }
}
