//! One connection: optional TLS, HTTP/1.1, and bodies that time out when they stall.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep};
use tokio_rustls::TlsAcceptor;

use super::case_stream::{CaseStream, Names};
use super::idle::{Exchange, IdleStream};
use super::limits::{HANDSHAKE_TIMEOUT, HEAD_BYTES_MAX, HEADERS_MAX, Patience};
use super::rest::ReadOut;
use super::{Ends, Transport};
use crate::body::Body;
use crate::faults::ConnectionLost;
use crate::header_case::HeaderCase;

/// Starts connections that share the same limits.
pub(super) struct Connections {
    http: http1::Builder,
    transport: Transport,
    patience: Patience,
}

impl Connections {
    pub(super) fn new(transport: Transport, patience: Patience) -> Self {
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new())
            // hyper's timeout starts at the end of a response, so it must also cover the idle time.
            .header_read_timeout(patience.idle.unwrap_or_default().max(patience.head))
            .max_headers(HEADERS_MAX)
            .max_buf_size(HEAD_BYTES_MAX * 4)
            .max_header_size(HEAD_BYTES_MAX)
            // The `Date` header comes from the emulator's clock, not from the machine's.
            // `pipeline_flush` stays off: with it hyper buffers a whole body for a slow reader, and
            // never sends the error response to a request that it cannot parse.
            .auto_date_header(false);
        Connections {
            http,
            transport,
            patience,
        }
    }

    /// Serves a connection in its own task.
    pub(super) fn spawn<H, F>(
        &self,
        stream: TcpStream,
        peer: SocketAddr,
        handle: &Arc<H>,
        graceful: &GracefulShutdown,
    ) where
        H: Fn(Request<Body>, Ends) -> F + Send + Sync + 'static,
        F: Future<Output = Result<Response<Body>, ConnectionLost>> + Send + 'static,
    {
        // Responses are small and complete, so waiting for more data only delays them.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "cannot set TCP_NODELAY");
        }
        let ends = Ends {
            local: stream.local_addr().ok(),
            peer,
        };
        let (http, handle, watcher) = (self.http.clone(), handle.clone(), graceful.watcher());
        let patience = self.patience;
        match self.transport.clone() {
            Transport::Http => {
                tokio::spawn(serve(http, stream, ends, handle, watcher, patience));
            }
            transport @ (Transport::Https(_) | Transport::Both(_)) => {
                tokio::spawn(async move {
                    let Some(tls) = chosen(transport, &stream).await else {
                        return serve(http, stream, ends, handle, watcher, patience).await;
                    };
                    match tokio::time::timeout(HANDSHAKE_TIMEOUT, tls.accept(stream)).await {
                        Ok(Ok(stream)) => {
                            serve(http, stream, ends, handle, watcher, patience).await;
                        }
                        Ok(Err(error)) => tracing::debug!(%peer, %error, "TLS handshake failed"),
                        Err(_) => tracing::debug!(%peer, "TLS handshake timed out"),
                    }
                });
            }
        }
    }
}

/// Returns the acceptor for a connection that starts with TLS, which it does with a handshake.
async fn chosen(transport: Transport, stream: &TcpStream) -> Option<TlsAcceptor> {
    const HANDSHAKE: u8 = 22;
    match transport {
        Transport::Http => None,
        Transport::Https(tls) => Some(tls),
        Transport::Both(tls) => {
            let mut first = [0];
            let peeked = tokio::time::timeout(HANDSHAKE_TIMEOUT, stream.peek(&mut first)).await;
            (peeked.is_ok() && first == [HANDSHAKE]).then_some(tls)
        }
    }
}

async fn serve<S, H, F>(
    http: http1::Builder,
    stream: S,
    ends: Ends,
    handle: Arc<H>,
    watcher: Watcher,
    patience: Patience,
) where
    S: AsyncRead + AsyncWrite + Unpin + 'static,
    H: Fn(Request<Body>, Ends) -> F + Send + Sync + 'static,
    F: Future<Output = Result<Response<Body>, ConnectionLost>> + Send + 'static,
{
    let names = Names::default();
    let exchange = Exchange::default();
    let stream = IdleStream::new(stream, exchange.clone(), patience.idle);
    let stream = TokioIo::new(CaseStream::new(stream, names.clone()));
    let service = service_fn(move |mut request: Request<Incoming>| {
        exchange.begin();
        let case = names.read().within(request.headers());
        if !case.is_empty() {
            request.extensions_mut().insert(case);
        }
        let (request, ending) = ReadOut::new(request, patience);
        let answer = handle(request.map(ReadOut::boxed_unsync), ends);
        let (names, exchange) = (names.clone(), exchange.clone());
        async move {
            let mut response = answer.await?;
            ending.tell(response.headers_mut());
            if let Some(case) = response.extensions_mut().remove::<HeaderCase>() {
                names.restore(case);
            }
            Ok::<_, ConnectionLost>(response.map(|body| exchange.until_end_of(body)))
        }
    });
    let connection = http.serve_connection(stream, service);
    if let Err(error) = watcher.watch(connection).await {
        tracing::debug!(peer = %ends.peer, %error, "the connection ended early");
    }
}

/// A body with a timeout for each next part.
pub(super) struct Unstalled {
    body: Incoming,
    stall: Duration,
    /// Set only while a part is awaited, so that a buffered body needs no timer.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl Unstalled {
    pub(super) fn new(body: Incoming, stall: Duration) -> Self {
        Unstalled {
            body,
            stall,
            deadline: None,
        }
    }
}

impl http_body::Body for Unstalled {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(cx) {
            self.deadline = None;
            return Poll::Ready(frame.map(|f| f.map_err(io::Error::other)));
        }
        let stall = self.stall;
        let deadline = self
            .deadline
            .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(Instant::now() + stall)));
        ready!(deadline.as_mut().poll(cx));
        Poll::Ready(Some(Err(io::ErrorKind::TimedOut.into())))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
