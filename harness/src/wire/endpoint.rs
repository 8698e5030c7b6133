//! A service at an address: one connection per request, in plain text or TLS.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use bytes::Bytes;
use http_body::Body;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::WireError;
use super::connection::begin;
use super::message::{Answer, Request};
use super::url::Url;

/// Time limit for an answer; the slowest correct answer takes seconds.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// Trusted certificate authorities.
#[derive(Clone)]
pub struct Trust(TlsConnector);

impl Trust {
    /// Trusts the authorities that browsers trust.
    pub fn browsers() -> Trust {
        static BROWSERS: LazyLock<Trust> = LazyLock::new(|| {
            let mut roots = RootCertStore::empty();
            roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
            Trust::roots(roots)
        });
        BROWSERS.clone()
    }

    /// Trusts only this certificate, in PEM.
    pub fn only(authority: &str) -> Result<Trust, WireError> {
        let fail = |e: &dyn std::fmt::Display| WireError::Address(e.to_string());
        let certificate = CertificateDer::from_pem_slice(authority.as_bytes());
        let mut roots = RootCertStore::empty();
        let added = roots.add(certificate.map_err(|e| fail(&e))?);
        added.map_err(|e| fail(&e))?;
        Ok(Trust::roots(roots))
    }

    fn roots(roots: RootCertStore) -> Trust {
        let config = ClientConfig::builder()
            .with_root_certificates(roots)
            .with_no_client_auth();
        Trust(TlsConnector::from(Arc::new(config)))
    }
}

/// A service at an address.
#[derive(Clone)]
pub struct Endpoint {
    /// Host and, if given, port.
    pub authority: String,
    address: String,
    tls: Option<(Trust, ServerName<'static>)>,
}

impl Endpoint {
    /// Parses `http://127.0.0.1:10000` or `https://account.blob.core.windows.net`.
    pub fn at(text: &str) -> Result<Endpoint, WireError> {
        let url = Url::parse(text);
        let url = url.filter(|url| matches!(url.path.as_str(), "" | "/") && url.query.is_none());
        let url = url.ok_or_else(|| WireError::Address(text.to_owned()))?;
        Endpoint::of(&url, &Trust::browsers())
    }

    /// Returns the endpoint of a URL.
    ///
    /// # Errors
    /// When the scheme is neither `http` nor `https`.
    pub fn of(url: &Url, trust: &Trust) -> Result<Endpoint, WireError> {
        let fail = || WireError::Address(format!("{}://{}", url.scheme, url.authority));
        let (port, is_tls) = match url.scheme.as_str() {
            "http" => (80, false),
            "https" => (443, true),
            _ => return Err(fail()),
        };
        let authority = url.authority.clone();
        let (host, address) = match authority.rsplit_once(':') {
            Some((host, _)) => (host.to_owned(), authority.clone()),
            None => (authority.clone(), format!("{authority}:{port}")),
        };
        let name = || ServerName::try_from(host).map_err(|_| fail());
        Ok(Endpoint {
            tls: match is_tls {
                true => Some((trust.clone(), name()?)),
                false => None,
            },
            authority,
            address,
        })
    }

    /// Sends a request and reads the whole answer.
    ///
    /// # Errors
    /// When the connection fails, the answer breaks off, or it does not come in time.
    pub async fn ask(&self, request: &Request) -> Result<Answer, WireError> {
        let url = Url::parse(&request.url);
        let url = url.ok_or_else(|| WireError::Request(request.url.clone()))?;
        let slash = if url.path.is_empty() { "/" } else { "" };
        let wire = request
            .builder(&format!("{slash}{}", url.path_and_query()))?
            .header("host", &url.authority)
            .body(Full::new(request.body.clone()))
            .map_err(WireError::request)?;
        let exchange = async { Answer::read(self.send(wire).await?).await };
        tokio::time::timeout(ANSWER_TIMEOUT, exchange)
            .await
            .unwrap_or(Err(WireError::Silent(ANSWER_TIMEOUT)))
    }

    /// Sends a request; the answer's body is streamed.
    ///
    /// # Errors
    /// When there is no connection or no answer.
    pub async fn send<B>(
        &self,
        request: http::Request<B>,
    ) -> Result<http::Response<Incoming>, WireError>
    where
        B: Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let stream = TcpStream::connect(&self.address).await;
        let stream = stream.map_err(|e| self.failed(&e))?;
        match &self.tls {
            None => self.exchange(stream, request).await,
            Some((Trust(connector), name)) => {
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
    ) -> Result<http::Response<Incoming>, WireError>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
        B: Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        // Metadata names keep their capitals.
        let mut client = http1::Builder::new();
        client.preserve_header_case(true);
        let begun = begin(&client, stream).await;
        let (mut sender, _) = begun.map_err(|e| self.failed(&e))?;
        let answer = sender.send_request(request).await;
        answer.map_err(|e| self.failed(&e))
    }

    fn failed(&self, error: &dyn std::fmt::Display) -> WireError {
        WireError::Call(format!("{}: {error}", self.address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_addresses() {
        let plain = Endpoint::at("http://127.0.0.1:10000/").unwrap();
        assert_eq!(
            (plain.address.as_str(), plain.tls.is_none()),
            ("127.0.0.1:10000", true)
        );
        let azure = Endpoint::at("https://a.blob.core.windows.net").unwrap();
        assert_eq!(azure.address, "a.blob.core.windows.net:443");
        assert!(azure.tls.is_some());
        for wrong in ["127.0.0.1:1", "ftp://a", "http://a/b", "http://a?b"] {
            assert!(Endpoint::at(wrong).is_err(), "{wrong}");
        }
    }
}
