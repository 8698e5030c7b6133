//! How requests get to the service: over a socket, or by a call in this process.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::BodyExt as _;
use smalt::{Emulator, body};

use crate::servers::ServerError;
use crate::servers::connection::{Answer, Connection};

/// Longest wait for an answer in process: nothing that is asked here takes a tenth of it.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// A way to one service.
pub enum Transport {
    /// A kept-alive connection, and where it leads.
    Socket(Connection, SocketAddr),
    /// An emulator in this process, and the address that means the service.
    InProcess(Emulator, &'static str),
}

impl Transport {
    /// Connects anew, after a connection broke.
    ///
    /// # Errors
    /// When nobody listens.
    pub async fn reconnect(&mut self) -> Result<(), ServerError> {
        if let Transport::Socket(connection, address) = self {
            *connection = Connection::open(*address).await?;
        }
        Ok(())
    }

    /// Sends a request and reads the whole answer.
    ///
    /// # Errors
    /// When there is none.
    pub async fn send(
        &mut self,
        method: Method,
        path: &str,
        headers: &[(&'static str, &str)],
        content: impl Into<Bytes>,
    ) -> Result<Answer, ServerError> {
        match self {
            Transport::Socket(connection, _) => {
                connection.send(method, path, headers, content).await
            }
            Transport::InProcess(emulator, endpoint) => {
                let call = within(emulator, endpoint, (method, path), headers, content.into());
                tokio::time::timeout(ANSWER_TIMEOUT, call)
                    .await
                    .unwrap_or(Err(ServerError::Silent(ANSWER_TIMEOUT)))
            }
        }
    }
}

async fn within(
    emulator: &Emulator,
    endpoint: &str,
    (method, path): (Method, &str),
    headers: &[(&'static str, &str)],
    content: Bytes,
) -> Result<Answer, ServerError> {
    let mut request = Request::builder().uri(format!("{endpoint}{path}"));
    if matches!(method, Method::PUT | Method::POST) {
        // Azure refuses an upload without a length, even an empty one.
        request = request.header("content-length", content.len());
    }
    request = request.method(method);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request
        .body(body::full(content))
        .map_err(ServerError::call)?;
    let response = emulator.call(request).await.map_err(ServerError::call)?;
    let (head, body) = response.into_parts();
    let body = body.collect().await.map_err(ServerError::call)?.to_bytes();
    Ok(Answer {
        status: head.status,
        headers: head.headers,
        body,
    })
}
