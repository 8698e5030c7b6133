//! One exchange on a bare TCP connection, with arbitrary bytes in both directions.

use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedReadHalf;

use crate::wire::{Answer, Headers};

/// Time limit for an answer or the end of the connection. The server's own limits are shorter.
pub const HANG: Duration = Duration::from_secs(15);
/// Maximum length of an answer, in bytes.
const ANSWER_BYTES_MAX: usize = 1024 * 1024;

/// What the client does after sending the request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Then {
    /// Waits for the answer.
    #[default]
    Wait,
    /// Closes its side, and waits for the answer.
    Finish,
    /// Closes the connection.
    Leave,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum RawError {
    /// Nothing listens at the address.
    #[error("cannot connect: {0}")]
    Connect(std::io::Error),
    /// Neither an answer nor the end of the connection came.
    #[error("no answer within {HANG:?}")]
    Hang,
}

/// Sends bytes and reads the first answer; the status is 0 when the connection ends without one.
///
/// # Errors
/// When nothing listens at the address, or nothing arrives in time.
pub async fn exchange(authority: &str, bytes: Vec<u8>, then: Then) -> Result<Answer, RawError> {
    let stream = TcpStream::connect(authority)
        .await
        .map_err(RawError::Connect)?;
    let (reader, mut writer) = stream.into_split();
    // The server may answer and close before everything is sent; only the answer matters.
    let sending = tokio::spawn(async move {
        let sent = writer.write_all(&bytes).await;
        if then == Then::Wait {
            return (sent, Some(writer));
        }
        let closed = writer.shutdown().await;
        (sent.and(closed), None)
    });
    if then == Then::Leave {
        // The result of sending does not matter here.
        drop(sending.await);
        return Ok(no_answer());
    }
    let answer = tokio::time::timeout(HANG, read(reader)).await;
    sending.abort();
    answer
        .map(|bytes| parse(&bytes))
        .map_err(|_| RawError::Hang)
}

/// Reads until the answer is complete or the connection ends.
async fn read(mut reader: OwnedReadHalf) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut part = [0; 8 * 1024];
    while bytes.len() < ANSWER_BYTES_MAX && !is_complete(&bytes) {
        match reader.read(&mut part).await {
            Ok(0) | Err(_) => break,
            Ok(count) => bytes.extend_from_slice(part.get(..count).unwrap_or_default()),
        }
    }
    bytes
}

fn is_complete(bytes: &[u8]) -> bool {
    let Some((head, body)) = split(bytes) else {
        return false;
    };
    if let Some(length) = header(&head, "content-length") {
        return length
            .parse()
            .is_ok_and(|length: usize| body.len() >= length);
    }
    match header(&head, "transfer-encoding") {
        Some(_) => body.ends_with(b"0\r\n\r\n"),
        // An answer without a body, or one that ends with the connection.
        None => matches!(status(&head), 204 | 304) || body.is_empty() && is_bodiless(&head),
    }
}

/// Answers to HEAD have no `Content-Length` for their missing body; they name the error in a
/// header.
fn is_bodiless(head: &str) -> bool {
    header(head, "x-ms-error-code").is_some()
}

fn split(bytes: &[u8]) -> Option<(String, &[u8])> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(bytes.get(..end)?).into_owned();
    Some((head, bytes.get(end + 4..)?))
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(found, _)| found.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.trim())
}

fn status(head: &str) -> u16 {
    let number = head.split_whitespace().nth(1);
    number
        .and_then(|text| text.parse().ok())
        .unwrap_or_default()
}

fn parse(bytes: &[u8]) -> Answer {
    let Some((head, body)) = split(bytes) else {
        return no_answer();
    };
    let lines = head.lines().filter_map(|line| line.split_once(':'));
    Answer {
        status: status(&head),
        headers: lines.map(|(name, value)| (name, value.trim())).collect(),
        body: Bytes::copy_from_slice(body),
    }
}

fn no_answer() -> Answer {
    Answer {
        status: 0,
        headers: Headers::default(),
        body: Bytes::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_completely() {
        let complete = [
            "HTTP/1.1 400 Bad Request\r\ncontent-length: 2\r\n\r\nab",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
            "HTTP/1.1 204 No Content\r\n\r\n",
            "HTTP/1.1 404 Not Found\r\nx-ms-error-code: BlobNotFound\r\n\r\n",
        ];
        for text in complete {
            assert!(is_complete(text.as_bytes()), "{text}");
        }
        let open = [
            "HTTP/1.1 400",
            "HTTP/1.1 400 Bad Request\r\ncontent-length: 2\r\n\r\na",
            "HTTP/1.1 200 OK\r\n\r\n",
        ];
        for text in open {
            assert!(!is_complete(text.as_bytes()), "{text}");
        }
        let answer = parse(b"HTTP/1.1 404 Not Found\r\nX-Ms-Error-Code: BlobNotFound\r\n\r\nx");
        assert_eq!(answer.status, 404);
        assert_eq!(answer.error_code().as_deref(), Some("BlobNotFound"));
        assert_eq!(parse(b"").status, 0);
    }
}
