//! The encryption scope of a signature (`ses`), which every write made with it has.

use http::{HeaderName, HeaderValue, Method};
use smalt_protocol::{ErrorCode, Service, StorageError};

use super::Identity;
use crate::call::Call;

/// Header by which a request names a scope itself.
const SCOPE: HeaderName = HeaderName::from_static("x-ms-encryption-scope");

/// Lets the scope of a signature stand for the header: from here on a write cannot tell the two
/// apart. Source: "Create an account SAS", "Create a service SAS", field `ses`. A container that
/// insists on its own scope refuses another one, wherever it came from.
///
/// # Errors
/// 403 `AuthorizationFailure` for a header that names another scope than the signature.
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
