//! One kept-alive HTTP/1.1 connection.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body::Body;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use super::WireError;
use super::message::Answer;

/// Time limit for an answer; all requests of the checks take less than a tenth of it.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// Starts HTTP/1.1 on a stream; returns the request sender and the task that drives the connection.
///
/// # Errors
/// When the stream is closed.
pub(super) async fn begin<S, B>(
    client: &http1::Builder,
    stream: S,
) -> Result<(SendRequest<B>, JoinHandle<()>), hyper::Error>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let (sender, connection) = client.handshake(TokioIo::new(stream)).await?;
    // The error of a connection is dropped because its request reports it.
    let driver = tokio::spawn(async move { drop(connection.await) });
    Ok((sender, driver))
}

/// Returns a request without its body. Uploads have a `Content-Length` even when it is 0, because
/// Azure requires it.
pub fn head(
    method: Method,
    uri: &str,
    headers: &[(&'static str, &str)],
    body_bytes: usize,
) -> http::request::Builder {
    let mut request = Request::builder().uri(uri);
    if matches!(method, Method::PUT | Method::POST) {
        request = request.header("content-length", body_bytes);
    }
    request = request.method(method);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request
}

/// A connection for consecutive requests.
pub struct Connection {
    sender: SendRequest<Full<Bytes>>,
    driver: JoinHandle<()>,
    host: String,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Connection {
    /// Connects.
    pub async fn open(address: SocketAddr) -> Result<Self, WireError> {
        let stream = TcpStream::connect(address).await.map_err(WireError::call)?;
        stream.set_nodelay(true).map_err(WireError::call)?;
        let (sender, driver) = begin(&http1::Builder::new(), stream)
            .await
            .map_err(WireError::call)?;
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
    ) -> Result<Answer, WireError> {
        let body: Bytes = body.into();
        let mut request = head(method, path, headers, body.len());
        request = request.header("host", &self.host);
        let request = request.body(Full::new(body)).map_err(WireError::request)?;
        let exchange = async { Answer::read(self.pass(request).await?).await };
        tokio::time::timeout(ANSWER_TIMEOUT, exchange)
            .await
            .unwrap_or(Err(WireError::Silent(ANSWER_TIMEOUT)))
    }

    /// Sends a request unchanged; the answer's body is streamed.
    pub async fn pass(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, WireError> {
        self.sender.ready().await.map_err(WireError::call)?;
        let answer = self.sender.send_request(request).await;
        answer.map_err(WireError::call)
    }
}
