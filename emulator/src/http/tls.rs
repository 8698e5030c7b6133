//! TLS with a certificate and a key from PEM files or a PFX file.

use std::path::Path;
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{CertificateError, ServerConfig};
use tokio_rustls::TlsAcceptor;

use super::pfx::{self, PfxError};

/// The reason why TLS cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read {0}: {1}")]
    File(String, rustls::pki_types::pem::Error),
    /// A PFX file cannot be used.
    #[error(transparent)]
    Pfx(#[from] PfxError),
    /// rustls rejects the certificate or its key.
    #[error("cannot use the certificate and its key: {0}")]
    Config(#[from] rustls::Error),
}

/// Creates an acceptor from the PEM files `--cert` and `--key`.
///
/// # Errors
/// When a file cannot be read, or certificate and key cannot be used.
pub fn acceptor(cert: &Path, key: &Path) -> Result<TlsAcceptor, TlsError> {
    let named = |path: &Path| {
        let name = path.display().to_string();
        move |error| TlsError::File(name, error)
    };
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(cert)
        .and_then(Iterator::collect)
        .map_err(named(cert))?;
    let key = PrivateKeyDer::from_pem_file(key).map_err(named(key))?;
    acceptor_of(chain, key)
}

/// Creates an acceptor from the PFX file `--cert` and its password `--pwd`.
///
/// # Errors
/// When the file cannot be used, or the password is wrong.
pub fn pfx_acceptor(file: &Path, password: &str) -> Result<TlsAcceptor, TlsError> {
    let (chain, key) = pfx::read(file, password)?;
    acceptor_of(chain, key)
}

fn acceptor_of(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<TlsAcceptor, TlsError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let identity = SingleCertAndKey::from(identity(chain, key, &provider)?);
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(identity));
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Combines certificate and key. `openssl x509 -req` makes certificates of version 1, which many
/// development setups use; rustls serves them but cannot check whether they match the key, so the
/// client detects a mismatch.
fn identity(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    provider: &CryptoProvider,
) -> Result<CertifiedKey, rustls::Error> {
    match CertifiedKey::from_der(chain.clone(), key.clone_key(), provider) {
        Err(rustls::Error::InvalidCertificate(CertificateError::Other(_))) => {
            let key = provider.key_provider.load_private_key(key)?;
            Ok(CertifiedKey::new(chain, key))
        }
        identity => identity,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Generated for this test with `openssl x509 -req -signkey`; not used anywhere else.
    const KEY: &str = "-----BEGIN PRIVATE KEY-----\n\
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgtGOO1bVE+qpoGxGJ\n\
+bo6DZVuFFgDzXMNR3qY/LNpE3OhRANCAATpiMO7C5PDvw+wt4qZtHAtZr/Elfvr\n\
yGhyH26/lXOfZCHjgF26BR1WwavMTJkrEcjXgzpQREULf8xasoPpmAwG\n\
-----END PRIVATE KEY-----\n";
    const VERSION_1: &str = "-----BEGIN CERTIFICATE-----\n\
MIIBITCByQIUc9N+AvJGCFWewWFTcgG/E+W8a6AwCgYIKoZIzj0EAwIwFDESMBAG\n\
A1UEAwwJbG9jYWxob3N0MB4XDTI2MTEyMTEzMDgxNVoXDTM2MTExODEzMDgxNVow\n\
FDESMBAGA1UEAwwJbG9jYWxob3N0MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE\n\
6YjDuwuTw78PsLeKmbRwLWa/xJX768hoch9uv5Vzn2Qh44BdugUdVsGrzEyZKxHI\n\
14M6UERFC3/MWrKD6ZgMBjAKBggqhkjOPQQDAgNHADBEAiB4bbS5RS6nd0TZjKfw\n\
I2Ju9kXMlJqJ+TdSn2K00cvORgIgGrSS5Y9zd09Zl0SM78TxqZBUBExGZxa2ouap\n\
6deaoEs=\n\
-----END CERTIFICATE-----\n";

    #[test]
    fn certificate_of_version_1_is_served() {
        let chain = vec![CertificateDer::from_pem_slice(VERSION_1.as_bytes()).unwrap()];
        let key = PrivateKeyDer::from_pem_slice(KEY.as_bytes()).unwrap();
        let provider = rustls::crypto::ring::default_provider();
        let identity = identity(chain.clone(), key, &provider).unwrap();
        assert_eq!(identity.cert, chain);
    }
}
