//! Parses request headers that describe a blob: content headers, hashes, tags, tier, lease.
//!
//! Sources: "Put Blob", "Set Blob Properties", "Put Block List".

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use md5::{Digest, Md5};
use smalt_protocol::{ErrorCode, StorageError, lease, uri};
use uuid::Uuid;

use crate::call::Call;
use crate::operation::Received;
pub use crate::records::CONTENT_TYPE_DEFAULT;
use crate::records::ContentHeaders;
use crate::rules::encryption::{self, Requested};
use crate::rules::{tags, tier};

const STORED_MD5: &str = "x-ms-blob-content-md5";

/// Parses the content headers of a request whose body is the blob: `x-ms-blob-...` first, otherwise
/// the standard ones. `Content-MD5` is not among those: it belongs to the request.
pub fn content_of_put(call: &Call) -> Result<ContentHeaders, StorageError> {
    let either = |own, standard| match call.header(own)? {
        Some(value) => Ok(filled(value)),
        None => call.header(standard).map(|value| value.and_then(filled)),
    };
    let content_type = either("x-ms-blob-content-type", "content-type")?;
    Ok(ContentHeaders {
        content_type: Some(content_type.unwrap_or_else(|| CONTENT_TYPE_DEFAULT.to_owned())),
        content_encoding: either("x-ms-blob-content-encoding", "content-encoding")?,
        content_language: either("x-ms-blob-content-language", "content-language")?,
        content_md5: stored_md5(call, STORED_MD5)?,
        cache_control: either("x-ms-blob-cache-control", "cache-control")?,
        content_disposition: call
            .header("x-ms-blob-content-disposition")?
            .and_then(filled),
    })
}

/// Parses the content headers of a request whose body is not the blob, `x-ms-blob-...` only.
/// Returns `None` if there are none: a single one clears the others.
pub fn content_of_set(call: &Call) -> Result<Option<ContentHeaders>, StorageError> {
    const NAMES: [&str; 6] = [
        "x-ms-blob-content-type",
        "x-ms-blob-content-encoding",
        "x-ms-blob-content-language",
        STORED_MD5,
        "x-ms-blob-cache-control",
        "x-ms-blob-content-disposition",
    ];
    if !NAMES.iter().any(|name| call.headers.contains_key(*name)) {
        return Ok(None);
    }
    let read = |name| call.header(name).map(|value| value.and_then(filled));
    Ok(Some(ContentHeaders {
        content_type: read(NAMES[0])?,
        content_encoding: read(NAMES[1])?,
        content_language: read(NAMES[2])?,
        content_md5: stored_md5(call, STORED_MD5)?,
        cache_control: read(NAMES[4])?,
        content_disposition: read(NAMES[5])?,
    }))
}

fn filled(value: &str) -> Option<String> {
    (!value.is_empty()).then(|| value.to_owned())
}

/// Parses the header of an MD5 that is stored without verification. Any Base64 is accepted:
/// Microsoft's own tests store four bytes in production. A verified MD5 has 16 bytes.
///
/// # Errors
/// 400 `InvalidMd5`.
pub fn stored_md5(call: &Call, name: &'static str) -> Result<Option<String>, StorageError> {
    match call.header(name)?.and_then(filled) {
        Some(text) if BASE64.decode(text.trim()).is_err() => Err(ErrorCode::InvalidMd5.into()),
        stored => Ok(stored),
    }
}

/// The hashes that a request gives for its body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BodyHashes {
    /// `Content-MD5`, or `x-ms-source-content-md5` for a copy source.
    pub md5: Option<[u8; 16]>,
    /// `x-ms-content-crc64`, or `x-ms-source-content-crc64` for a copy source.
    pub crc64: Option<[u8; 8]>,
}

impl BodyHashes {
    /// Parses the hashes of the request's body.
    ///
    /// # Errors
    /// 400 `InvalidMd5` for an invalid MD5, 400 `InvalidHeaderValue` for an invalid CRC64, 400
    /// `BothCrc64AndMd5HeaderPresent`.
    pub fn of(call: &Call) -> Result<Self, StorageError> {
        Self::named(call, "content-md5", "x-ms-content-crc64")
    }

    /// Parses the hashes of the copy source.
    ///
    /// # Errors
    /// As [`BodyHashes::of`].
    pub fn of_source(call: &Call) -> Result<Self, StorageError> {
        Self::named(call, "x-ms-source-content-md5", "x-ms-source-content-crc64")
    }

    fn named(
        call: &Call,
        md5_name: &'static str,
        crc64_name: &'static str,
    ) -> Result<Self, StorageError> {
        let md5 = call.header(md5_name)?.filter(|text| !text.is_empty());
        let crc64 = call.header(crc64_name)?;
        if md5.is_some() && crc64.is_some() {
            return Err(ErrorCode::BothCrc64AndMd5HeaderPresent.into());
        }
        Ok(BodyHashes {
            md5: md5.map(parse_md5).transpose()?,
            crc64: crc64
                .map(|text| {
                    let refused = || StorageError::invalid_header(crc64_name, text);
                    decode(text).ok_or_else(refused)
                })
                .transpose()?,
        })
    }

    /// Compares the hashes with the received body.
    ///
    /// # Errors
    /// 400 `Md5Mismatch` and `Crc64Mismatch`, with both values.
    pub fn check(&self, received: &Received) -> Result<(), StorageError> {
        self.check_hashes(received.md5, received.crc64)
    }

