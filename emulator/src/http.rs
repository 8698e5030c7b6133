//! The loopback servers and the client for copy sources: sockets, TLS, HTTP/1.1. The only module
//! that uses hyper.

mod accept_errors;
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
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;

pub use access_log::{AccessLog, AccessLogEnd};
pub use client::SourceClient;
pub use limits::Patience;
pub use pfx::PfxError;
pub use tls::{TlsError, acceptor, pfx_acceptor};

use crate::arrival::Socket;
use crate::emulator::Emulator;
use accept_errors::AcceptErrors;
use access_log::Asked;
use connection::Connections;

/// Time limit for requests in flight when the server stops.
const DRAIN: Duration = Duration::from_secs(5);

/// The addresses of both ends of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ends {
    /// Address that the peer connected to; `None` when the system cannot return it.
    pub(crate) local: Option<SocketAddr>,
    pub(crate) peer: SocketAddr,
}

/// What the clients of a socket speak.
#[derive(Clone)]
pub(crate) enum Transport {
    Http,
    Https(TlsAcceptor),
    /// Each connection as its first byte tells.
    Both(TlsAcceptor),
}

/// A listening socket of one service.
pub struct Listener {
    service: Service,
    data_lake: bool,
    socket: TcpListener,
    tls: Option<TlsAcceptor>,
    patience: Patience,
    log: Option<AccessLog>,
}

impl Listener {
    /// Binds an address. Port 0 picks a free one.
    ///
    /// # Errors
    /// When the address is taken or does not belong to this machine.
    pub async fn bind(
        service: Service,
        address: SocketAddr,
        tls: Option<TlsAcceptor>,
        patience: Patience,
    ) -> std::io::Result<Self> {
        Ok(Listener {
            service,
            data_lake: false,
            socket: TcpListener::bind(address).await?,
            tls,
            patience,
            log: None,
        })
    }

    /// Writes each request to the access log `log`.
    #[must_use]
    pub fn logged(mut self, log: AccessLog) -> Self {
        self.log = Some(log);
        self
    }

    /// Serves the Data Lake interface of the Blob service alone.
    #[must_use]
    pub fn data_lake_alone(mut self) -> Self {
        self.data_lake = true;
        self
    }

    /// Returns the service that this socket serves.
    pub fn service(&self) -> Service {
        self.service
    }

    /// Returns the bound address.
    ///
    /// # Errors
    /// When the system cannot return it.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Serves until `stop` is ready, then waits for requests in flight, for at most five seconds.
    pub async fn serve(self, emulator: Emulator, stop: impl Future<Output = ()>) {
        let socket = Socket {
            service: Some(self.service),
            data_lake: self.data_lake,
            secure: self.tls.is_some(),
            ..Socket::default()
        };
        let log = self.log;
        let handle = Arc::new(
            move |request: http::Request<crate::body::Body>, ends: Ends| {
                let (emulator, log) = (emulator.clone(), log.clone());
                let socket = Socket {
                    peer: Some(ends.peer.ip()),
                    local: ends.local.map(|local| local.ip()),
                    ..socket
                };
                async move {
                    let Some(log) = log else {
                        return emulator.call_on(request, socket).await;
                    };
                    let asked = Asked::of(&request, ends.peer.ip());
                    let answer = emulator.call_on(request, socket).await;
                    log.tell(emulator.now(), &asked, answer.as_ref().ok());
                    answer
                }
            },
        );
        let transport = self.tls.map_or(Transport::Http, Transport::Https);
        accept(self.socket, transport, self.patience, handle, stop).await;
    }
}

async fn next(listener: &TcpListener, pause: Duration) -> std::io::Result<(TcpStream, SocketAddr)> {
    if !pause.is_zero() {
        tokio::time::sleep(pause).await;
    }
    listener.accept().await
}

/// Accepts connections and passes each request to `handle`; an `Err` cuts the connection.
pub(crate) async fn accept<H, F>(
    listener: TcpListener,
    transport: Transport,
    patience: Patience,
    handle: Arc<H>,
    stop: impl Future<Output = ()>,
) where
    H: Fn(http::Request<crate::body::Body>, Ends) -> F + Send + Sync + 'static,
    F: Future<Output = Result<http::Response<crate::body::Body>, crate::faults::ConnectionLost>>
        + Send
        + 'static,
{
    let graceful = GracefulShutdown::new();
    let connections = Connections::new(transport, patience);
    let mut errors = AcceptErrors::default();
    tokio::pin!(stop);
    loop {
        let accepted = tokio::select! {
            biased;
            () = &mut stop => break,
            accepted = next(&listener, errors.pause()) => accepted,
        };
        match accepted {
            Ok((stream, peer)) => {
                errors.accepted();
                connections.spawn(stream, peer, &handle, &graceful);
            }
            // File descriptors ran out, or the peer is gone already; the next accept may succeed.
            Err(error) => {
                if let Some(failed) = errors.failed(Instant::now()) {
                    tracing::warn!(%error, failed, "cannot accept connections");
                }
            }
        }
    }
    drop(listener);
    if tokio::time::timeout(DRAIN, graceful.shutdown())
        .await
        .is_err()
    {
        tracing::warn!("cut requests that were still in flight");
    }
}
