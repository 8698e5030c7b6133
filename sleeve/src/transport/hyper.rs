//! The socket transport: HTTP/1.1 connections of hyper with keep-alive, timeouts and TLS.

use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use http::response::Parts;
use http::uri::PathAndQuery;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Incoming};

use super::connect::{Connector, Origin, Sender};
use super::pool::Pool;
use super::{Transport, TransportError, is_refusal, tls};

/// Settings of the socket transport.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HyperTransportSettings {
    /// Time limit for name lookup, TCP and TLS together. Default 10 s.
    pub connect_timeout: Duration,
    /// Time limit for each step of waiting for or reading a response. Default 60 s: the service
    /// itself gives up an operation after 30 s.
    pub read_timeout: Duration,
    /// How long an idle connection is kept. Default 4 s: many servers close theirs after 5 s, and a
    /// request sent into a closing connection has an unknown outcome.
    pub idle_timeout: Duration,
    /// Maximum number of idle connections per host. Default 64.
    pub idle_most: usize,
    /// Maximum size of a response in bytes; larger ones are an error. Default 256 MiB.
    pub answer_bytes_max: u64,
    /// Certificates in PEM that are trusted in addition to the web's authorities.
    pub extra_ca_pem: Vec<u8>,
    /// Addresses that replace a host's own (as curl's `--resolve`): `acct.blob.core.windows.net`
    /// can lead to a local TLS endpoint, without changing the host name or the certificate check.
    pub resolve: HashMap<String, SocketAddr>,
}

impl Default for HyperTransportSettings {
    fn default() -> Self {
        HyperTransportSettings {
            connect_timeout: Duration::from_secs(10),
            read_timeout: Duration::from_secs(60),
            idle_timeout: Duration::from_secs(4),
            idle_most: 64,
            answer_bytes_max: 256 * 1024 * 1024,
            extra_ca_pem: Vec::new(),
            resolve: HashMap::new(),
        }
    }
}

/// HTTP/1.1 over sockets. Needs a tokio runtime with IO and time.
pub struct HyperTransport {
    connector: Connector,
    pool: Pool,
    read_timeout: Duration,
    answer_bytes_max: u64,
}

impl HyperTransport {
    /// Creates a transport with these settings.
    ///
    /// # Errors
    /// [`TransportError::Malformed`] if the extra certificates cannot be parsed.
    pub fn new(settings: HyperTransportSettings) -> Result<Self, TransportError> {
        let named = settings.resolve.into_iter();
        Ok(HyperTransport {
            connector: Connector {
                tls: tls::connector(&settings.extra_ca_pem)?,
                resolve: named
                    .map(|(host, to)| (host.to_ascii_lowercase(), to))
                    .collect(),
                timeout: settings.connect_timeout,
            },
            pool: Pool::new(settings.idle_most, settings.idle_timeout),
            read_timeout: settings.read_timeout,
            answer_bytes_max: settings.answer_bytes_max,
        })
    }

    /// Returns the current number of idle connections.
    pub fn idle_connections(&self) -> usize {
        self.pool.len()
    }

    /// Returns host and port of a URL to which requests can be sent: it has a scheme and a valid
    /// host.
    ///
    /// # Errors
    /// [`TransportError::Malformed`].
    pub fn host_and_port(uri: &http::Uri) -> Result<String, TransportError> {
        let origin = Origin::of(uri)?;
        if origin.tls {
            tls::server_name(&origin.host)?;
        }
        Ok(format!("{}:{}", origin.host, origin.port))
    }

    /// Sends one request and returns the head of the response, with its body or the reason why that
    /// is missing. Serves callers for whom the status is the response.
    ///
    /// # Errors
    /// No head arrived.
    pub async fn exchange(
        &self,
        request: http::Request<Bytes>,
    ) -> Result<(Parts, Result<Bytes, TransportError>), TransportError> {
        let origin = Origin::of(request.uri())?;
        let (response, sender) = self.send(&origin, origin_form(request)?).await?;
        let (head, body) = response.into_parts();
        let body = self.read(body).await;
        if body.is_ok() {
            self.pool.put(origin, sender);
        }
        Ok((head, body))
    }

    /// Sends over an idle connection if there is one, otherwise over a new one. An idle connection
    /// that turns out to be closed returns the request unsent; only then is it sent again.
    async fn send(
        &self,
        origin: &Origin,
        mut request: http::Request<Full<Bytes>>,
    ) -> Result<(http::Response<Incoming>, Sender), TransportError> {
        while let Some(mut sender) = self.pool.take(origin).await {
            let sent = sender.try_send_request(request);
            match self.in_time(sent).await? {
                Ok(response) => return Ok((response, sender)),
                Err(mut failed) => match failed.take_message() {
                    Some(unsent) => request = unsent,
                    None => return Err(no_answer(failed.error())),
                },
            }
        }
        let mut sender = self.connector.connect(origin).await?;
        match self.in_time(sender.try_send_request(request)).await? {
            Ok(response) => Ok((response, sender)),
            Err(mut failed) => Err(match failed.take_message() {
                Some(_) => TransportError::Unreachable(failed.error().to_string()),
                None => no_answer(failed.error()),
            }),
        }
    }

    async fn read(&self, mut body: Incoming) -> Result<Bytes, TransportError> {
        let too_large = || TransportError::AnswerTooLarge(self.answer_bytes_max);
        let announced = body.size_hint().exact().unwrap_or(0);
        if announced > self.answer_bytes_max {
            return Err(too_large());
        }
        let mut whole = BytesMut::new();
        while let Some(frame) = self.in_time(body.frame()).await? {
            let Ok(data) = frame.map_err(|error| no_answer(&error))?.into_data() else {
                continue;
            };
            if whole.is_empty() && data.len() as u64 == announced {
                // The usual small body arrives in one frame and is not copied.
                self.in_time(body.frame()).await?;
                return Ok(data);
            }
            if (whole.len() + data.len()) as u64 > self.answer_bytes_max {
                return Err(too_large());
            }
            whole.extend_from_slice(&data);
        }
        Ok(whole.freeze())
    }

    async fn in_time<F: Future>(&self, future: F) -> Result<F::Output, TransportError> {
        let in_time = tokio::time::timeout(self.read_timeout, future).await;
        in_time.map_err(|_| TransportError::NoAnswer("the response took too long".to_owned()))
    }
}

impl fmt::Debug for HyperTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HyperTransport")
            .field("idle_connections", &self.pool.len())
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl Transport for HyperTransport {
    async fn round_trip(
        &self,
        request: http::Request<Bytes>,
    ) -> Result<http::Response<Bytes>, TransportError> {
        let (head, body) = self.exchange(request).await?;
        match body {
            Ok(body) => Ok(http::Response::from_parts(head, body)),
            Err(TransportError::NoAnswer(_)) if is_refusal(head.status) => {
                Ok(http::Response::from_parts(head, Bytes::new()))
            }
            Err(error) => Err(error),
        }
    }
}

/// Converts to origin form: path and query only, with the host in its header.
fn origin_form(
    request: http::Request<Bytes>,
) -> Result<http::Request<Full<Bytes>>, TransportError> {
    let (mut head, body) = request.into_parts();
    let target = (head.uri.path_and_query()).map_or("/", PathAndQuery::as_str);
    head.uri = (target.parse())
        .map_err(|_| TransportError::Malformed("the URL's path cannot be sent".to_owned()))?;
    Ok(http::Request::from_parts(head, Full::new(body)))
}

fn no_answer(error: &hyper::Error) -> TransportError {
    TransportError::NoAnswer(error.to_string())
}
