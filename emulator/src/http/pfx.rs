//! PFX files: certificate and key in one file, as Windows, .NET and `openssl pkcs12` write them.

use std::path::Path;

use p12_keystore::{KeyStore, Pkcs12ImportPolicy};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::disk::{self, SystemDisk};

/// The reason why a PFX file cannot be used. No message contains the password.
#[derive(Debug, thiserror::Error)]
pub enum PfxError {
    /// The file does not exist.
    #[error("cannot read {0}: there is no such file")]
    Missing(String),
    /// The file cannot be read.
    #[error("cannot read {0}: {1}")]
    File(String, std::io::Error),
    /// The password is wrong.
    #[error("cannot open {0}: wrong password; check --pwd")]
    Password(String),
    /// The file is not a PFX file, or of an unsupported kind.
    #[error("cannot open {0}: {1}; is it a PFX (PKCS#12) file?")]
    Format(String, p12_keystore::error::Error),
    /// The file has no private key together with its certificate.
    #[error("{0} has no private key together with its certificate")]
    NoKey(String),
}

/// A certificate chain, the server's certificate first, and the private key of the first.
pub(super) type Identity = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

/// Reads certificate chain and key from a PFX file.
pub(super) fn read(path: &Path, password: &str) -> Result<Identity, PfxError> {
    let name = || path.display().to_string();
    match disk::read_small(&SystemDisk, path) {
        Ok(Some(bytes)) => parse(&bytes, password, name),
        Ok(None) => Err(PfxError::Missing(name())),
        Err(error) => Err(PfxError::File(name(), error)),
    }
}

fn parse(bytes: &[u8], password: &str, name: impl Fn() -> String) -> Result<Identity, PfxError> {
    use p12_keystore::error::Error;
    let store = KeyStore::from_pkcs12(bytes, password, Pkcs12ImportPolicy::Strict);
    let store = store.map_err(|error| match error {
        Error::MacError(_) => PfxError::Password(name()),
        error => PfxError::Format(name(), error),
    })?;
    let (_, chain) = store
        .private_key_chain()
        .ok_or_else(|| PfxError::NoKey(name()))?;
    let certificates = chain.certs().iter();
    let certificates = certificates.map(|one| CertificateDer::from(one.as_der().to_vec()));
    let key = PrivatePkcs8KeyDer::from(chain.key().as_der().to_vec());
    Ok((certificates.collect(), key.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_pfx_file_is_named_in_the_error() {
        for bytes in [
            &b""[..],
            b"-----BEGIN CERTIFICATE-----",
            &[0x30, 0x82, 0xff, 0xff],
        ] {
            let error = parse(bytes, "secret", || "some.pfx".to_owned()).unwrap_err();
            let text = error.to_string();
            assert!(
                text.contains("some.pfx") && !text.contains("secret"),
                "{text}"
            );
        }
        let error = read(Path::new("/no/such.pfx"), "").unwrap_err();
        assert!(error.to_string().contains("/no/such.pfx"), "{error}");
    }
}
