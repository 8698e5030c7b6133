//! One kept-alive HTTP/1.1 connection.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::ServerError;

/// Longest wait for an answer: nothing that is asked here takes a tenth of it.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// An answer, read whole.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Status.
    pub status: StatusCode,
    /// Headers.
    pub headers: HeaderMap,
    /// Body.
    pub body: Bytes,
}

impl Answer {
    /// A header as text; empty when there is none.
    pub fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default()
    }

    /// The status, or an error that shows the answer.
    ///
    /// # Errors
    /// When the status is another.
    pub fn expect(self, status: u16) -> Result<Self, ServerError> {
        if self.status.as_u16() == status {
            return Ok(self);
        }
        let text = String::from_utf8_lossy(&self.body).into_owned();
        let (got, code) = (self.status.as_u16(), self.header("x-ms-error-code"));
        Err(ServerError::Call(format!(
            "{got} {code} in place of {status}: {text}"
        )))
    }
}

/// A connection that requests follow each other on.
pub struct Connection {
    sender: SendRequest<Full<Bytes>>,
    driver: tokio::task::JoinHandle<()>,
    host: String,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Connection {
    /// Connects.
    ///
    /// # Errors
    /// When nobody listens there.
    pub async fn open(address: SocketAddr) -> Result<Self, ServerError> {
        let stream = TcpStream::connect(address)
            .await
            .map_err(ServerError::call)?;
        stream.set_nodelay(true).map_err(ServerError::call)?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream))
            .await
            .map_err(ServerError::call)?;
        // How a connection ends is seen by the request that it carried.
        let driver = tokio::spawn(async move { drop(connection.await) });
        Ok(Connection {
            sender,
            driver,
            host: address.to_string(),
        })
    }

    /// Sends a request and reads the whole answer.
    ///
    /// # Errors
    /// When the connection breaks or the answer does not come in time.
    pub async fn send(
        &mut self,
        method: Method,
        path: &str,
        headers: &[(&'static str, &str)],
        body: impl Into<Bytes>,
    ) -> Result<Answer, ServerError> {
        let body: Bytes = body.into();
        let mut request = Request::builder().uri(path).header("host", &self.host);
        if matches!(method, Method::PUT | Method::POST) {
            // Azure refuses an upload without a length, even an empty one.
            request = request.header("content-length", body.len());
        }
        request = request.method(method);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(body)).map_err(ServerError::call)?;
        let exchange = async {
            self.sender.ready().await.map_err(ServerError::call)?;
            let response = self.sender.send_request(request).await;
            let (head, body) = response.map_err(ServerError::call)?.into_parts();
            let body = body.collect().await.map_err(ServerError::call)?.to_bytes();
            Ok(Answer {
                status: head.status,
                headers: head.headers,
                body,
            })
        };
        tokio::time::timeout(ANSWER_TIMEOUT, exchange)
            .await
            .unwrap_or(Err(ServerError::Silent(ANSWER_TIMEOUT)))
    }
}
