//! TLS from a certificate and a key in PEM.

use std::path::Path;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

/// Why TLS cannot be offered.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file could not be read.
    #[error("cannot read {0}: {1}")]
    File(String, rustls::pki_types::pem::Error),
    /// Certificate and key do not make a server.
    #[error("the certificate and its key cannot be used: {0}")]
    Config(#[from] rustls::Error),
}

/// Reads `--cert` and `--key`.
///
/// # Errors
/// Which file, and why.
pub fn acceptor(cert: &Path, key: &Path) -> Result<TlsAcceptor, TlsError> {
    let named = |path: &Path| {
        let name = path.display().to_string();
        move |error| TlsError::File(name, error)
    };
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(cert)
        .and_then(Iterator::collect)
        .map_err(named(cert))?;
    let key = PrivateKeyDer::from_pem_file(key).map_err(named(key))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
