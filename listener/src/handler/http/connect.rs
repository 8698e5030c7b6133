//! A pool of connections to one HTTP endpoint.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::{Request, Response, Uri};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

const IDLE_MAX: usize = 64;

/// Why a message could not be posted.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The URL is not an absolute http or https URL.
    #[error("`{0}` is not an http:// or https:// URL")]
    Url(String),
    /// TLS could not be set up.
    #[error("cannot set up TLS: {0}")]
    Tls(#[from] rustls::Error),
    /// The connection could not be opened.
    #[error("cannot connect to {host}: {source}")]
    Connect {
        /// Host and port of the endpoint.
        host: String,
        /// The I/O error.
        source: io::Error,
    },
    /// The connection broke.
    #[error("no answer: {0}")]
    Http(#[from] hyper::Error),
}

/// A connection that can send the next request.
pub(super) type Connection = SendRequest<Full<Bytes>>;

pub(super) struct Pool {
    host: String,
    port: u16,
    tls: Option<(TlsConnector, ServerName<'static>)>,
    idle: Mutex<Vec<Connection>>,
}

impl Pool {
    pub(super) fn new(uri: &Uri) -> Result<Self, ConnectError> {
        let wrong = || ConnectError::Url(uri.to_string());
        let host = uri.host().ok_or_else(wrong)?.to_owned();
        let tls = match uri.scheme_str() {
            Some("http") => None,
            Some("https") => {
                let bare = host.trim_matches(['[', ']']).to_owned();
                let name = ServerName::try_from(bare).map_err(|_| wrong())?;
                Some((tls_connector()?, name))
            }
            _ => return Err(wrong()),
        };
        let default_port = if tls.is_some() { 443 } else { 80 };
        Ok(Pool {
            port: uri.port_u16().unwrap_or(default_port),
            host,
            tls,
            idle: Mutex::new(Vec::new()),
        })
    }

    pub(super) fn host_header(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// Sends a request on a kept connection or a new one. If a kept connection turns out to be
    /// closed, the request was not sent, and the next connection is tried.
    pub(super) async fn send(
        &self,
        mut request: Request<Full<Bytes>>,
    ) -> Result<(Response<Incoming>, Connection), ConnectError> {
        while let Some(mut connection) = self.take() {
            if connection.ready().await.is_err() {
                continue;
            }
            match connection.try_send_request(request).await {
                Ok(answer) => return Ok((answer, connection)),
                Err(mut error) => match error.take_message() {
                    Some(unsent) => request = unsent,
                    None => return Err(error.into_error().into()),
                },
            }
        }
        let mut connection = self.open().await?;
        let answer = connection.send_request(request).await?;
        Ok((answer, connection))
    }

    pub(super) fn keep(&self, connection: Connection) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < IDLE_MAX && !connection.is_closed() {
            idle.push(connection);
        }
    }

    fn take(&self) -> Option<Connection> {
        self.idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop()
    }

    async fn open(&self) -> Result<Connection, ConnectError> {
        let unreachable = |source| ConnectError::Connect {
            host: self.host_header(),
            source,
        };
        let bare = self.host.trim_matches(['[', ']']);
        let stream = TcpStream::connect((bare, self.port))
            .await
            .map_err(unreachable)?;
        match &self.tls {
            None => handshake(stream).await,
            Some((connector, name)) => {
                let stream = connector.connect(name.clone(), stream).await;
                handshake(stream.map_err(unreachable)?).await
            }
        }
    }
}

async fn handshake<S>(stream: S) -> Result<Connection, ConnectError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    // The task ends when the sender is dropped; the sender gets the error as well.
    tokio::spawn(async move {
        let _ = connection.await;
    });
    Ok(sender)
}

fn tls_connector() -> Result<TlsConnector, rustls::Error> {
    let roots = rustls::RootCertStore {
        roots: webpki_roots::TLS_SERVER_ROOTS.to_vec(),
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}
