//! Parses the query parameters that all listings of names share: prefix, marker, page size.

use smalt_protocol::limits::LIST_RESULTS_MAX;
use smalt_protocol::{ErrorCode, StorageError};

use crate::call::Call;

/// The page that a listing asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paging {
    /// Prefix of the listed names.
    pub prefix: String,
    /// The continuation marker of an earlier page.
    pub marker: Option<String>,
    /// Maximum number of entries in the page, at least 1.
    pub most: usize,
}

impl Paging {
    /// Parses `prefix`, `marker` and `maxresults`.
    ///
    /// # Errors
    /// 400 `OutOfRangeQueryParameterValue` for a page size below 1, 400
    /// `InvalidQueryParameterValue` for one that is not a number.
    pub fn of(call: &Call) -> Result<Self, StorageError> {
        let text = |name| call.query(name).unwrap_or_default().to_owned();
        Ok(Paging {
            prefix: text("prefix"),
            marker: Some(text("marker")).filter(|marker| !marker.is_empty()),
            most: max_results(call)?.map_or(LIST_RESULTS_MAX, |n| n.min(LIST_RESULTS_MAX)) as usize,
        })
    }
}

/// Parses `maxresults` as given; the document repeats it.
pub fn max_results(call: &Call) -> Result<Option<u32>, StorageError> {
    let name = "maxresults";
    let Some(text) = call.query(name).filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let number: i64 = text
        .parse()
        .map_err(|_| StorageError::invalid_query(name, text, ""))?;
    if number < 1 {
        let most = i64::from(LIST_RESULTS_MAX);
        return Err(StorageError::query_out_of_range(name, text, 1, most));
    }
    u32::try_from(number)
        .map(Some)
        .map_err(|_| ErrorCode::OutOfRangeQueryParameterValue.into())
}
