//! The emulator in this process, asked as if there were a wire in between.

use std::io;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::BodyExt as _;
use smalt::Emulator;

/// Sends a request and reads the whole answer.
///
/// # Errors
/// [`io::ErrorKind::ConnectionReset`] when a fault rule cuts the connection.
pub async fn call(emulator: &Emulator, request: Request<Bytes>) -> io::Result<Response<Bytes>> {
    let lost = |_| io::Error::from(io::ErrorKind::ConnectionReset);
    let answer = emulator.call(request.map(smalt::body::full)).await;
    let (head, body) = answer.map_err(lost)?.into_parts();
    let body = body.collect().await?.to_bytes();
    Ok(Response::from_parts(head, body))
}
