//! Public keys that verify the signatures of tokens: a JSON Web Key Set, as Microsoft Entra ID
//! publishes one.
//!
//! Sources: RFC 7515 (signatures), RFC 7517 (key sets), RFC 7518 (`RS256`, `ES256`).

use base64::Engine as _;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey,
};
use serde::Deserialize;

use super::token::BASE64_URL;

/// Length in bytes of a coordinate of a P-256 key.
const COORDINATE: usize = 32;

/// A set of public keys, each of which has an id.
#[derive(Clone, Debug, Default)]
pub struct KeySet(Vec<PublicKey>);

/// The reason why a key set cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeySetError {
    /// The text is not a JSON Web Key Set.
    #[error("not a JSON Web Key Set: {0}")]
    Json(#[from] serde_json::Error),
    /// A key lacks a member, or has an invalid one.
    #[error("key `{0}`: `{1}` is missing or invalid")]
    Member(String, &'static str),
    /// No key of the set can verify a token.
    #[error("it has no key for RS256 or ES256 with a `kid`")]
    Empty,
}

#[derive(Clone, Debug)]
struct PublicKey {
    id: String,
    kind: KeyKind,
}

#[derive(Clone, Debug)]
enum KeyKind {
    /// Modulus and exponent, big-endian.
    Rsa(Vec<u8>, Vec<u8>),
    /// An uncompressed point.
    P256(Vec<u8>),
}

#[derive(Deserialize)]
struct JsonKeys {
    keys: Vec<JsonKey>,
}

#[derive(Deserialize)]
struct JsonKey {
    kty: String,
    kid: Option<String>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

/// The header of a token.
#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
}

impl KeySet {
    /// Parses a key set. Skips keys without an id and keys of other kinds, as RFC 7517 asks.
    ///
    /// # Errors
    /// When the text is not a key set, a key is malformed, or no key is left.
    pub fn parse(json: &[u8]) -> Result<Self, KeySetError> {
        let parsed: JsonKeys = serde_json::from_slice(json)?;
        let mut keys = Vec::new();
        for key in &parsed.keys {
            let Some(id) = key.kid.clone() else { continue };
            let member = |name: &'static str, text: &Option<String>| {
                let bytes = text.as_ref().and_then(|text| BASE64_URL.decode(text).ok());
                let bytes = bytes.filter(|bytes| !bytes.is_empty());
                bytes.ok_or_else(|| KeySetError::Member(id.clone(), name))
            };
            let kind = match (key.kty.as_str(), key.crv.as_deref()) {
                ("RSA", _) => KeyKind::Rsa(member("n", &key.n)?, member("e", &key.e)?),
                ("EC", Some("P-256")) => {
                    let (x, y) = (member("x", &key.x)?, member("y", &key.y)?);
                    for (name, bytes) in [("x", &x), ("y", &y)] {
                        if bytes.len() != COORDINATE {
                            return Err(KeySetError::Member(id, name));
                        }
                    }
                    KeyKind::P256([&[4], x.as_slice(), &y].concat())
                }
                _ => continue,
            };
            keys.push(PublicKey { id, kind });
        }
        if keys.is_empty() {
            return Err(KeySetError::Empty);
        }
        Ok(KeySet(keys))
    }

    /// Returns a set of one P-256 key, given as an uncompressed point.
    pub(super) fn of_point(id: &str, point: &[u8]) -> Self {
        KeySet(vec![PublicKey {
            id: id.to_owned(),
            kind: KeyKind::P256(point.to_vec()),
        }])
    }

    /// Returns whether a key with this id verifies the signature.
    fn is_valid(&self, header: &Header, message: &[u8], signature: &[u8]) -> bool {
        let named = self
            .0
            .iter()
            .filter(|key| Some(&key.id) == header.kid.as_ref());
        let mut verified = named.map(|key| match (&key.kind, header.alg.as_str()) {
            (KeyKind::Rsa(n, e), "RS256") => RsaPublicKeyComponents { n, e }
                .verify(&RSA_PKCS1_2048_8192_SHA256, message, signature)
                .is_ok(),
            (KeyKind::P256(point), "ES256") => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point)
                    .verify(message, signature)
                    .is_ok()
            }
            _ => false,
        });
        verified.any(|is_valid| is_valid)
    }
}

