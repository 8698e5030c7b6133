//! The emulator in this process, called as if over the wire.

use std::io;

use bytes::Bytes;
use http::response::Parts;
use http::{Method, Request, Response};
use http_body_util::BodyExt as _;
use smalt::{Emulator, body};
use smalt_protocol::Service;
use smalt_sleeve::transport::is_refusal;

use super::connection::head;
use super::{Answer, WireError};

/// Returns the default URL of a service; in process, the port selects the service.
pub const fn base(service: Service) -> &'static str {
    match service {
        Service::Blob => "http://127.0.0.1:10000",
        Service::Queue => "http://127.0.0.1:10001",
        Service::Table => "http://127.0.0.1:10002",
    }
}

/// Sends a request to a service as a [connection](super::connection) does.
pub async fn send(
    emulator: &Emulator,
    service: Service,
    (method, path): (Method, &str),
    headers: &[(&'static str, &str)],
    content: impl Into<Bytes>,
) -> Result<Answer, WireError> {
    let content: Bytes = content.into();
    let uri = format!("{}{path}", base(service));
    let request = head(method, &uri, headers, content.len()).body(body::full(content));
    let request = request.map_err(WireError::request)?;
    let answer = emulator.call(request).await.map_err(WireError::call)?;
    Answer::read(answer).await
}

/// Sends a request and reads the whole answer.
///
/// # Errors
/// [`io::ErrorKind::ConnectionReset`] when a fault rule cuts the connection.
pub async fn call(emulator: &Emulator, request: Request<Bytes>) -> io::Result<Response<Bytes>> {
    let lost = |_| io::Error::from(io::ErrorKind::ConnectionReset);
    let answer = emulator.call(request.map(body::full)).await;
    let (head, body) = answer.map_err(lost)?.into_parts();
    match body.collect().await {
        Ok(body) => Ok(Response::from_parts(head, body.to_bytes())),
        Err(error) => broken_off(head, error),
    }
}

/// Returns an answer whose body broke off as the sleeve's socket transport does: an error answer is
/// returned with its head.
///
/// # Errors
/// The error of the body, when the answer is not an error answer.
pub fn broken_off(head: Parts, error: io::Error) -> io::Result<Response<Bytes>> {
    if !is_refusal(head.status) {
        return Err(error);
    }
    Ok(Response::from_parts(head, Bytes::new()))
}
