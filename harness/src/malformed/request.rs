//! The bytes of a case's request.

use smalt_protocol::signing::shared_key::{Scheme, SigningInput, authorization};
use smalt_protocol::{ApiVersion, Timestamp, uri};

use super::table::{Case, Signed};
use super::template::{TemplateError, Values, expand, expand_text};
use crate::wire::access::{ACCOUNT, Account};

/// Builds the request. `values` must have `host` and `sas`; `now` dates those signed by key.
///
/// # Errors
/// When a text of the case cannot be expanded.
pub fn bytes(case: &Case, values: &Values, now: Timestamp) -> Result<Vec<u8>, TemplateError> {
    if let Some(raw) = &case.raw {
        return expand(raw, values);
    }
    let target = target(case, values)?;
    let body = case.body.as_deref().map(|body| expand(body, values));
    let body = body.transpose()?.unwrap_or_default();
    let length = length(case, values, body.len())?;
    let mut lines: Vec<Vec<u8>> = vec![expand("Host: {host}", values)?];
    if !case.version.is_empty() {
        lines.push(expand(&format!("x-ms-version: {}", case.version), values)?);
    }
    for header in &case.headers {
        lines.push(expand(header, values)?);
    }
    lines.extend(length.map(|length| format!("Content-Length: {length}").into_bytes()));
    if case.signed == Signed::Key {
        lines.push(format!("x-ms-date: {}", now.rfc1123()).into_bytes());
        lines.push(sign(case, &String::from_utf8_lossy(&target), &lines).into_bytes());
    }
    let mut request = format!("{} ", case.method).into_bytes();
    request.extend(target);
    request.extend_from_slice(b" HTTP/1.1\r\n");
    for line in lines {
        request.extend(line);
        request.extend_from_slice(b"\r\n");
    }
    request.extend_from_slice(b"\r\n");
    request.extend(body);
    Ok(request)
}

/// The value of `Content-Length`, when there is one.
fn length(case: &Case, values: &Values, body: usize) -> Result<Option<String>, TemplateError> {
    let has_body = case.body.is_some() || matches!(case.method.as_str(), "PUT" | "POST");
    match case.length.as_deref() {
        Some("none") => Ok(None),
        Some(text) => expand_text(text, values).map(Some),
        None => Ok(has_body.then(|| body.to_string())),
    }
}

fn target(case: &Case, values: &Values) -> Result<Vec<u8>, TemplateError> {
    let path = if case.path.starts_with('/') {
        case.path.clone()
    } else {
        format!("/{ACCOUNT}/{}", case.path)
    };
    let separator = if path.contains('?') { '&' } else { '?' };
    let path = if case.signed == Signed::Sas {
        format!("{path}{separator}{{sas}}")
    } else {
        path
    };
    expand(&path, values)
}

/// The `Authorization` line of the account's owner. A case whose path cannot be read is not signed
/// in a way that anybody could check.
fn sign(case: &Case, target: &str, lines: &[Vec<u8>]) -> String {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let texts: Vec<String> = lines
        .iter()
        .map(|line| String::from_utf8_lossy(line).into_owned())
        .collect();
    let headers: Vec<(&str, &str)> = texts
        .iter()
        .filter_map(|line| line.split_once(": "))
        .collect();
    let input = SigningInput {
        service: case.service,
        scheme: Scheme::SharedKey,
        version: ApiVersion::parse(&case.version).unwrap_or(ApiVersion::V2021_12_02),
        method: &case.method,
        account: ACCOUNT,
        path,
        query: &uri::parse_query(query).unwrap_or_default(),
        headers: &headers,
    };
    let value = authorization(&input, Account::emulator().key.as_bytes());
    format!("Authorization: {value}")
}
