//! Reads the rest of a request body after the response is known.
//!
//! The response is sent at once, and the rest of the body is read and dropped after it, so that the
//! connection stays usable: RFC 9112, 9.3, requires either that or a closed connection. The front
//! end of Azure names itself in every response (`Server: Windows-Azure-Blob/1.0
//! Microsoft-HTTPAPI/2.0`, recorded), and the HTTP Server API reads on like this for
//! [`REST_TIMEOUT`].
//!
//! A client that waits for `100 Continue` and gets an error may or may not send its body after
//! that. Then the response has `Connection: close`, as it has after a body that broke off.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Version};
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tokio::runtime::Handle;

use super::connection::Unstalled;
use super::limits::{Patience, REST_TIMEOUT};

/// Whether the connection closes after the response.
#[derive(Clone, Debug)]
pub(super) struct Ending(Arc<AtomicBool>);

impl Ending {
    fn set(&self, ends: bool) {
        self.0.store(ends, Ordering::Release);
    }

    fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    /// Adds `Connection: close` to the response when the connection closes.
    pub(super) fn tell(&self, headers: &mut HeaderMap) {
        if self.is_set() {
            headers.insert(http::header::CONNECTION, HeaderValue::from_static("close"));
        }
    }
}

/// A request body that, when it is dropped, reads its rest in the background.
pub(super) struct ReadOut {
    /// `None` after the body has ended.
    body: Option<Unstalled>,
    ending: Ending,
}

impl ReadOut {
    /// Wraps the body of a new request.
    pub(super) fn new(request: Request<Incoming>, patience: Patience) -> (Request<Self>, Ending) {
        let expects = request.version() >= Version::HTTP_11
            && (request.headers().get(http::header::EXPECT))
                .is_some_and(|expected| expected.as_bytes().eq_ignore_ascii_case(b"100-continue"));
        let is_waiting = expects && !request.body().is_end_stream();
        let ending = Ending(Arc::new(AtomicBool::new(is_waiting)));
        let body = |body| ReadOut {
            body: Some(Unstalled::new(body, patience.body)),
            ending: ending.clone(),
        };
        (request.map(body), ending)
    }
}

impl http_body::Body for ReadOut {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        // Polling the body makes hyper send `100 Continue` to a client that waits for it.
        self.ending.set(false);
        let Some(body) = &mut self.body else {
            return Poll::Ready(None);
        };
        let frame = ready!(Pin::new(body).poll_frame(cx));
        if !matches!(frame, Some(Ok(_))) {
            self.ending.set(frame.is_some());
            self.body = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Unstalled::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        match &self.body {
            Some(body) => body.size_hint(),
            None => SizeHint::with_exact(0),
        }
    }
}

impl Drop for ReadOut {
    fn drop(&mut self) {
        if let Some(body) = self.body.take()
            && !body.is_end_stream()
            && !self.ending.is_set()
            && let Ok(runtime) = Handle::try_current()
        {
            runtime.spawn(tokio::time::timeout(REST_TIMEOUT, read_out(body)));
        }
    }
}

/// Reads until the body ends or breaks off; after a break hyper closes the connection.
async fn read_out(mut body: Unstalled) {
    while let Some(Ok(_)) = body.frame().await {}
}

#[cfg(test)]
mod tests {
    use http::{Method, Response};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};

    use super::super::{Ends, Transport, accept};
    use super::*;
    use crate::body::{self, Body};

    /// More bytes than the sockets and hyper buffer together.
    const LARGE: usize = 12 * 1024 * 1024;

    /// Reads the body of a POST, and answers a PUT with 404 without reading its body.
    async fn answer(request: Request<Body>, _: Ends) -> Answer {
        let status = match *request.method() {
            Method::POST => request.into_body().collect().await.map_or(400, |_| 201),
            _ => 404,
        };
        let mut response = Response::new(body::full("told"));
        *response.status_mut() = http::StatusCode::from_u16(status).unwrap();
        Ok(response)
    }

    type Answer = Result<Response<Body>, crate::faults::ConnectionLost>;

    /// A client reuses a connection after requests on it were refused. It sends the whole body,
    /// and reads the response meanwhile.
    #[tokio::test]
    async fn client_keeps_its_connection_after_refusals() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let never = std::future::pending();
        let patience = Patience::default();
        tokio::spawn(accept(
            listener,
            Transport::Http,
            patience,
            Arc::new(answer),
            never,
        ));
        let mut stream = TcpStream::connect(address).await.unwrap();
        let (mut responses, mut requests) = stream.split();
        let content = vec![b'x'; LARGE];
        for (method, status) in [("PUT", 404), ("POST", 201), ("PUT", 404), ("PUT", 404)] {
            let head =
                format!("{method} / HTTP/1.1\r\nhost: smalt\r\ncontent-length: {LARGE}\r\n\r\n");
            let send = async {
                requests.write_all(head.as_bytes()).await.unwrap();
                requests.write_all(&content).await.unwrap();
            };
            let read = async {
                let mut answer = Vec::new();
                while !answer.ends_with(b"\r\n\r\ntold") {
                    assert_ne!(responses.read_buf(&mut answer).await.unwrap(), 0);
                }
                String::from_utf8(answer).unwrap()
            };
            let ((), answer) = tokio::join!(send, read);
            assert!(
                answer.starts_with(&format!("HTTP/1.1 {status} ")),
                "{answer}"
            );
            assert!(!answer.contains("connection:"), "{answer}");
        }
    }
}
