//! The client that fetches copy sources: one HTTP/1.1 connection per source, TLS with the public
//! certificate authorities, and limits on every time and size.

use std::fmt::Display;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::HOST;
use http::uri::PathAndQuery;
use http::{HeaderValue, Request, Response, Uri};
use http_body::{Frame, SizeHint};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{Builder, SendRequest};
use hyper::rt::{Read, Write};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::TlsConnector;

use super::connection::Unstalled;
use super::limits::{
    BODY_STALL_TIMEOUT, HEADERS_MAX, SOURCE_CONNECT_TIMEOUT, SOURCE_HEAD_TIMEOUT, SOURCE_TIMEOUT,
};
use crate::fetch::{Fetch, FetchError, Fetching, SourceRules};

type Sender = SendRequest<Full<Bytes>>;

/// Fetches copy sources over the network, as far as its rules allow.
pub struct SourceClient {
    rules: SourceRules,
    tls: TlsConnector,
}

/// Scheme, host and port of a URL.
struct Origin {
    secure: bool,
    host: String,
    port: u16,
}

impl SourceClient {
    /// Creates a client with these rules.
    ///
    /// # Errors
    /// When TLS cannot be set up.
    pub fn new(rules: SourceRules) -> Result<Self, rustls::Error> {
        let roots = RootCertStore::from_iter(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(SourceClient {
            rules,
            tls: TlsConnector::from(Arc::new(config)),
        })
    }

    async fn send(
        &self,
        mut request: Request<Bytes>,
    ) -> Result<Response<crate::body::Body>, FetchError> {
        let until = Instant::now() + SOURCE_TIMEOUT;
        let origin = Origin::of(request.uri())?;
        if let Ok(host) = HeaderValue::from_str(&origin.authority()) {
            request.headers_mut().insert(HOST, host);
        }
        // A request to a server names the path and query only.
        let target = request.uri().path_and_query().map(PathAndQuery::as_str);
        let target = target.unwrap_or("/").parse::<Uri>();
        *request.uri_mut() = target.map_err(|error| origin.unreachable(error))?;
        let mut sender = within(SOURCE_CONNECT_TIMEOUT, &origin, self.connect(&origin)).await?;
        let request = request.map(Full::new);
        let answer = within(SOURCE_HEAD_TIMEOUT, &origin, async {
            let answer = sender.send_request(request).await;
            answer.map_err(|error| origin.unreachable(error))
        });
        let answer = timeout_at(until, answer);
        let answer = answer.await.map_err(|_| origin.timed_out())??;
        Ok(answer.map(|body| {
            let body = Unstalled::new(body, BODY_STALL_TIMEOUT);
            Timed { body, until }.boxed_unsync()
        }))
    }

    async fn connect(&self, origin: &Origin) -> Result<Sender, FetchError> {
        let stream = TcpStream::connect(self.address(origin).await?).await;
        let stream = stream.map_err(|error| origin.unreachable(error))?;
        if !origin.secure {
            return shake(origin, TokioIo::new(stream)).await;
        }
        let name = ServerName::try_from(origin.bare_host().to_owned());
        let name = name.map_err(|error| origin.unreachable(error))?;
        let stream = self.tls.connect(name, stream).await;
        let stream = stream.map_err(|error| origin.unreachable(error))?;
        shake(origin, TokioIo::new(stream)).await
    }

    /// Returns the address to connect to: the first address of the host that the rules allow.
    /// Returning the address instead of the name avoids a second lookup with another result.
    async fn address(&self, origin: &Origin) -> Result<SocketAddr, FetchError> {
        let host = origin.bare_host();
        let found = tokio::net::lookup_host((host, origin.port)).await;
        let found: Vec<SocketAddr> = found.map_err(|error| origin.unreachable(error))?.collect();
        let admitted = found.iter().find(|a| self.rules.admit(host, a.ip()));
        match (admitted, found.first()) {
            (Some(address), _) => Ok(*address),
            (None, Some(address)) => {
                let shown = format!("{host} at {}", address.ip());
                Err(FetchError::Forbidden(shown))
            }
            (None, None) => Err(origin.unreachable("no address")),
        }
    }
}

impl Fetch for SourceClient {
    fn fetch(&self, request: Request<Bytes>) -> Fetching<'_> {
        Box::pin(self.send(request))
    }
}

impl Origin {
    fn of(uri: &Uri) -> Result<Self, FetchError> {
        let malformed = || FetchError::Malformed(uri.to_string());
        let secure = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(malformed()),
        };
        Ok(Origin {
            secure,
            host: uri.host().ok_or_else(malformed)?.to_owned(),
            port: uri.port_u16().unwrap_or(if secure { 443 } else { 80 }),
        })
    }

    fn bare_host(&self) -> &str {
        self.host.trim_matches(['[', ']'])
    }

    fn authority(&self) -> String {
        match (self.secure, self.port) {
            (false, 80) | (true, 443) => self.host.clone(),
            (_, port) => format!("{}:{port}", self.host),
        }
    }

    fn unreachable(&self, why: impl Display) -> FetchError {
        FetchError::Unreachable(format!("{}: {why}", self.authority()))
    }

    fn timed_out(&self) -> FetchError {
        FetchError::TimedOut(self.authority())
    }
}

async fn within<T>(
    time: Duration,
    origin: &Origin,
    step: impl Future<Output = Result<T, FetchError>>,
) -> Result<T, FetchError> {
    let done = timeout(time, step).await;
    done.map_err(|_| origin.timed_out())?
}

async fn shake<T>(origin: &Origin, io: T) -> Result<Sender, FetchError>
where
    T: Read + Write + Unpin + Send + 'static,
{
    let shaken = Builder::new().max_headers(HEADERS_MAX).handshake(io).await;
    let (sender, connection) = shaken.map_err(|error| origin.unreachable(error))?;
    // The task ends when either side closes; the error also reaches the caller that waits for the
    // response.
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "the connection to a copy source ended early");
        }
    });
    Ok(sender)
}

/// A body that must end before a deadline, even if it keeps sending.
struct Timed {
    body: Unstalled,
    until: Instant,
}

impl http_body::Body for Timed {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        if Instant::now() >= self.until {
            return Poll::Ready(Some(Err(io::ErrorKind::TimedOut.into())));
        }
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests;
