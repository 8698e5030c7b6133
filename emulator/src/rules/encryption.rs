//! Client-requested encryption: a customer-provided key, or a named encryption scope.
//!
//! Sources: "Provide an encryption key on a request to Blob Storage", "Encryption scopes for Blob
//! Storage"; recordings for which requests must repeat the key or scope. Nothing is encrypted here:
//! the emulator stores the key's hash or the scope's name with the blob and checks requests against
//! it. Azure accepts keys over TLS only; the emulator also accepts them over plain HTTP, because
//! local clients use it.

use std::collections::BTreeSet;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::HeaderMap;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use smalt_protocol::{ErrorCode, StorageError};

const KEY: &str = "x-ms-encryption-key";
const KEY_SHA256: &str = "x-ms-encryption-key-sha256";
const ALGORITHM: &str = "x-ms-encryption-algorithm";
const SCOPE: &str = "x-ms-encryption-scope";
/// Headers with the key, hash and algorithm of the blob that is addressed.
const OWN: [&str; 3] = [KEY, KEY_SHA256, ALGORITHM];
/// Headers with the key, hash and algorithm of a copy's source.
const SOURCE: [&str; 3] = [
    "x-ms-source-encryption-key",
    "x-ms-source-encryption-key-sha256",
    "x-ms-source-encryption-algorithm",
];

/// Length of a key in bytes. Same page.
const KEY_BYTES: usize = 32;
/// The only algorithm. Same page.
const AES256: &str = "AES256";
/// The default scope of a container that sets none.
pub const ACCOUNT_SCOPE: &str = "$account-encryption-key";

/// How a blob is encrypted, if not with the account's own key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Encryption {
    /// A customer-provided key, by its SHA-256 in base64. Every request must send the key.
    Key(String),
    /// An encryption scope of the account, by name.
    Scope(String),
}

/// A container's default scope, and whether it denies requests that name another one.
pub type Policy = Option<(String, bool)>;

impl Encryption {
    /// Returns the response header that reports the encryption.
    pub fn header(&self) -> (&'static str, &str) {
        match self {
            Encryption::Key(sha256) => (KEY_SHA256, sha256),
            Encryption::Scope(scope) => (SCOPE, scope),
        }
    }

    /// Returns `CustomerProvidedKeySha256` for listings.
    pub fn key_sha256(&self) -> Option<&str> {
        match self {
            Encryption::Key(sha256) => Some(sha256),
            Encryption::Scope(_) => None,
        }
    }

    /// Returns `EncryptionScope` for listings.
    pub fn scope(&self) -> Option<&str> {
        match self {
            Encryption::Key(_) => None,
            Encryption::Scope(scope) => Some(scope),
        }
    }
}

/// The encryption that a request asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requested(Option<Encryption>);

impl Requested {
    /// Parses the request headers. An algorithm without a key is ignored, as recorded.
    ///
    /// # Errors
    /// 400 `MissingRequiredHeader` or `InvalidHeaderValue` for an incomplete key or one that does
    /// not match its hash; 400 `InvalidHeaderValue` for a key together with a scope.
    pub fn of(headers: &HeaderMap) -> Result<Self, StorageError> {
        let scope = text(headers, SCOPE)?.filter(|scope| !scope.is_empty());
        match (key(headers, OWN)?, scope) {
            (Some(_), Some(scope)) => Err(StorageError::invalid_header(SCOPE, scope)),
            (Some(sha256), None) => Ok(Requested(Some(Encryption::Key(sha256)))),
            (None, scope) => Ok(Requested(scope.map(|s| Encryption::Scope(s.to_owned())))),
        }
    }

    /// Parses the key headers of a copy's source, which cannot name a scope.
    ///
    /// # Errors
    /// As [`Requested::of`].
    pub fn of_source(headers: &HeaderMap) -> Result<Self, StorageError> {
        Ok(Requested(key(headers, SOURCE)?.map(Encryption::Key)))
    }

    /// Returns the name of the requested scope.
    pub fn scope(&self) -> Option<&str> {
        self.0.as_ref().and_then(Encryption::scope)
    }

