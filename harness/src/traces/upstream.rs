//! The service that is asked: one connection for each request, in the clear or by TLS.

use std::sync::Arc;

use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::replay::uri::Url;

/// Why the service did not answer.
#[derive(Debug, thiserror::Error)]
pub enum UpstreamError {
    /// Not `http://host:port` or `https://host`.
    #[error("not the address of a service: {0}")]
    Address(String),
    /// No connection, or a broken one.
    #[error("{0}: {1}")]
    Call(String, String),
}

/// A service at an address.
#[derive(Clone)]
pub struct Upstream {
    /// Host and, where it was named, port.
    pub authority: String,
    address: String,
    tls: Option<(TlsConnector, ServerName<'static>)>,
}

impl Upstream {
    /// Reads `http://127.0.0.1:10000` or `https://account.blob.core.windows.net`.
    ///
    /// # Errors
    /// When it is neither.
    pub fn at(text: &str) -> Result<Upstream, UpstreamError> {
        let fail = || UpstreamError::Address(text.to_owned());
        let url = Url::parse(text).ok_or_else(fail)?;
        let (port, is_tls) = match url.scheme.as_str() {
            "http" => (80, false),
            "https" => (443, true),
            _ => return Err(fail()),
        };
        if !matches!(url.path.as_str(), "" | "/") || url.query.is_some() {
            return Err(fail());
        }
        let (host, address) = match url.authority.rsplit_once(':') {
            Some((host, _)) => (host.to_owned(), url.authority.clone()),
            None => (url.authority.clone(), format!("{}:{port}", url.authority)),
        };
        let tls = if is_tls {
            let name = ServerName::try_from(host).map_err(|_| fail())?;
            Some((connector(), name))
        } else {
            None
        };
        Ok(Upstream {
            authority: url.authority,
            address,
            tls,
        })
    }

    /// Trusts this certificate, in PEM, in place of those that browsers trust.
    ///
    /// # Errors
    /// When it is none.
    pub fn trusting(mut self, authority: &str) -> Result<Upstream, UpstreamError> {
        let fail = |e: &dyn std::fmt::Display| UpstreamError::Address(e.to_string());
        let certificate = CertificateDer::from_pem_slice(authority.as_bytes());
        let mut roots = RootCertStore::empty();
        let added = roots.add(certificate.map_err(|e| fail(&e))?);
        added.map_err(|e| fail(&e))?;
        self.tls = self.tls.map(|(_, name)| (connector_to(roots), name));
        Ok(self)
    }

    /// Sends one request; the answer's body comes as it is read.
    ///
    /// # Errors
    /// When there is no connection or no answer.
    pub async fn send<B>(
        &self,
        request: http::Request<B>,
    ) -> Result<http::Response<Incoming>, UpstreamError>
    where
        B: http_body::Body<Data = bytes::Bytes> + Send + Unpin + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let stream = TcpStream::connect(&self.address).await;
        let stream = stream.map_err(|e| self.failed(&e))?;
        match &self.tls {
            None => self.exchange(stream, request).await,
            Some((connector, name)) => {
                let stream = connector.connect(name.clone(), stream).await;
                self.exchange(stream.map_err(|e| self.failed(&e))?, request)
                    .await
            }
        }
    }

    async fn exchange<S, B>(
        &self,
        stream: S,
        request: http::Request<B>,
    ) -> Result<http::Response<Incoming>, UpstreamError>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
        B: http_body::Body<Data = bytes::Bytes> + Send + Unpin + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let mut client = hyper::client::conn::http1::Builder::new();
        client.preserve_header_case(true);
        let handshake = client.handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = handshake.map_err(|e| self.failed(&e))?;
        tokio::spawn(connection);
        let answer = sender.send_request(request).await;
        answer.map_err(|e| self.failed(&e))
    }

    fn failed(&self, error: &dyn std::fmt::Display) -> UpstreamError {
        UpstreamError::Call(self.address.clone(), error.to_string())
    }
}

/// TLS that trusts what browsers trust.
fn connector() -> TlsConnector {
    let mut roots = RootCertStore::empty();
    roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    connector_to(roots)
}

fn connector_to(roots: RootCertStore) -> TlsConnector {
    let config = ClientConfig::builder()
        .with_root_certificates(roots)
        .with_no_client_auth();
    TlsConnector::from(Arc::new(config))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_addresses() {
        let plain = Upstream::at("http://127.0.0.1:10000/").unwrap();
        assert_eq!(
            (plain.address.as_str(), plain.tls.is_none()),
            ("127.0.0.1:10000", true)
        );
        let azure = Upstream::at("https://a.blob.core.windows.net").unwrap();
        assert_eq!(azure.address, "a.blob.core.windows.net:443");
        assert!(azure.tls.is_some());
        for wrong in ["127.0.0.1:1", "ftp://a", "http://a/b", "http://a?b"] {
            assert!(Upstream::at(wrong).is_err(), "{wrong}");
        }
    }
}
