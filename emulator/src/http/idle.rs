//! Closes connections on which no request arrives for a while: Azurite's keep-alive timeouts.
//!
//! The timeout starts at the end of a response and ends with the first byte of the next request. It
//! restarts with each part of a response that the client reads.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

use crate::body::Body;

/// Whether the last exchange of a connection is over; false before the first exchange.
#[derive(Clone, Debug, Default)]
pub(super) struct Exchange(Arc<AtomicBool>);

impl Exchange {
    /// Marks the start of a request.
    pub(super) fn begin(&self) {
        self.0.store(false, Ordering::Release);
    }

    /// Wraps a response body, which ends the exchange when it is dropped.
    pub(super) fn until_end_of(&self, body: Body) -> Answer {
        Answer {
            body,
            exchange: self.clone(),
        }
    }

    fn is_over(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

pub(super) struct Answer {
    body: Body,
    exchange: Exchange,
}

impl Drop for Answer {
    fn drop(&mut self) {
        self.exchange.0.store(true, Ordering::Release);
    }
}

impl http_body::Body for Answer {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A stream that reports its end after it was idle for too long.
pub(super) struct IdleStream<S> {
    inner: S,
    exchange: Exchange,
    limit: Option<Duration>,
    /// Set while the next request is awaited.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl<S> IdleStream<S> {
    pub(super) fn new(inner: S, exchange: Exchange, limit: Option<Duration>) -> Self {
        IdleStream {
            inner,
            exchange,
            limit,
            deadline: None,
        }
    }

    fn postpone(&mut self) {
        if let (Some(deadline), Some(limit)) = (&mut self.deadline, self.limit) {
            deadline.as_mut().reset(Instant::now() + limit);
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for IdleStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.inner).poll_read(cx, buffer);
        let limit = self.limit.filter(|_| self.exchange.is_over());
        let (Poll::Pending, Some(limit)) = (&read, limit) else {
            self.deadline = None;
            return read;
        };
        let deadline = self
            .deadline
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(limit)));
        ready!(deadline.as_mut().poll(cx));
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for IdleStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.inner).poll_write(cx, bytes));
        self.postpone();
        Poll::Ready(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.inner).poll_write_vectored(cx, parts));
        self.postpone();
        Poll::Ready(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use http::{Request, Response};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};

    use super::super::{Ends, Patience, Transport, accept};
    use super::*;
    use crate::body;

    const LIMIT: Duration = Duration::from_secs(7);
    const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n";

    /// Starts a server that answers a request after `hold`, and connects to it.
    async fn connect(hold: Duration) -> TcpStream {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let patience = Patience {
            idle: Some(LIMIT),
            ..Patience::default()
        };
        let handle = Arc::new(move |_: Request<Body>, _: Ends| async move {
            tokio::time::sleep(hold).await;
            Ok(Response::new(body::full("told")))
        });
        tokio::spawn(accept(
            listener,
            Transport::Http,
            patience,
            handle,
            std::future::pending(),
        ));
        TcpStream::connect(address).await.unwrap()
    }

    async fn ask(stream: &mut TcpStream) {
        stream.write_all(REQUEST).await.unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"told") {
            assert_ne!(stream.read_buf(&mut answer).await.unwrap(), 0);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn connection_closes_after_the_idle_timeout() {
        let mut stream = connect(Duration::ZERO).await;
        for _ in 0..3 {
            ask(&mut stream).await;
            tokio::time::sleep(LIMIT - Duration::from_secs(1)).await;
        }
        ask(&mut stream).await;
        let before = Instant::now();
        assert_eq!(stream.read(&mut [0; 1]).await.unwrap(), 0);
        let waited = before.elapsed();
        assert!(waited >= LIMIT && waited < LIMIT * 2, "{waited:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn request_in_flight_is_not_idle() {
        let mut stream = connect(LIMIT * 5).await;
        ask(&mut stream).await;
        ask(&mut stream).await;
    }
}
