//! Query parameters of reads.

use smalt_protocol::table::query::{Select, parse_top};
use smalt_protocol::{ErrorCode, StorageError};
use smalt_protocol::limits::TABLE_QUERY_RESULTS_MAX;

use crate::call::Call;

/// Options of OData that the service does not have. *Querying tables and entities*, supported query
/// options.
const UNSUPPORTED: [&str; 6] = [
    "$count",
    "$expand",
    "$inlinecount",
    "$orderby",
    "$skip",
    "$skiptoken",
];

/// `$select`, if given.
///
/// # Errors
/// 400 `InvalidInput` for what is no list of names.
pub fn select(call: &Call) -> Result<Option<Select>, StorageError> {
    call.query("$select").map(Select::parse).transpose()
}

/// How many results a page may have: `$top`, at most 1,000.
///
/// # Errors
/// 400 `InvalidInput` for what is no such number.
pub fn top(call: &Call) -> Result<usize, StorageError> {
    let most = match call.query("$top") {
        Some(text) => parse_top(text)?,
        None => TABLE_QUERY_RESULTS_MAX,
    };
    Ok(most as usize)
}

/// Refuses options that there are not.
///
/// # Errors
/// 501 `NotImplemented`.
pub fn check_supported(call: &Call) -> Result<(), StorageError> {
    if UNSUPPORTED.iter().any(|name| call.query(name).is_some()) {
        return Err(ErrorCode::NotImplemented.into());
    }
    Ok(())
}
