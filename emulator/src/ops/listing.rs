//! What the listings share: page sizes and includes.

use smalt_protocol::limits::LIST_RESULTS_MAX;
use smalt_protocol::{ErrorCode, StorageError};

use crate::call::Call;

/// How many entries a page may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageSize {
    /// As asked for, to be echoed.
    pub asked: Option<u32>,
    /// As served.
    pub most: usize,
}

impl PageSize {
    /// Reads `maxresults`. More than a page can have is as much as it can.
    ///
    /// # Errors
    /// 400 `InvalidQueryParameterValue` for what is no number, 400 `OutOfRangeQueryParameterValue`
    /// for zero and less.
    pub fn of(call: &Call) -> Result<Self, StorageError> {
        const NAME: &str = "maxresults";
        let most = LIST_RESULTS_MAX as usize;
        let Some(text) = call.query(NAME).filter(|text| !text.is_empty()) else {
            return Ok(PageSize { asked: None, most });
        };
        match text.trim().parse::<i64>() {
            Ok(asked) if asked >= 1 => Ok(PageSize {
                asked: Some(u32::try_from(asked).unwrap_or(u32::MAX)),
                most: usize::try_from(asked).unwrap_or(most).min(most),
            }),
            Ok(_) => {
                let most = i64::from(LIST_RESULTS_MAX);
                Err(StorageError::query_out_of_range(NAME, text, 1, most))
            }
            Err(_) => Err(StorageError::invalid_query(NAME, text, "")),
        }
    }
}

/// A query parameter that is given and not empty.
pub fn given(call: &Call, name: &str) -> Option<String> {
    let value = call.query(name).filter(|value| !value.is_empty());
    value.map(str::to_owned)
}

/// Refuses an `include` that is none of these.
///
/// # Errors
/// 400 `InvalidQueryParameterValue`.
pub fn check_include(call: &Call, known: &[&str]) -> Result<(), StorageError> {
    let is_known = |value: &&str| known.iter().any(|name| name.eq_ignore_ascii_case(value));
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
