//! Signatures: Shared Key in the `Authorization` header and shared access signatures (SAS).
//!
//! Both are an HMAC-SHA256 with the account's key over a string put together from the request.
//! Source: *Authorize with Shared Key*, *Create a service SAS*, *Create an account SAS*, *Create a
//! user delegation SAS*.

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

/// Reads what people type as Base64.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The bytes of an account's key, which no log shows.
#[derive(Clone, PartialEq, Eq)]
pub struct AccountKey(Vec<u8>);

impl AccountKey {
    /// Reads the Base64 of a key. `None` for anything else, the empty key included.
    ///
    /// Keys of emulators are made up by hand: padding may be missing, trailing bits may be set,
    /// and the alphabet for URLs is read too, as Node.js (and with it Azurite) reads Base64.
    pub fn parse(text: &str) -> Option<Self> {
        let standard = text.trim().replace('-', "+").replace('_', "/");
        let bytes = LENIENT.decode(standard).ok()?;
        (!bytes.is_empty()).then_some(AccountKey(bytes))
    }

    /// The bytes to sign with.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The key as its owner writes it.
    pub fn to_base64(&self) -> String {
        BASE64.encode(&self.0)
    }
}

impl fmt::Debug for AccountKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AccountKey(redacted)")
    }
}

/// The signature of `text`: Base64 of its HMAC-SHA256. `key` is the decoded key.
pub fn sign(key: &[u8], text: &str) -> String {
    BASE64.encode(mac(key, text))
}

/// Whether `signature` (Base64) is that of `text`, in a time that does not depend on where they
/// differ.
pub fn verify(key: &[u8], text: &str, signature: &str) -> bool {
    let Ok(given) = BASE64.decode(signature) else {
        return false;
    };
    mac(key, text).as_slice().ct_eq(&given).into()
}

/// The HMAC-SHA256 of `text`.
pub fn mac(key: &[u8], text: &str) -> [u8; 32] {
    // HMAC takes keys of any length: there is no error to report.
    let Ok(mut hmac) = Hmac::<Sha256>::new_from_slice(key) else {
        return [0; 32];
    };
    hmac.update(text.as_bytes());
    hmac.finalize().into_bytes().into()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The public key of the emulators' account.
    pub(crate) fn key() -> AccountKey {
        AccountKey::parse(crate::connection_string::EMULATOR_ACCOUNT_KEY).unwrap()
    }

    #[test]
    fn verifies_its_own_signature_and_no_other() {
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
    fn keys_are_read_and_never_shown() {
        assert_eq!(key().as_bytes().len(), 64);
        assert_eq!(
            key().to_base64(),
            crate::connection_string::EMULATOR_ACCOUNT_KEY
        );
        assert_eq!(format!("{:?}", key()), "AccountKey(redacted)");
        assert_eq!(AccountKey::parse(""), None);
        assert_eq!(AccountKey::parse("?"), None);
        // What Node.js reads from these: no padding, the alphabet for URLs, trailing bits.
        let made_up = AccountKey::parse("testing_key").unwrap();
        assert_eq!(
            made_up.as_bytes(),
            [0xb5, 0xeb, 0x2d, 0x8a, 0x78, 0x3f, 0x91, 0xec]
        );
    }
}
