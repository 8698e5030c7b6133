//! Query parameters and bodies that message operations share.

use std::ops::RangeInclusive;

use smalt_protocol::limits::{MESSAGE_TEXT_BYTES_MAX, MESSAGE_TEXT_BYTES_MAX_BEFORE_2011};
use smalt_protocol::{ApiVersion, ErrorCode, StorageError};
use uuid::Uuid;

use crate::call::Call;
use crate::ops::queue::receipt;

/// Parses a number of the query within a range; `None` when it is not given. The service's numbers
/// have 32 bits (`int32` in the interface definition): larger ones are not numbers to it.
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

/// Parses the message id; `None` for a string that is not a GUID and so cannot name a message.
pub fn message_id(call: &Call) -> Option<Uuid> {
    Uuid::try_parse(call.message()).ok()
}

/// Parses the pop receipt of the query.
pub fn pop_receipt(call: &Call) -> Result<u64, StorageError> {
    let name = "popreceipt";
    receipt::parse(
        call.query(name)
            .ok_or_else(|| StorageError::missing_query(name))?,
    )
}

/// Rejects a text of more than the maximum number of bytes: recorded as 413 with the limit of the
/// text.
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
