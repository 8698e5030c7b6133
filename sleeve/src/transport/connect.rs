//! Opens one HTTP/1.1 connection: name lookup, TCP, TLS, handshake. A failure here means that the
//! service was not reached.

use std::collections::HashMap;
use std::fmt::Display;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1::{Builder, SendRequest};
use hyper::rt::{Read, Write};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::{TransportError, tls};

/// Maximum number of response headers. Hyper's own limit of 100 is too low for a blob with 8 KiB of
/// metadata under short names.
const ANSWER_HEADERS_MAX: usize = 1000;

pub(super) type Sender = SendRequest<Full<Bytes>>;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Origin {
    pub(super) tls: bool,
    pub(super) host: String,
    pub(super) port: u16,
}

impl Origin {
    pub(super) fn of(uri: &http::Uri) -> Result<Self, TransportError> {
        let malformed = || TransportError::Malformed("the URL needs http(s) and a host".to_owned());
        let tls = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(malformed()),
        };
        let host = uri.host().ok_or_else(malformed)?.to_owned();
        let port = uri.port_u16().unwrap_or(if tls { 443 } else { 80 });
        Ok(Origin { tls, host, port })
    }
}

pub(super) struct Connector {
    pub(super) tls: TlsConnector,
    pub(super) resolve: HashMap<String, SocketAddr>,
    pub(super) timeout: Duration,
}

impl Connector {
    pub(super) async fn connect(&self, origin: &Origin) -> Result<Sender, TransportError> {
        match tokio::time::timeout(self.timeout, self.open(origin)).await {
            Ok(connected) => connected,
            Err(_) => Err(unreachable(origin, "connecting took too long")),
        }
    }

    async fn open(&self, origin: &Origin) -> Result<Sender, TransportError> {
        let stream = self
            .dial(origin)
            .await
            .map_err(|error| unreachable(origin, error))?;
        // Prevents small requests from waiting for the peer's acknowledgement. A failure costs only
        // time.
        let _ = stream.set_nodelay(true);
        if !origin.tls {
            return shake(origin, TokioIo::new(stream)).await;
        }
        let name = tls::server_name(&origin.host)?;
        let stream = self.tls.connect(name, stream).await;
        let stream = stream.map_err(|error| match tls::is_distrust(&error) {
            true => TransportError::Untrusted(named(origin, error)),
            false => unreachable(origin, error),
        })?;
        shake(origin, TokioIo::new(stream)).await
    }

    async fn dial(&self, origin: &Origin) -> io::Result<TcpStream> {
        if let Some(address) = self.resolve.get(&origin.host.to_ascii_lowercase()) {
            return TcpStream::connect(address).await;
        }
        let bare = origin.host.trim_start_matches('[').trim_end_matches(']');
        TcpStream::connect((bare, origin.port)).await
    }
}

async fn shake<T>(origin: &Origin, io: T) -> Result<Sender, TransportError>
where
    T: Read + Write + Unpin + Send + 'static,
{
    let shaken = Builder::new()
        .max_headers(ANSWER_HEADERS_MAX)
        .handshake(io)
        .await;
    let (sender, connection) = shaken.map_err(|error| unreachable(origin, error))?;
    // The task ends when either side closes; a caller that waits for a response also gets its
    // error.
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "connection ended");
        }
    });
    Ok(sender)
}

fn unreachable(origin: &Origin, why: impl Display) -> TransportError {
    TransportError::Unreachable(named(origin, why))
}

fn named(origin: &Origin, why: impl Display) -> String {
    format!("{}:{}: {why}", origin.host, origin.port)
}
