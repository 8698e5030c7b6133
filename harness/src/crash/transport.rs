//! Sends requests to the service: over a socket, or by a call in this process.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use smalt::Emulator;
use smalt_protocol::Service;

use crate::servers::ServerError;
use crate::wire::connection::Connection;
use crate::wire::{Answer, WireError, in_process};

/// Longest wait for an answer in process; every request here takes less than a tenth of it.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// A connection to one service.
pub enum Transport {
    /// A kept-alive connection, and its address.
    Socket(Connection, SocketAddr),
    /// An emulator in this process, and the service.
    InProcess(Emulator, Service),
}

impl Transport {
    /// Connects again after a connection broke.
    pub async fn reconnect(&mut self) -> Result<(), ServerError> {
        if let Transport::Socket(connection, address) = self {
            *connection = Connection::open(*address).await?;
        }
        Ok(())
    }

    /// Sends a request and reads the complete answer.
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
            Transport::InProcess(emulator, service) => {
                let call = in_process::send(emulator, *service, (method, path), headers, content);
                let answer = tokio::time::timeout(ANSWER_TIMEOUT, call).await;
                Ok(answer.unwrap_or(Err(WireError::Silent(ANSWER_TIMEOUT)))?)
            }
        }
    }
}
