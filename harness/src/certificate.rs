//! Throw-away credentials for tests of the production path: certificates, and an account SAS.
#![expect(
    clippy::disallowed_methods,
    reason = "certificates are written to files, and a SAS is valid from the current time"
)]

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::Context as _;
use smalt::certificate::{CA_FILE, KEY_FILE, SERVER_FILE, issue};
use smalt_protocol::connection_string::{EMULATOR_ACCOUNT_KEY, EMULATOR_ACCOUNT_NAME};
use smalt_protocol::signing::sas::{Sas, SasTarget};
use smalt_protocol::signing::{AccountKey, sign};
use smalt_protocol::uri::write_query;
use smalt_protocol::{Service, Timestamp};

/// Names in the server certificate: Azure's hosts, and this machine.
const NAMES: [&str; 4] = [
    "*.blob.core.windows.net",
    "*.queue.core.windows.net",
    "localhost",
    "127.0.0.1",
];
const SAS_VERSION: &str = "2021-12-02";

/// Options of `harness certificate`.
#[derive(Clone, Debug, clap::Args)]
pub struct Certificate {
    /// Directory for `ca.pem`, `server.pem` and `server.key`; created if it does not exist.
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
}

/// Options of `harness sas`.
#[derive(Clone, Debug, clap::Args)]
pub struct AccountSas {
    /// Account name.
    #[arg(long, default_value = EMULATOR_ACCOUNT_NAME)]
    account: String,
    /// Account key in Base64; the emulator's well-known key by default.
    #[arg(long, default_value = EMULATOR_ACCOUNT_KEY, hide_default_value = true)]
    key: String,
    /// Services: any of b (blob), q (queue), t (table).
    #[arg(long, default_value = "bqt", value_parser = services)]
    services: String,
    /// Permissions as SAS letters: r (read), w (write), d (delete), l (list), a (add), c (create),
    /// u (update), p (process).
    #[arg(long, default_value = "rwdlacup")]
    permissions: String,
    /// Validity in hours from now.
    #[arg(long, default_value_t = 1)]
    hours: u64,
}

/// Accepts the letters of services, each at most once.
fn services(text: &str) -> Result<String, String> {
    if text.is_empty() {
        return Err("needs at least one service: b (blob), q (queue) or t (table)".to_owned());
    }
    for (at, letter) in text.char_indices() {
        if !matches!(letter, 'b' | 'q' | 't') {
            return Err(format!("unknown service `{letter}`: use b, q or t"));
        }
        if text[..at].contains(letter) {
            return Err(format!("service `{letter}` is given twice"));
        }
    }
    Ok(text.to_owned())
}

/// Creates a certificate authority and a server certificate signed by it.
pub fn certificate(options: &Certificate) -> anyhow::Result<()> {
    let now = Timestamp::from_unix(SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default());
    let issued = issue(&NAMES.map(str::to_owned), now)?;
    std::fs::create_dir_all(&options.dir)?;
    write(&options.dir, CA_FILE, &issued.ca)?;
    write(&options.dir, SERVER_FILE, &issued.server)?;
    write(&options.dir, KEY_FILE, &issued.key)
}

fn write(dir: &Path, name: &str, text: &str) -> anyhow::Result<()> {
    let path = dir.join(name);
    std::fs::write(&path, text).with_context(|| path.display().to_string())
}

/// Returns an account SAS as a query string.
///
/// # Errors
/// When the key is not valid Base64.
pub fn account_sas(options: &AccountSas) -> anyhow::Result<String> {
    let key = AccountKey::parse(&options.key).context("--key")?;
    let now = Timestamp::from_unix(SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default());
    let expiry = now.plus_s(options.hours * 3_600).iso_s();
    let fields = [
        ("sv", SAS_VERSION),
        ("ss", options.services.as_str()),
        ("srt", "sco"),
        ("sp", options.permissions.as_str()),
        ("se", expiry.as_str()),
        ("spr", "https,http"),
    ];
    let mut query: Vec<(String, String)> = fields
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    query.push(("sig".to_owned(), "unsigned".to_owned()));
    let unsigned = Sas::parse(&query)
        .map_err(|error| anyhow::anyhow!("{error:?}"))?
        .context("the query has no SAS")?;
    let target = SasTarget {
        service: Service::Blob,
        account: &options.account,
        name: "",
        blob: None,
        snapshot: "",
    };
    let signature = sign(key.as_bytes(), &unsigned.string_to_sign(&target));
    let signed = fields.into_iter().chain([("sig", signature.as_str())]);
    Ok(write_query(signed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_are_known_letters() {
        for good in ["b", "q", "t", "bqt", "tb"] {
            assert_eq!(services(good), Ok(good.to_owned()));
        }
        for (bad, says) in [
            ("", "needs at least one"),
            ("bx", "unknown service `x`"),
            ("b,q", "unknown service `,`"),
            ("Q", "unknown service `Q`"),
            ("f", "unknown service `f`"),
            ("bqb", "service `b` is given twice"),
        ] {
            assert!(services(bad).unwrap_err().contains(says), "{bad}");
        }
    }

    #[test]
    fn sas_is_signed_with_the_account_key() {
        let options = AccountSas {
            account: EMULATOR_ACCOUNT_NAME.to_owned(),
            key: EMULATOR_ACCOUNT_KEY.to_owned(),
            services: "bqt".to_owned(),
            permissions: "rwdl".to_owned(),
            hours: 1,
        };
        let text = account_sas(&options).unwrap();
        let query = smalt_protocol::uri::parse_query(&text).unwrap();
        let sas = Sas::parse(&query).unwrap().unwrap();
        let key = AccountKey::parse(EMULATOR_ACCOUNT_KEY).unwrap();
        let target = SasTarget {
            service: Service::Blob,
            account: EMULATOR_ACCOUNT_NAME,
            name: "",
            blob: None,
            snapshot: "",
        };
        sas.verify(&target, key.as_bytes()).unwrap();
    }
}
