//! Stored access policies as queues and tables take them.

use smalt_protocol::xml::{SignedIdentifier, SignedIdentifiersDocument};
use smalt_protocol::{ErrorCode, StorageError};

/// Reads the policies of a document. Each may permit only what these letters say.
///
/// # Errors
/// 400 `InvalidXmlDocument` for a document that is none, and for any other letter.
pub fn read(document: &[u8], letters: &str) -> Result<Vec<SignedIdentifier>, StorageError> {
    let policies = SignedIdentifiersDocument::read(document)?;
    let given = policies.iter().filter_map(|p| p.permissions.as_deref());
    if given.flat_map(str::chars).any(|c| !letters.contains(c)) {
        return Err(ErrorCode::InvalidXmlDocument.into());
    }
    Ok(policies)
}
