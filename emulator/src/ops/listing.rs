//! Shared code of the listings of containers and blobs: includes and markers.
//!
//! Sources: "List Containers", "List Blobs".

use smalt_protocol::{ApiVersion, ErrorCode, StorageError};

use crate::call::Call;

/// Since this version, listings have names only; before, also URLs. "Version 2013-08-15".
pub const NAMES_ONLY: ApiVersion = ApiVersion::V2013_08_15;

/// Returns a query parameter, if it is given and not empty.
pub fn given(call: &Call, name: &str) -> Option<String> {
    let value = call.query(name).filter(|value| !value.is_empty());
    value.map(str::to_owned)
}

/// Rejects an `include` that is unknown, or newer than the version.
///
/// # Errors
/// 400 `InvalidQueryParameterValue`.
pub fn check_include(call: &Call, known: &[(&str, ApiVersion)]) -> Result<(), StorageError> {
    let is_known = |value: &&str| {
        let mut named = known
            .iter()
            .filter(|(name, _)| name.eq_ignore_ascii_case(value));
        named.any(|(_, since)| call.version >= *since)
    };
    match call.query_list("include").find(|value| !is_known(value)) {
        Some(value) => Err(StorageError::invalid_query("include", value, "")),
        None => Ok(()),
    }
}

/// Whether the request includes `name`.
pub fn includes(call: &Call, name: &str) -> bool {
    call.query_list("include")
        .any(|value| value.eq_ignore_ascii_case(name))
}

/// Returns the error for an invalid marker, with the recorded message.
pub fn bad_marker() -> StorageError {
    StorageError::new(ErrorCode::OutOfRangeInput)
        .with_message("One of the request inputs is out of range.")
}