    /// Compares the hashes with calculated ones.
    ///
    /// # Errors
    /// As [`BodyHashes::check`].
    pub fn check_hashes(&self, md5: Option<[u8; 16]>, crc64: [u8; 8]) -> Result<(), StorageError> {
        if let Some(given) = self.md5 {
            check_md5(given, md5.unwrap_or_default())?;
        }
        self.crc64.map_or(Ok(()), |given| check_crc64(given, crc64))
    }

    /// Compares the hashes with those of a document.
    ///
    /// # Errors
    /// As [`BodyHashes::check`].
    pub fn check_document(&self, document: &[u8]) -> Result<(), StorageError> {
        self.check_hashes(Some(Md5::digest(document).into()), crc64(document))
    }
}

/// Returns the CRC64 of bytes in Azure Storage's byte order.
pub fn crc64(bytes: &[u8]) -> [u8; 8] {
    let mut digest = crc64fast_nvme::Digest::new();
    digest.write(bytes);
    digest.sum64().to_le_bytes()
}

fn check_crc64(given: [u8; 8], calculated: [u8; 8]) -> Result<(), StorageError> {
    if given == calculated {
        return Ok(());
    }
    Err(StorageError::new(ErrorCode::Crc64Mismatch)
        .with_element("UserSpecifiedCrc", &encode(&given))
        .with_element("ServerCalculatedCrc", &encode(&calculated)))
}

/// Compares the MD5 of a request with the calculated one.
///
/// # Errors
/// 400 `Md5Mismatch` with both values.
pub fn check_md5(given: [u8; 16], calculated: [u8; 16]) -> Result<(), StorageError> {
    if given == calculated {
        return Ok(());
    }
    Err(StorageError::new(ErrorCode::Md5Mismatch)
        .with_element("UserSpecifiedMd5", &encode(&given))
        .with_element("ServerCalculatedMd5", &encode(&calculated)))
}

/// Parses an MD5 in Base64.
///
/// # Errors
/// 400 `InvalidMd5`.
pub fn parse_md5(text: &str) -> Result<[u8; 16], StorageError> {
    decode(text).ok_or_else(|| ErrorCode::InvalidMd5.into())
}

/// Encodes a hash in Base64 for a header.
pub fn encode(hash: &[u8]) -> String {
    BASE64.encode(hash)
}

fn decode<const N: usize>(text: &str) -> Option<[u8; N]> {
    BASE64.decode(text.trim()).ok()?.try_into().ok()
}

/// Parses `x-ms-tags`: index tags as a query string.
///
/// # Errors
/// 403 `AuthorizationPermissionMismatch` for a signature without the permission `t`; 400 for
/// invalid tags, as in [`tags::validate`].
pub fn tags(call: &Call) -> Result<Vec<(String, String)>, StorageError> {
    const NAME: &str = "x-ms-tags";
    let Some(text) = call.header(NAME)? else {
        return Ok(Vec::new());
    };
    if !call.identity.may('t') {
        return Err(ErrorCode::AuthorizationPermissionMismatch.into());
    }
    // Clients write a space as a plus in this header, unlike in a URL.
    let parsed = uri::parse_query(&text.replace('+', "%20"))
        .map_err(|_| StorageError::invalid_header(NAME, text))?;
    tags::validate(parsed)
}

/// Parses the encryption key or scope that a request asks for.
///
/// # Errors
/// As [`Requested::of`]; 409 `EncryptionScopeNotAvailable`.
pub fn encryption(call: &Call) -> Result<Requested, StorageError> {
    let requested = Requested::of(&call.headers)?;
    if let Some(scope) = requested.scope() {
        encryption::check_scope(scope, call.settings.encryption_scopes.as_ref())?;
    }
    Ok(requested)
}

/// Header of the access tier.
pub const TIER: &str = "x-ms-access-tier";

/// Parses `x-ms-access-tier`.
///
/// # Errors
/// 400 `InvalidHeaderValue` for an unknown tier.
pub fn tier(call: &Call) -> Result<Option<&'static str>, StorageError> {
    let Some(text) = call.header(TIER)?.filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let known = tier::parse(text, call.version);
    known
        .map(Some)
        .ok_or_else(|| StorageError::invalid_header(TIER, text))
}

/// Parses `x-ms-rehydrate-priority`; the default is standard.
///
/// # Errors
/// 400 `InvalidHeaderValue`.
pub fn rehydrate_priority(call: &Call) -> Result<&'static str, StorageError> {
    const NAME: &str = "x-ms-rehydrate-priority";
    let given = call.header(NAME)?.unwrap_or(tier::STANDARD);
    tier::parse_priority(given).ok_or_else(|| StorageError::invalid_header(NAME, given))
}

/// Parses `x-ms-access-tier` of a block blob.
///
/// # Errors
/// 400 `InvalidHeaderValue` for a tier that block blobs cannot have.
pub fn block_blob_tier(call: &Call) -> Result<Option<String>, StorageError> {
    match tier(call)? {
        Some(tier) if !tier::BLOCK_BLOB.contains(&tier) => {
            Err(StorageError::invalid_header(TIER, tier))
        }
        tier => Ok(tier.map(str::to_owned)),
    }
}

/// Parses `x-ms-lease-id`.
///
/// # Errors
/// 400 `InvalidHeaderValue` for a string that is not a GUID.
pub fn lease_id(call: &Call) -> Result<Option<Uuid>, StorageError> {
    const NAME: &str = "x-ms-lease-id";
    let Some(text) = call.header(NAME)?.filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let id = lease::parse_lease_id(NAME, text)?;
    let id = Uuid::parse_str(&id).map_err(|_| StorageError::invalid_header(NAME, text))?;
    Ok(Some(id))
}

#[cfg(test)]
mod tests;
