//! Generated certificates for trying HTTPS without a certificate authority.
//!
//! [`issue`] creates an authority and a server certificate signed by it. It discards the
//! authority's key at once, so that no further certificate can be signed that clients would trust.
//! [`development`] keeps such a pair in a directory and replaces it before it expires.

use std::io;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};
use smalt_protocol::time::DAY_S;
use smalt_protocol::{Service, Timestamp};

use crate::data_lake;
use crate::disk::{self, Disk};

/// Validity of a pair, in days; Apple's clients accept at most 825.
pub const VALID_DAYS: u64 = 820;
/// Remaining validity at which a pair is replaced, in days.
const RENEWED_DAYS: u64 = 30;

/// File of the authority's certificate in PEM, which clients must trust.
pub const CA_FILE: &str = "ca.pem";
/// File of the server's certificate in PEM.
pub const SERVER_FILE: &str = "server.pem";
/// File of the server's private key in PEM.
pub const KEY_FILE: &str = "server.key";

/// The reason why a certificate cannot be created or kept.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// The certificate cannot be generated.
    #[error("cannot create the certificate: {0}")]
    Made(#[from] rcgen::Error),
    /// A file cannot be read or written.
    #[error("{0}: {1}")]
    File(PathBuf, io::Error),
}

/// An authority's certificate, a server certificate signed by it, and the server's key, all in PEM.
pub struct Issued {
    /// The authority's certificate, which clients must trust.
    pub ca: String,
    /// The server's certificate.
    pub server: String,
    /// The server's private key.
    pub key: String,
}

/// Creates a pair for these host names and addresses, valid from yesterday for [`VALID_DAYS`].
///
/// # Errors
/// When a name is invalid, or the system has no entropy.
pub fn issue(names: &[String], now: Timestamp) -> Result<Issued, CertificateError> {
    let mut authority = params(&[], "smalt development authority", now)?;
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let authority_key = KeyPair::generate()?;
    let ca = authority.self_signed(&authority_key)?.pem();
    let issuer = Issuer::new(authority, authority_key);

    let mut server = params(names, "smalt", now)?;
    server.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    server.use_authority_key_identifier_extension = true;
    let server_key = KeyPair::generate()?;
    let server = server.signed_by(&server_key, &issuer)?.pem();
    Ok(Issued {
        ca,
        server,
        key: server_key.serialize_pem(),
    })
}

fn params(
    names: &[String],
    subject: &str,
    now: Timestamp,
) -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name.push(DnType::CommonName, subject);
    let (year, month, day) = civil(now.minus(std::time::Duration::from_secs(DAY_S)));
    params.not_before = date_time_ymd(year, month, day);
    let (year, month, day) = civil(expiry(now));
    params.not_after = date_time_ymd(year, month, day);
    Ok(params)
}

fn expiry(now: Timestamp) -> Timestamp {
    now.plus_s((VALID_DAYS - 1) * DAY_S)
}

fn civil(time: Timestamp) -> (i32, u8, u8) {
    let text = time.iso_s();
    let part = |range: std::ops::Range<usize>| text.get(range).unwrap_or_default();
    (
        part(0..4).parse().unwrap_or(2000),
        part(5..7).parse().unwrap_or(1),
        part(8..10).parse().unwrap_or(1),
    )
}

/// Returns the local host names for these accounts, in path style and host style. None of them is
/// Azure's, so that a stolen key cannot be used to impersonate Azure.
pub fn local_names<'a>(accounts: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut names: Vec<String> = ["localhost", "127.0.0.1", "::1"].map(str::to_owned).into();
    for account in accounts {
        for label in Service::ALL
            .map(Service::as_str)
            .into_iter()
            .chain([data_lake::LABEL])
        {
            names.push(format!("{account}.{label}.localhost"));
        }
    }
    names
}

/// A certificate pair in a directory.
pub struct Development {
    dir: PathBuf,
    /// Whether the pair was created by this call, so that clients do not trust it yet.
    pub is_new: bool,
}

impl Development {
    /// Returns the path of the authority's certificate.
    pub fn ca(&self) -> PathBuf {
        self.dir.join(CA_FILE)
    }

    /// Returns the path of the server's certificate.
    pub fn server(&self) -> PathBuf {
        self.dir.join(SERVER_FILE)
    }

    /// Returns the path of the server's private key.
    pub fn key(&self) -> PathBuf {
        self.dir.join(KEY_FILE)
    }
}

