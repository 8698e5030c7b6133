//! Bodies of the control endpoint.

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::refusal::Refusal;
use crate::body::{self, Body};

/// Largest request body in bytes: a fault rule is a few hundred bytes.
const BODY_BYTES_MAX: usize = 64 * 1024;

/// Reads a request body of at most [`BODY_BYTES_MAX`].
pub(super) async fn read_small(body: Body) -> Result<Bytes, Refusal> {
    let read = Limited::new(body, BODY_BYTES_MAX).collect().await;
    let too_large = |error| Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, format!("{error}"));
    Ok(read.map_err(too_large)?.to_bytes())
}

/// Reads a request body that is JSON.
pub(super) async fn parse<T: DeserializeOwned>(body: Body) -> Result<T, Refusal> {
    let bytes = read_small(body).await?;
    serde_json::from_slice(&bytes)
        .map_err(|error| Refusal::new(StatusCode::BAD_REQUEST, format!("invalid body: {error}")))
}

/// Returns a response of JSON.
pub(super) fn json(value: &impl Serialize) -> Response<Body> {
    let bytes = serde_json::to_vec_pretty(value).unwrap_or_default();
    typed("application/json", bytes)
}

/// Returns a response of counters.
pub(super) fn text(text: String) -> Response<Body> {
    typed("text/plain; version=0.0.4", text.into_bytes())
}

fn typed(content_type: &'static str, bytes: Vec<u8>) -> Response<Body> {
    let mut response = Response::new(body::full(bytes));
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
