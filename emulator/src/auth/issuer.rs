//! smalt's own issuer of tokens, in place of Microsoft Entra ID.
//!
//! Its key is made when it is first used, and ends with the process: so no file, snapshot or export
//! of the state holds a secret, and a token does not outlive the emulator that it was made for.

use std::sync::OnceLock;

use base64::Engine as _;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::key_set::KeySet;
use super::token::{BASE64_URL, TENANT_ISSUER};

/// Object id and tenant of the emulator's only identity.
pub const IDENTITY: Uuid = Uuid::from_u128(1);

/// The issuer of one emulator and its forks.
#[derive(Default)]
pub struct Issuer(OnceLock<Option<Signer>>);

/// The system has no random numbers, without which there is no key and no signature.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("cannot sign a token: the operating system gives no random numbers")]
pub struct NoEntropy;

/// What a token says, besides its issuer.
#[derive(Clone, Copy, Debug)]
pub struct Statement<'a> {
    /// The resource for which the token is.
    pub audience: &'a str,
    /// Tenant of the user, which its issuer names.
    pub tenant: Uuid,
    /// Object id of the user, and client id of the application.
    pub principal: Uuid,
    /// Begin of its lifetime, in seconds since 1970.
    pub begins_s: u64,
    /// End of its lifetime, in seconds since 1970.
    pub ends_s: u64,
}

struct Signer {
    pair: EcdsaKeyPair,
    random: SystemRandom,
    id: String,
    keys: KeySet,
}

impl Signer {
    fn new() -> Option<Self> {
        let random = SystemRandom::new();
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let made = EcdsaKeyPair::generate_pkcs8(algorithm, &random).ok()?;
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, made.as_ref(), &random).ok()?;
        let point = pair.public_key().as_ref();
        let id = BASE64_URL.encode(Sha256::digest(point));
        let keys = KeySet::of_point(&id, point);
        Some(Signer {
            pair,
            random,
            id,
            keys,
        })
    }
}

impl Issuer {
    /// Returns the name of the issuer for a tenant, as tokens have it in `iss`.
    pub fn name(tenant: Uuid) -> String {
        format!("{TENANT_ISSUER}{tenant}/")
    }

    /// Returns the public key, which verifies what [`Issuer::sign`] returns.
    ///
    /// # Errors
    /// When the key cannot be made.
    pub fn keys(&self) -> Result<&KeySet, NoEntropy> {
        self.signer().map(|signer| &signer.keys)
    }

    /// Returns the public key as a JSON Web Key Set.
    ///
    /// # Errors
    /// When the key cannot be made.
    pub fn published(&self) -> Result<Value, NoEntropy> {
        let signer = self.signer()?;
        // An uncompressed point: 4, then both coordinates.
        let point = signer.pair.public_key().as_ref();
        let coordinates = point.get(1..).unwrap_or_default();
        let (x, y) = coordinates.split_at(coordinates.len() / 2);
        Ok(json!({ "keys": [{
            "kty": "EC",
            "use": "sig",
            "alg": "ES256",
            "kid": signer.id,
            "crv": "P-256",
            "x": BASE64_URL.encode(x),
            "y": BASE64_URL.encode(y),
        }] }))
    }

    /// Returns a token that says this.
    ///
    /// # Errors
    /// When the key or the signature cannot be made.
    pub fn sign(&self, statement: &Statement<'_>) -> Result<String, NoEntropy> {
        let signer = self.signer()?;
        let principal = statement.principal.to_string();
        let header = json!({ "typ": "JWT", "alg": "ES256", "kid": signer.id });
        let claims = json!({
            "aud": statement.audience,
            "iss": Self::name(statement.tenant),
            "iat": statement.begins_s,
            "nbf": statement.begins_s,
            "exp": statement.ends_s,
            "appid": principal,
            "idtyp": "app",
            "oid": principal,
            "sub": principal,
            "tid": statement.tenant.to_string(),
            "ver": "1.0",
        });
        let encode = |part: &Value| BASE64_URL.encode(part.to_string());
        let message = format!("{}.{}", encode(&header), encode(&claims));
        let signature = signer.pair.sign(&signer.random, message.as_bytes());
        let signature = signature.map_err(|_| NoEntropy)?;
        Ok(format!("{message}.{}", BASE64_URL.encode(signature)))
    }

    fn signer(&self) -> Result<&Signer, NoEntropy> {
        self.0.get_or_init(Signer::new).as_ref().ok_or(NoEntropy)
    }
}

#[cfg(test)]
mod tests {
    use super::super::key_set::verify;
    use super::*;

    fn sign(issuer: &Issuer) -> String {
        let statement = Statement {
            audience: "https://storage.azure.com",
            tenant: Uuid::from_u128(1),
            principal: Uuid::from_u128(2),
            begins_s: 1,
            ends_s: 2,
        };
        issuer.sign(&statement).unwrap()
    }

    #[test]
    fn published_key_verifies_own_tokens_only() {
        let (issuer, other) = (Issuer::default(), Issuer::default());
        let published = issuer.published().unwrap().to_string();
        let published = KeySet::parse(published.as_bytes()).unwrap();
        let token = sign(&issuer);
        for keys in [&published, issuer.keys().unwrap()] {
            assert_eq!(verify(&token, &[keys]), Ok(()));
            assert!(verify(&sign(&other), &[keys]).is_err());
        }
        assert_eq!(verify(&token, &[other.keys().unwrap(), &published]), Ok(()));
        assert!(verify(&token, &[]).is_err());
    }
}
