//! Requests of other commands to a listener's addresses.

use std::sync::Arc;

use anyhow::Context;
use bytes::Bytes;
use http::{Method, Request, StatusCode, Uri, header};
use smalt_sleeve::{HyperTransport, HyperTransportSettings, Transport};

pub(crate) async fn get(url: &str) -> anyhow::Result<String> {
    let answer = send(Method::GET, url, Bytes::new(), None).await?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// Posts a JSON document to `url`, with `authorization` as the header if given.
pub(crate) async fn post(
    url: &str,
    document: &serde_json::Value,
    authorization: Option<&str>,
) -> anyhow::Result<String> {
    let body = document.to_string().into();
    let answer = send(Method::POST, url, body, authorization).await?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

async fn send(
    method: Method,
    url: &str,
    body: Bytes,
    authorization: Option<&str>,
) -> anyhow::Result<Bytes> {
    let uri: Uri = url
        .parse()
        .with_context(|| format!("`{url}` is not a URL"))?;
    let web = matches!(uri.scheme_str(), Some("http" | "https"));
    let host = uri.authority().filter(|_| web);
    let host = host.with_context(|| format!("`{url}` is not an http:// or https:// URL"))?;
    let mut request = Request::builder()
        .method(method)
        .header(header::HOST, host.as_str())
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::CONTENT_LENGTH, body.len())
        .uri(uri.clone())
        .body(body)?;
    if let Some(value) = authorization {
        let mut value = header::HeaderValue::from_str(value)?;
        value.set_sensitive(true);
        request.headers_mut().insert(header::AUTHORIZATION, value);
    }
    let transport = Arc::new(HyperTransport::new(HyperTransportSettings::default())?);
    let answer = transport
        .round_trip(request)
        .await
        .map_err(|error| super::exit::Unreached(format!("{url}: {error}")))?;
    let status = answer.status();
    let text = String::from_utf8_lossy(answer.body());
    anyhow::ensure!(
        status == StatusCode::OK || status == StatusCode::ACCEPTED,
        "{url} answered {status}: {}",
        text.lines().next().unwrap_or_default()
    );
    Ok(answer.into_body())
}
