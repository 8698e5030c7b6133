//! Encryption that a client asks for: a key that it provides, or a named scope.
//!
//! Sources: "Provide an encryption key on a request to Blob Storage", "Encryption scopes for Blob
//! Storage"; recordings for who must repeat what. Nothing is encrypted here: the hash of the key or
//! the name of the scope is kept with the blob, and requests are held to it. Azure takes keys over
//! TLS only; here plain HTTP does as well, since that is what a local client speaks.

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
/// Key, hash and algorithm: of the blob that the request is for.
const OWN: [&str; 3] = [KEY, KEY_SHA256, ALGORITHM];
/// The same, of the source of a copy.
const SOURCE: [&str; 3] = [
    "x-ms-source-encryption-key",
    "x-ms-source-encryption-key-sha256",
    "x-ms-source-encryption-algorithm",
];

/// Length of a key in bytes. Same page.
const KEY_BYTES: usize = 32;
/// The only algorithm. Same page.
const AES256: &str = "AES256";
/// The scope of a container that has none of its own.
pub const ACCOUNT_SCOPE: &str = "$account-encryption-key";

/// What a blob is encrypted with, where that is not the account's own key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Encryption {
    /// A key that the client provides with every request: its SHA-256 in base64.
    Key(String),
    /// A scope of the account, by name.
    Scope(String),
}

/// A container's default scope, and whether requests may not name another.
pub type Policy = Option<(String, bool)>;

impl Encryption {
    /// The header that names it in an answer.
    pub fn header(&self) -> (&'static str, &str) {
        match self {
            Encryption::Key(sha256) => (KEY_SHA256, sha256),
            Encryption::Scope(scope) => (SCOPE, scope),
        }
    }

    /// `CustomerProvidedKeySha256` of a listing.
    pub fn key_sha256(&self) -> Option<&str> {
        match self {
            Encryption::Key(sha256) => Some(sha256),
            Encryption::Scope(_) => None,
        }
    }

    /// `EncryptionScope` of a listing.
    pub fn scope(&self) -> Option<&str> {
        match self {
            Encryption::Key(_) => None,
            Encryption::Scope(scope) => Some(scope),
        }
    }
}

/// What a request says about encryption.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requested(Option<Encryption>);

impl Requested {
    /// Reads the headers. The algorithm alone asks for nothing, as recorded.
    ///
    /// # Errors
    /// 400 `MissingRequiredHeader` and `InvalidHeaderValue` for a key that is not whole or not what
    /// its hash says; 400 `InvalidHeaderValue` for a key and a scope at once.
    pub fn of(headers: &HeaderMap) -> Result<Self, StorageError> {
        let scope = text(headers, SCOPE)?.filter(|scope| !scope.is_empty());
        match (key(headers, OWN)?, scope) {
            (Some(_), Some(scope)) => Err(StorageError::invalid_header(SCOPE, scope)),
            (Some(sha256), None) => Ok(Requested(Some(Encryption::Key(sha256)))),
            (None, scope) => Ok(Requested(scope.map(|s| Encryption::Scope(s.to_owned())))),
        }
    }

    /// Reads the headers of a copy's source: a key only.
    ///
    /// # Errors
    /// As [`Requested::of`].
    pub fn of_source(headers: &HeaderMap) -> Result<Self, StorageError> {
        Ok(Requested(key(headers, SOURCE)?.map(Encryption::Key)))
    }

    /// The scope asked for.
    pub fn scope(&self) -> Option<&str> {
        self.0.as_ref().and_then(Encryption::scope)
    }

    /// What a new blob of a container is encrypted with.
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

    /// Judges a read: a key must be given again, a scope need not be.
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

    /// Judges a write to what is there: key and scope alike must be given again, where the
    /// container's default is not that scope. The encryption that goes on.
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
            // Written before the container's default, or without regard to it.
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

/// The hash of a key that is given whole.
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
    // Recorded: every refused header is repeated, to none but who sent it.
    let bytes = bytes.ok_or_else(|| StorageError::invalid_header(key_name, key))?;
    if BASE64.encode(Sha256::digest(bytes)) != sha256 {
        return Err(StorageError::invalid_header(sha256_name, sha256));
    }
    Ok(Some(sha256.to_owned()))
}

/// Judges a scope by those that an account has; absent: every one.
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