    /// Returns the encryption of a new blob under the container's policy.
    ///
    /// # Errors
    /// 403 `RequestForbiddenByContainerEncryptionPolicy`.
    pub fn of_new(&self, policy: &Policy) -> Result<Option<Encryption>, StorageError> {
        let Some((scope, is_final)) = policy else {
            return Ok(self.0.clone());
        };
        let default = (scope != ACCOUNT_SCOPE).then(|| Encryption::Scope(scope.clone()));
        match &self.0 {
            None => Ok(default),
            given if *is_final && *given != default => {
                Err(ErrorCode::RequestForbiddenByContainerEncryptionPolicy.into())
            }
            given => Ok(given.clone()),
        }
    }

    /// Checks a read: the key must be sent again, a scope may be omitted.
    ///
    /// # Errors
    /// 409 `BlobUsesCustomerSpecifiedEncryption`, `BlobCustomerSpecifiedEncryptionMismatch`,
    /// `BlobDoesNotUseCustomerSpecifiedEncryption`.
    pub fn check_read(&self, stored: Option<&Encryption>) -> Result<(), StorageError> {
        match (stored, &self.0) {
            (Some(Encryption::Scope(_)), None) => Ok(()),
            (stored, given) => compare(stored, given.as_ref()),
        }
    }

    /// Checks a write to an existing blob: the key or scope must be sent again, unless the scope is
    /// the container's default.
    ///
    /// # Errors
    /// As [`Requested::check_read`] and [`Requested::of_new`].
    pub fn check_write(
        &self,
        stored: Option<&Encryption>,
        policy: &Policy,
    ) -> Result<(), StorageError> {
        let given = self.of_new(policy)?;
        if self.0.is_none() && stored.is_none() {
            // The blob was written without encryption, before the container had a default scope or
            // ignoring it.
            return Ok(());
        }
        compare(stored, given.as_ref())
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &'static str) -> Result<Option<&'a str>, StorageError> {
    let value = headers.get(name).map(|value| value.to_str());
    let refused = |_| StorageError::invalid_header(name, "(not ASCII)");
    value.transpose().map_err(refused)
}

/// Returns the hash of a complete and valid key, or `None` if no key was sent.
fn key(headers: &HeaderMap, names: [&'static str; 3]) -> Result<Option<String>, StorageError> {
    let [key_name, sha256_name, algorithm_name] = names;
    let (key, sha256) = (text(headers, key_name)?, text(headers, sha256_name)?);
    if key.is_none() && sha256.is_none() {
        return Ok(None);
    }
    let missing = StorageError::missing_header;
    let key = key.ok_or_else(|| missing(key_name))?;
    let sha256 = sha256.ok_or_else(|| missing(sha256_name))?;
    let algorithm = text(headers, algorithm_name)?.ok_or_else(|| missing(algorithm_name))?;
    if algorithm != AES256 {
        return Err(StorageError::invalid_header(algorithm_name, algorithm));
    }
    let bytes = BASE64.decode(key).ok();
    let bytes = bytes.filter(|bytes| bytes.len() == KEY_BYTES);
    // Recorded: the error repeats the rejected header, which only the sender sees.
    let bytes = bytes.ok_or_else(|| StorageError::invalid_header(key_name, key))?;
    if BASE64.encode(Sha256::digest(bytes)) != sha256 {
        return Err(StorageError::invalid_header(sha256_name, sha256));
    }
    Ok(Some(sha256.to_owned()))
}

/// Checks that an account has a scope. `None` means that every scope is available.
///
/// # Errors
/// 409 `EncryptionScopeNotAvailable`.
pub fn check_scope(scope: &str, available: Option<&BTreeSet<String>>) -> Result<(), StorageError> {
    let is_there = |available: &BTreeSet<String>| available.contains(scope);
    if scope == ACCOUNT_SCOPE || available.is_none_or(is_there) {
        return Ok(());
    }
    Err(ErrorCode::EncryptionScopeNotAvailable.into())
}

fn compare(stored: Option<&Encryption>, given: Option<&Encryption>) -> Result<(), StorageError> {
    match (stored, given) {
        (Some(_), None) => Err(ErrorCode::BlobUsesCustomerSpecifiedEncryption.into()),
        (None, Some(_)) => Err(ErrorCode::BlobDoesNotUseCustomerSpecifiedEncryption.into()),
        (Some(stored), Some(given)) if stored != given => {
            Err(ErrorCode::BlobCustomerSpecifiedEncryptionMismatch.into())
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
