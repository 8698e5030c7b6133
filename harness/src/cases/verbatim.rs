//! The bytes of a request that no client library sends: a step with `@bytes`.

use smalt_protocol::signing::shared_key::{Scheme, SigningInput, authorization};
use smalt_protocol::{ApiVersion, uri};

use super::auth::{self, Auth, Scope};
use super::case::Step;
use super::play::Player;
use super::values::{Values, ValuesError};

/// Returns the bytes of a step. Signs by key or with an account SAS; other authorization is
/// omitted.
pub(super) fn of(
    step: &Step,
    length: Option<&str>,
    player: &Player<'_>,
) -> Result<Vec<u8>, ValuesError> {
    let about = player.target().about();
    let mut values = player.values.clone();
    values.keep("host", about.authority(step.service).unwrap_or_default());
    let body = step.body.as_deref().map(|body| values.bytes(body));
    let body = body.transpose()?.unwrap_or_default();
    if step.method == "RAW" {
        return Ok(body);
    }
    let mut path = format!("{}/{}", about.prefix(step.service), step.path);
    if step.path.starts_with('/') {
        path.clone_from(&step.path);
    }
    if let Auth::Sas(Scope::Account, fields) = &step.auth {
        let separator = if path.contains('?') { '&' } else { '?' };
        path = format!(
            "{path}{separator}{}",
            auth::account_sas(&about.account, player.target().now(), fields)
        );
    }
    let target = values.bytes(&path)?;
    let mut lines: Vec<Vec<u8>> = vec![values.bytes("Host: {host}")?];
    if !step.version.is_empty() {
        lines.push(values.bytes(&format!("x-ms-version: {}", step.version))?);
    }
    for header in &step.headers {
        lines.push(values.bytes(header)?);
    }
    let length = self::length(step, length, &values, body.len())?;
    lines.extend(length.map(|length| format!("Content-Length: {length}").into_bytes()));
    if step.auth == Auth::Key {
        lines.push(format!("x-ms-date: {}", player.target().now().rfc1123()).into_bytes());
        lines.push(sign(step, player, &String::from_utf8_lossy(&target), &lines).into_bytes());
    }
    let mut request = format!("{} ", step.method).into_bytes();
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

/// Returns the value of `Content-Length`, if the request has one.
fn length(
    step: &Step,
    stated: Option<&str>,
    values: &Values,
    body: usize,
) -> Result<Option<String>, ValuesError> {
    let has_body = step.body.is_some() || matches!(step.method.as_str(), "PUT" | "POST");
    match stated {
        Some("none") => Ok(None),
        Some(text) => values.text(text).map(Some),
        None => Ok(has_body.then(|| body.to_string())),
    }
}

/// Returns the `Authorization` line of the account owner. A path that cannot be parsed gets an
/// invalid signature.
fn sign(step: &Step, player: &Player<'_>, target: &str, lines: &[Vec<u8>]) -> String {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let texts: Vec<String> = lines
        .iter()
        .map(|line| String::from_utf8_lossy(line).into_owned())
        .collect();
    let headers: Vec<(&str, &str)> = texts
        .iter()
        .filter_map(|line| line.split_once(": "))
        .collect();
    let account = &player.target().about().account;
    let input = SigningInput {
        service: step.service,
        scheme: Scheme::SharedKey,
        version: ApiVersion::parse(&step.version).unwrap_or(ApiVersion::V2021_12_02),
        method: &step.method,
        account: &account.name,
        path,
        query: &uri::parse_query(query).unwrap_or_default(),
        headers: &headers,
    };
    let value = authorization(&input, account.key.as_bytes());
    format!("Authorization: {value}")
}