/// Returns the pair in a directory. Creates it when there is none, when it is for other names, or
/// when it expires soon.
///
/// # Errors
/// When the pair cannot be created, read or written.
pub fn development(
    disk: &dyn Disk,
    dir: &Path,
    names: &[String],
    now: Timestamp,
) -> Result<Development, CertificateError> {
    let in_file = |path: PathBuf| move |error| CertificateError::File(path, error);
    let mut kept = Development {
        dir: dir.to_owned(),
        is_new: false,
    };
    let read = |path: PathBuf| disk::read_small(disk, &path).map_err(in_file(path));
    let present = read(kept.ca())?.is_some() && read(kept.key())?.is_some();
    let server = read(kept.server())?.unwrap_or_default();
    if present && is_good(&server, names, now) {
        return Ok(kept);
    }
    let issued = issue(names, now)?;
    disk.create_dir(dir).map_err(in_file(dir.to_owned()))?;
    // PEM readers skip text before the certificate.
    let server = format!("{}\n{}", heading(names, expiry(now)), issued.server);
    for (path, text, is_secret) in [
        (kept.key(), issued.key, true),
        (kept.ca(), issued.ca, false),
        (kept.server(), server, false),
    ] {
        let write = if is_secret {
            disk::replace_secret
        } else {
            disk::replace_small
        };
        write(disk, &path, text.as_bytes()).map_err(in_file(path))?;
    }
    kept.is_new = true;
    Ok(kept)
}

fn heading(names: &[String], until: Timestamp) -> String {
    format!(
        "Made by smalt for {} until {}",
        names.join(" "),
        until.iso_s()
    )
}

/// Returns whether a stored certificate is for these names and does not expire soon.
fn is_good(server: &[u8], names: &[String], now: Timestamp) -> bool {
    let text = String::from_utf8_lossy(server);
    let first = text.lines().next().unwrap_or_default();
    let until = first.rsplit(' ').next().and_then(Timestamp::parse_iso);
    until.is_some_and(|until| {
        first == heading(names, until) && until > now.plus_s(RENEWED_DAYS * DAY_S)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::SystemDisk;

    const NOW: Timestamp = Timestamp::from_unix_s(1_700_000_000);

    #[test]
    fn pair_is_kept_until_it_expires_or_the_names_change() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().join("cert");
        let names = local_names(["one"]);
        let make = |names: &[String], now| development(&SystemDisk, &dir, names, now).unwrap();
        let read = |path: PathBuf| disk::read_small(&SystemDisk, &path).unwrap().unwrap();
        let first = make(&names, NOW);
        assert!(first.is_new);
        let (ca, server) = (read(first.ca()), read(first.server()));
        let again = make(&names, NOW.plus_s(700 * DAY_S));
        assert!(!again.is_new && read(again.ca()) == ca && read(again.server()) == server);
        assert!(make(&local_names(["one", "two"]), NOW).is_new);
        assert!(make(&names, NOW).is_new);
        assert!(make(&names, NOW.plus_s(800 * DAY_S)).is_new);
        assert_ne!(read(first.ca()), ca);
    }

    #[cfg(unix)]
    #[test]
    fn only_the_owner_can_read_the_key() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let made = development(&SystemDisk, dir.path(), &local_names([]), NOW).unwrap();
        let mode = made.key().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    /// A client that trusts the authority accepts the server under these names only, and the server
    /// starts with the pair.
    #[test]
    fn server_certificate_is_valid_for_its_names() {
        use rustls::pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject};
        let issued = issue(&local_names(["one"]), NOW).unwrap();
        let der = |pem: &str| CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
        let mut roots = rustls::RootCertStore::empty();
        roots.add(der(&issued.ca)).unwrap();
        let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
        let verifier = rustls::client::WebPkiServerVerifier::builder_with_provider(
            std::sync::Arc::new(roots),
            provider,
        );
        let verifier = verifier.build().unwrap();
        let server = der(&issued.server);
        let check = |name: &str, seconds: u64| {
            use rustls::client::danger::ServerCertVerifier as _;
            let name = ServerName::try_from(name.to_owned()).unwrap();
            let at = UnixTime::since_unix_epoch(std::time::Duration::from_secs(seconds));
            verifier
                .verify_server_cert(&server, &[], &name, &[], at)
                .is_ok()
        };
        for (name, expected) in [
            ("localhost", true),
            ("127.0.0.1", true),
            ("::1", true),
            ("one.blob.localhost", true),
            ("two.blob.localhost", false),
            ("one.blob.core.windows.net", false),
        ] {
            assert_eq!(check(name, 1_700_000_000), expected, "{name}");
        }
        assert!(!check("localhost", 1_700_000_000 + VALID_DAYS * DAY_S));
    }
}
