//! `X-HTTP-Method`: lets a POST to the Table service stand for another method.
//!
//! Source: *Status and error codes* of the Table service, the three codes that begin with
//! `XMethod`.

use http::Method;
use smalt_protocol::{ErrorCode, Service, StorageError};

use crate::arrival::TUNNEL;
use crate::call::Call;

const METHODS: [&str; 4] = ["DELETE", "MERGE", "PATCH", "PUT"];

/// Rejects an invalid `X-HTTP-Method` header.
///
/// # Errors
/// 400 `XMethodNotUsingPost`, `XMethodIncorrectCount`, `XMethodIncorrectValue`.
pub(super) fn check(call: &Call) -> Result<(), StorageError> {
    if call.service() != Service::Table {
        return Ok(());
    }
    let mut named = call.headers.get_all(TUNNEL).iter();
    let Some(method) = named.next() else {
        return Ok(());
    };
    if call.sent_method != Method::POST {
        return Err(ErrorCode::XMethodNotUsingPost.into());
    }
    if named.next().is_some() {
        return Err(ErrorCode::XMethodIncorrectCount.into());
    }
    match method.to_str() {
        Ok(method) if METHODS.contains(&method) => Ok(()),
        _ => Err(ErrorCode::XMethodIncorrectValue.into()),
    }
}
