//! The bytes of a case's request.

use super::table::Case;
use super::template::{TemplateError, Values, expand, expand_text};
use crate::servers::access::ACCOUNT;

/// Builds the request. `values` must have `host` and `sas`.
///
/// # Errors
/// When a text of the case cannot be expanded.
pub fn bytes(case: &Case, values: &Values) -> Result<Vec<u8>, TemplateError> {
    if let Some(raw) = &case.raw {
        return expand(raw, values);
    }
    let mut request = format!("{} ", case.method).into_bytes();
    request.extend(target(case, values)?);
    request.extend_from_slice(b" HTTP/1.1\r\nHost: ");
    request.extend(expand("{host}\r\n", values)?);
    if !case.version.is_empty() {
        request.extend(expand(
            &format!("x-ms-version: {}\r\n", case.version),
            values,
        )?);
    }
    for header in &case.headers {
        request.extend(expand(header, values)?);
        request.extend_from_slice(b"\r\n");
    }
    let body = case.body.as_deref().map(|body| expand(body, values));
    let body = body.transpose()?.unwrap_or_default();
    let has_body = case.body.is_some() || matches!(case.method.as_str(), "PUT" | "POST");
    let length = match case.length.as_deref() {
        Some("none") => None,
        Some(text) => Some(expand_text(text, values)?),
        None => has_body.then(|| body.len().to_string()),
    };
    if let Some(length) = length {
        request.extend_from_slice(format!("Content-Length: {length}\r\n").as_bytes());
    }
    request.extend_from_slice(b"\r\n");
    request.extend(body);
    Ok(request)
}

fn target(case: &Case, values: &Values) -> Result<Vec<u8>, TemplateError> {
    let path = if case.path.starts_with('/') {
        case.path.clone()
    } else {
        format!("/{ACCOUNT}/{}", case.path)
    };
    let separator = if path.contains('?') { '&' } else { '?' };
    let path = if case.signed {
        format!("{path}{separator}{{sas}}")
    } else {
        path
    };
    expand(&path, values)
}
