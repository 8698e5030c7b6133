//! Answers of a service in trouble.

use std::io;

use bytes::Bytes;
use http::Response;

/// Returns the answer of a service that is busy (503, `ServerBusy`) or has failed (otherwise,
/// `InternalError`) before it executed the request.
pub(super) fn refusal(status: u16, retry_after_s: Option<u16>) -> Option<Response<Bytes>> {
    let code = match status {
        503 => "ServerBusy",
        _ => "InternalError",
    };
    let body =
        format!("<?xml version=\"1.0\" encoding=\"utf-8\"?><Error><Code>{code}</Code></Error>");
    let answer = Response::builder()
        .status(status)
        .header("content-type", "application/xml")
        .header("x-ms-error-code", code);
    let answer = match retry_after_s {
        Some(seconds) => answer.header("retry-after", seconds.to_string()),
        None => answer,
    };
    answer.body(Bytes::from(body)).ok()
}

/// Replaces a byte of the answer's body by one that is invalid in any text. Fails for an answer
/// without a body, as if the connection had broken.
pub(super) fn garbled(answer: Response<Bytes>, at: u16) -> io::Result<Response<Bytes>> {
    let (head, body) = answer.into_parts();
    let mut bytes = body.to_vec();
    let at = usize::from(at).checked_rem(bytes.len());
    let Some(byte) = at.and_then(|at| bytes.get_mut(at)) else {
        return Err(io::ErrorKind::InvalidData.into());
    };
    *byte = 0xFF;
    Ok(Response::from_parts(head, Bytes::from(bytes)))
}
