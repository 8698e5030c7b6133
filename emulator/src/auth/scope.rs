//! The encryption scope of a signature (`ses`), which applies to every write with that signature.

use http::{HeaderName, HeaderValue, Method};
use smalt_protocol::{ErrorCode, Service, StorageError};

use super::Identity;
use crate::call::Call;

/// The header with which a request names a scope itself.
const SCOPE: HeaderName = HeaderName::from_static("x-ms-encryption-scope");

/// Sets the scope header from the signature, so that a write sees no difference. Source: "Create an
/// account SAS", "Create a service SAS", field `ses`. A container that enforces its own scope
/// refuses another one from either place.
///
/// # Errors
/// 403 `AuthorizationFailure` when the header names another scope than the signature.
pub fn bring_scope(call: &mut Call) -> Result<(), StorageError> {
    let is_write = call.method == Method::PUT && call.service() == Service::Blob;
    if !is_write || !matches!(call.identity, Identity::Sas(_)) {
        return Ok(());
    }
    let Some(scope) = call.query("ses").filter(|scope| !scope.is_empty()) else {
        return Ok(());
    };
    let scope =
        HeaderValue::from_str(scope).map_err(|_| StorageError::invalid_query("ses", scope, ""))?;
    match call.headers.get(SCOPE) {
        Some(named) if *named != scope => Err(ErrorCode::AuthorizationFailure.into()),
        _ => {
            call.headers.insert(SCOPE, scope);
            Ok(())
        }
    }
}
