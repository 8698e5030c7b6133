//! Query parameters and bodies that message operations share.

use std::ops::RangeInclusive;

use smalt_protocol::limits::{MESSAGE_TEXT_BYTES_MAX, MESSAGE_TEXT_BYTES_MAX_BEFORE_2011};
use smalt_protocol::{ApiVersion, ErrorCode, StorageError};
use uuid::Uuid;

use crate::call::Call;
use crate::ops::queue::receipt;

/// A number of the query within its range; `None` when it is not given. The numbers of the service
/// have 32 bits: what needs more is no number to it. The interface definition, `int32`.
pub fn seconds(
    call: &Call,
    name: &'static str,
    range: RangeInclusive<i64>,
) -> Result<Option<i64>, StorageError> {
    let Some(text) = call.query(name) else {
        return Ok(None);
    };
    let Ok(number) = text.trim().parse::<i32>().map(i64::from) else {
        return Err(StorageError::invalid_query(name, text, "Not a number."));
    };
    if range.contains(&number) {
        return Ok(Some(number));
    }
    Err(StorageError::query_out_of_range(
        name,
        text,
        *range.start(),
        *range.end(),
    ))
}

/// A message id; `None` for text that is no id of ours and so names no message.
pub fn message_id(call: &Call) -> Option<Uuid> {
    Uuid::try_parse(call.message()).ok()
}

/// The receipt of the query.
pub fn pop_receipt(call: &Call) -> Result<u64, StorageError> {
    let name = "popreceipt";
    receipt::parse(
        call.query(name)
            .ok_or_else(|| StorageError::missing_query(name))?,
    )
}

/// Refuses a text of so many bytes beyond the limit: recorded as 413 with the limit of the text.
pub fn check_length(length: usize, version: ApiVersion) -> Result<(), StorageError> {
    let most = if version < ApiVersion::V2011_08_18 {
        MESSAGE_TEXT_BYTES_MAX_BEFORE_2011
    } else {
        MESSAGE_TEXT_BYTES_MAX
    };
    if length <= most {
        return Ok(());
    }
    Err(StorageError::new(ErrorCode::RequestBodyTooLarge)
        .with_element("MaxLimit", &most.to_string()))
}
