//! `X-HTTP-Method`: a POST to the Table service that stands for another method.
//!
//! Source: *Status and error codes* of the Table service, the three codes that begin with
//! `XMethod`.

use http::Method;
use smalt_protocol::{ErrorCode, Service, StorageError};

use crate::arrival::TUNNEL;
use crate::call::Call;

/// What a POST can stand for.
const METHODS: [&str; 4] = ["DELETE", "MERGE", "PATCH", "PUT"];

/// Refuses a header that is no tunnel.
///
/// # Errors
/// 400 `XMethodNotUsingPost`, `XMethodIncorrectCount`, `XMethodIncorrectValue`.
pub(super) fn check(call: &Call) -> Result<(), StorageError> {
    let mut named = call.headers.get_all(TUNNEL).iter();
    let Some(method) = named.next().filter(|_| call.service() == Service::Table) else {
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