/// Checks that a key of one of these sets signed the token. The key, and not the token, decides the
/// algorithm.
///
/// # Errors
/// The error detail for the client.
pub fn verify(token: &str, sets: &[&KeySet]) -> Result<(), &'static str> {
    let invalid = "Signature validation failed. The signature is malformed.";
    let (message, signature) = token.rsplit_once('.').ok_or(invalid)?;
    let (header, _) = message.split_once('.').ok_or(invalid)?;
    let header = BASE64_URL.decode(header).map_err(|_| invalid)?;
    let header: Header = serde_json::from_slice(&header).map_err(|_| invalid)?;
    let signature = BASE64_URL.decode(signature).map_err(|_| invalid)?;
    let is_valid = |set: &&KeySet| set.is_valid(&header, message.as_bytes(), &signature);
    if sets.iter().any(is_valid) {
        Ok(())
    } else {
        Err("Signature validation failed. No known key verifies the signature.")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 7515, appendix A.2: a token and its RS256 key.
    const RFC_TOKEN: &str = "\
        eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9\
        leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2Vt\
        Qgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKB\
        YNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN\
        9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI\
        8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw";
    const RFC_N: &str = "\
        ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJ\
        PMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0\
        LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uD\
        Zlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2\
        PAcDTW9gb54h4FRWyuXpoQ";

    #[test]
    fn rsa_signature_of_the_rfc_is_valid_and_needs_its_key_id() {
        let (message, signature) = RFC_TOKEN.rsplit_once('.').unwrap();
        let mut signature = BASE64_URL.decode(signature).unwrap();
        let json = format!(
            r#"{{"keys":[{{"kty":"oct","kid":"a","k":"AA"}},
                {{"kty":"RSA","kid":"a","use":"sig","n":"{RFC_N}","e":"AQAB"}}]}}"#
        );
        let set = KeySet::parse(json.as_bytes()).unwrap();
        let header = |alg: &str, kid: Option<&str>| Header {
            alg: alg.to_owned(),
            kid: kid.map(str::to_owned),
        };
        let check =
            |header: &Header, signature: &[u8]| set.is_valid(header, message.as_bytes(), signature);
        assert!(check(&header("RS256", Some("a")), &signature));
        for (alg, kid) in [
            ("RS256", Some("b")),
            ("RS256", None),
            ("ES256", Some("a")),
            ("HS256", Some("a")),
            ("none", Some("a")),
        ] {
            assert!(!check(&header(alg, kid), &signature), "{alg} {kid:?}");
        }
        // The token itself names no key.
        assert!(verify(RFC_TOKEN, &[&set]).is_err());
        signature[0] ^= 1;
        assert!(!check(&header("RS256", Some("a")), &signature));
        assert!(!check(&header("RS256", Some("a")), &[]));
    }

    #[test]
    fn unusable_key_sets_are_refused() {
        let x = BASE64_URL.encode([1; 32]);
        for (json, reason) in [
            ("[]".to_owned(), "not a JSON Web Key Set"),
            (r#"{"keys":[]}"#.to_owned(), "no key"),
            (
                r#"{"keys":[{"kty":"EC","crv":"P-384","kid":"a"}]}"#.to_owned(),
                "no key",
            ),
            (
                format!(r#"{{"keys":[{{"kty":"RSA","n":"{RFC_N}","e":"AQAB"}}]}}"#),
                "no key",
            ),
            (
                r#"{"keys":[{"kty":"RSA","kid":"a","e":"AQAB"}]}"#.to_owned(),
                "`n`",
            ),
            (
                format!(
                    r#"{{"keys":[{{"kty":"EC","crv":"P-256","kid":"a","x":"{x}","y":"AA"}}]}}"#
                ),
                "`y`",
            ),
        ] {
            let error = KeySet::parse(json.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(reason), "{json}: {error}");
        }
    }
}
