//! Stored access policies of queues and tables.

use smalt_protocol::xml::{SignedIdentifier, SignedIdentifiersDocument};
use smalt_protocol::{ErrorCode, StorageError};

/// Parses the policies of a document. Each may have only the permissions in `letters`.
///
/// # Errors
/// 400 `InvalidXmlDocument` for a malformed document, and for any other letter.
pub fn read(document: &[u8], letters: &str) -> Result<Vec<SignedIdentifier>, StorageError> {
    let policies = SignedIdentifiersDocument::read(document)?;
    let given = policies.iter().filter_map(|p| p.permissions.as_deref());
    if given.flat_map(str::chars).any(|c| !letters.contains(c)) {
        return Err(ErrorCode::InvalidXmlDocument.into());
    }
    Ok(policies)
}
