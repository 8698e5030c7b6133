//! Public access and its header, `x-ms-blob-public-access`.
//!
//! Source: "Set Container ACL". An account may forbid public access altogether.

use smalt_protocol::{ErrorCode, StorageError};

use crate::call::Call;
use crate::records::PublicAccess;

const HEADER: &str = "x-ms-blob-public-access";

/// Parses the header. Absent means private.
pub fn parse_public_access(call: &Call) -> Result<PublicAccess, StorageError> {
    match call.header(HEADER)? {
        None => Ok(PublicAccess::Private),
        Some(_) if !call.settings.public_access => Err(ErrorCode::PublicAccessNotPermitted.into()),
        Some("blob") => Ok(PublicAccess::Blob),
        Some("container" | "true") => Ok(PublicAccess::Container),
        Some(other) => Err(StorageError::invalid_header(HEADER, other)),
    }
}
