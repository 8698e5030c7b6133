//! TLS settings of the socket transport: the web's certificate authorities plus the operator's own.

use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio_rustls::TlsConnector;

use super::TransportError;

/// Creates a connector that trusts the web's authorities and the certificates of `extra_ca_pem`.
pub(super) fn connector(extra_ca_pem: &[u8]) -> Result<TlsConnector, TransportError> {
    let mut roots = RootCertStore::empty();
    roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    for certificate in CertificateDer::pem_slice_iter(extra_ca_pem) {
        let certificate = certificate
            .map_err(|error| TransportError::Malformed(format!("extra CA file: {error}")))?;
        roots
            .add(certificate)
            .map_err(|error| TransportError::Malformed(format!("extra CA file: {error}")))?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| TransportError::Malformed(format!("TLS: {error}")))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}

/// Returns the name that the server's certificate must have.
pub(super) fn server_name(host: &str) -> Result<ServerName<'static>, TransportError> {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    ServerName::try_from(bare.to_owned())
        .map_err(|_| TransportError::Malformed(format!("{host} is not a host name")))
}

/// Returns whether a connection failed because the server's certificate is not trusted.
pub(super) fn is_distrust(error: &std::io::Error) -> bool {
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref());
    matches!(cause, Some(rustls::Error::InvalidCertificate(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_ca_files_are_rejected_not_ignored() {
        assert!(connector(b"").is_ok());
        let broken = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        assert!(matches!(
            connector(broken),
            Err(TransportError::Malformed(_))
        ));
    }

    #[test]
    fn names_and_addresses_are_server_names() {
        for host in ["a.blob.core.windows.net", "127.0.0.1", "[::1]"] {
            assert!(server_name(host).is_ok(), "{host}");
        }
        assert!(server_name("a b").is_err());
    }
}
