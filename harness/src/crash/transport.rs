//! Sends requests to the service: over a socket, or by a call in this process.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use smalt::{Emulator, body};

use crate::servers::ServerError;
use crate::wire::Answer;
use crate::wire::connection::{Connection, head};

/// Longest wait for an answer in process; every request here takes less than a tenth of it.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// A connection to one service.
pub enum Transport {
    /// A kept-alive connection, and its address.
    Socket(Connection, SocketAddr),
    /// An emulator in this process, and the address that means the service.
    InProcess(Emulator, &'static str),
}

impl Transport {
    /// Connects again after a connection broke.
    ///
    /// # Errors
    /// When no server listens.
    pub async fn reconnect(&mut self) -> Result<(), ServerError> {
        if let Transport::Socket(connection, address) = self {
            *connection = Connection::open(*address).await?;
        }
        Ok(())
    }

    /// Sends a request and reads the complete answer.
    ///
    /// # Errors
    /// When there is no answer.
    pub async fn send(
        &mut self,
        method: Method,
        path: &str,
        headers: &[(&'static str, &str)],
        content: impl Into<Bytes>,
    ) -> Result<Answer, ServerError> {
        match self {
            Transport::Socket(connection, _) => {
                Ok(connection.send(method, path, headers, content).await?)
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
    let uri = format!("{endpoint}{path}");
    let request = head(method, &uri, headers, content.len()).body(body::full(content));
    let request = request.map_err(ServerError::call)?;
    let answer = emulator.call(request).await.map_err(ServerError::call)?;
    Ok(Answer::read(answer).await?)
}
