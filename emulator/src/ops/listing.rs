//! What the listings of containers and blobs share: includes and markers.
//!
//! Sources: "List Containers", "List Blobs".

use smalt_protocol::{ApiVersion, ErrorCode, StorageError};

use crate::call::Call;

/// Since this version listings name things; before, they gave addresses as well. "Version
/// 2013-08-15".
pub const NAMES_ONLY: ApiVersion = ApiVersion::V2013_08_15;

/// A query parameter that is given and not empty.
pub fn given(call: &Call, name: &str) -> Option<String> {
    let value = call.query(name).filter(|value| !value.is_empty());
    value.map(str::to_owned)
}

/// Refuses an `include` that is none of these, or that the version does not have yet.
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

/// Whether something is included.
pub fn includes(call: &Call, name: &str) -> bool {
    call.query_list("include")
        .any(|value| value.eq_ignore_ascii_case(name))
}

/// The refusal of a marker that no page gave out, in the words recorded.
pub fn bad_marker() -> StorageError {
    StorageError::new(ErrorCode::OutOfRangeInput)
        .with_message("One of the request inputs is out of range.")
}
