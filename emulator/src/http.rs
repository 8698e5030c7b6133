//! The loopback servers and the client for copy sources: sockets, TLS, HTTP/1.1. The only module
//! that knows hyper.

mod access_log;
mod case_stream;
mod client;
mod connection;
mod idle;
mod limits;
mod pfx;
mod rest;
mod tls;

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::server::graceful::GracefulShutdown;
use smalt_protocol::Service;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

pub use access_log::{AccessLog, AccessLogEnd};
pub use client::SourceClient;
pub use limits::Patience;
pub use pfx::PfxError;
pub use tls::{TlsError, acceptor, pfx_acceptor};

use crate::arrival::Socket;
use crate::emulator::Emulator;
use access_log::Asked;
use connection::Connections;

/// How long requests in flight have to end when the server stops.
const DRAIN: Duration = Duration::from_secs(5);

/// A listening socket of one service.
pub struct Listener {
    service: Service,
    socket: TcpListener,
    tls: Option<TlsAcceptor>,
    patience: Patience,
    log: Option<AccessLog>,
}

impl Listener {
    /// Binds an address. Port 0 takes a free one.
    ///
    /// # Errors
    /// When the address is taken or not ours.
    pub async fn bind(
        service: Service,
        address: SocketAddr,
        tls: Option<TlsAcceptor>,
        patience: Patience,
    ) -> std::io::Result<Self> {
        Ok(Listener {
            service,
            socket: TcpListener::bind(address).await?,
            tls,
            patience,
            log: None,
        })
    }

    /// Logs every exchange.
    #[must_use]
    pub fn logged(mut self, log: AccessLog) -> Self {
        self.log = Some(log);
        self
    }

    /// The service.
    pub fn service(&self) -> Service {
        self.service
    }

    /// The bound address.
    ///
    /// # Errors
    /// When the system cannot tell.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Serves until `stop` is ready, then lets requests in flight end.
    pub async fn serve(self, emulator: Emulator, stop: impl Future<Output = ()>) {
        let socket = Socket {
            service: Some(self.service),
            peer: None,
            secure: self.tls.is_some(),
        };
        let log = self.log;
        let handle = Arc::new(
            move |request: http::Request<crate::body::Body>, peer: SocketAddr| {
                let (emulator, log) = (emulator.clone(), log.clone());
                let socket = Socket {
                    peer: Some(peer.ip()),
                    ..socket
                };
                async move {
                    let Some(log) = log else {
                        return emulator.call_on(request, socket).await;
                    };
                    let asked = Asked::of(&request, peer.ip());
                    let answer = emulator.call_on(request, socket).await;
                    log.tell(emulator.now(), &asked, answer.as_ref().ok());
                    answer
                }
            },
        );
        accept(self.socket, self.tls, self.patience, handle, stop).await;
    }
}

/// Accepts connections and gives each request to `handle`; an `Err` cuts the connection.
pub(crate) async fn accept<H, F>(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    patience: Patience,
    handle: Arc<H>,
    stop: impl Future<Output = ()>,
) where
    H: Fn(http::Request<crate::body::Body>, SocketAddr) -> F + Send + Sync + 'static,
    F: Future<Output = Result<http::Response<crate::body::Body>, crate::ConnectionLost>>
        + Send
        + 'static,
{
    let graceful = GracefulShutdown::new();
    let connections = Connections::new(tls, patience);
    tokio::pin!(stop);
    loop {
        let accepted = tokio::select! {
            biased;
            () = &mut stop => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => connections.spawn(stream, peer, &handle, &graceful),
            // Out of file descriptors, or the peer has gone already: the next one may do better.
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
    }
    drop(listener);
    if tokio::time::timeout(DRAIN, graceful.shutdown())
        .await
        .is_err()
    {
        tracing::warn!("requests in flight were cut");
    }
}
