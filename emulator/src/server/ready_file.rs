//! The file of `--readyFile`, which tells scripts and tests how to reach the emulator.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::Serialize;
use smalt_protocol::Service;
use smalt_protocol::signing::AccountKey;

use super::endpoints::{Endpoint, Endpoints};
use crate::config::Config;
use crate::disk::{self, Disk as _, SystemDisk};

/// The JSON content of the file.
#[derive(Debug, Serialize)]
struct Ready {
    version: &'static str,
    pid: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    blob: Option<Endpoint>,
    #[serde(skip_serializing_if = "Option::is_none")]
    queue: Option<Endpoint>,
    #[serde(skip_serializing_if = "Option::is_none")]
    table: Option<Endpoint>,
    /// The socket that serves the Data Lake interface alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    dfs: Option<Endpoint>,
    control: Endpoint,
    accounts: Vec<Account>,
    /// The CA certificate that clients must trust; `None` unless smalt created the certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    ca: Option<PathBuf>,
}

#[derive(Debug, Serialize)]
struct Account {
    name: String,
    key: String,
    connection_string: String,
}

/// The written file; dropping it removes the file.
#[derive(Debug)]
pub(super) struct ReadyFile(PathBuf);

impl ReadyFile {
    /// Writes the file atomically and replaces a stale one. Only its owner can read it, because it
    /// holds keys.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(super) fn write(
        path: &Path,
        endpoints: &Endpoints,
        config: &Config,
        ca: Option<PathBuf>,
    ) -> anyhow::Result<Self> {
        let text = serde_json::to_vec(&ready(endpoints, config, ca))?;
        let cannot_write = || format!("--readyFile: cannot write {}", path.display());
        // Dropping this after an error removes a stale file, which would report readiness.
        let file = ReadyFile(std::path::absolute(path).with_context(cannot_write)?);
        disk::replace_secret(&SystemDisk, &file.0, &text).with_context(cannot_write)?;
        Ok(file)
    }
}

impl Drop for ReadyFile {
    fn drop(&mut self) {
        let removed = SystemDisk.remove(&self.0);
        if let Err(error) = removed
            && error.kind() != ErrorKind::NotFound
        {
            tracing::warn!(path = %self.0.display(), %error, "cannot remove the ready file");
        }
    }
}

fn ready(endpoints: &Endpoints, config: &Config, ca: Option<PathBuf>) -> Ready {
    let endpoint = |address| Endpoint::new(endpoints.scheme, address);
    let service = |service| endpoints.of(service).map(endpoint);
    let accounts = config.accounts.iter().map(|(name, account)| {
        let key = account.keys.first().map(AccountKey::to_base64);
        let key = key.unwrap_or_default();
        Account {
            name: name.clone(),
            connection_string: endpoints.connection_string(name, &key),
            key,
        }
    });
    Ready {
        version: env!("CARGO_PKG_VERSION"),
        pid: std::process::id(),
        blob: service(Service::Blob),
        queue: service(Service::Queue),
        table: service(Service::Table),
        dfs: endpoints.data_lake.map(endpoint),
        control: Endpoint::new("http", endpoints.control),
        accounts: accounts.collect(),
        ca: ca.map(|ca| std::path::absolute(&ca).unwrap_or(ca)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smalt_protocol::connection_string::EMULATOR_ACCOUNT_KEY;

    fn endpoints() -> Endpoints {
        Endpoints {
            scheme: "http",
            services: vec![(Service::Blob, "0.0.0.0:4711".parse().unwrap())],
            data_lake: Some("127.0.0.1:10004".parse().unwrap()),
            control: "127.0.0.1:10003".parse().unwrap(),
        }
    }

    #[test]
    fn ready_file_has_the_documented_shape() {
        let ready = ready(&endpoints(), &Config::default(), Some("/ca.pem".into()));
        let expected = serde_json::json!({
            "version": env!("CARGO_PKG_VERSION"),
            "pid": std::process::id(),
            "blob": {"host": "0.0.0.0", "port": 4711, "url": "http://127.0.0.1:4711"},
            "dfs": {"host": "127.0.0.1", "port": 10004, "url": "http://127.0.0.1:10004"},
            "control": {"host": "127.0.0.1", "port": 10003, "url": "http://127.0.0.1:10003"},
            "accounts": [{
                "name": "devstoreaccount1",
                "key": EMULATOR_ACCOUNT_KEY,
                "connection_string": format!(
                    "DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;\
                     AccountKey={EMULATOR_ACCOUNT_KEY};\
                     BlobEndpoint=http://127.0.0.1:4711/devstoreaccount1;"
                ),
            }],
            "ca": "/ca.pem",
        });
        assert_eq!(serde_json::to_value(ready).unwrap(), expected);
    }

    #[test]
    fn ready_file_replaces_a_stale_one_and_is_removed_on_drop() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ready.json");
        let read = || disk::read_small(&SystemDisk, &path).unwrap();
        disk::replace_small(&SystemDisk, &path, &[b'x'; 100_000]).unwrap();
        let file = ReadyFile::write(&path, &endpoints(), &Config::default(), None).unwrap();
        let text = read().unwrap();
        serde_json::from_slice::<serde_json::Value>(&text).unwrap();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = path.metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        drop(file);
        assert_eq!(read(), None);
    }

    #[test]
    fn missing_directory_is_named_in_the_error() {
        let path = Path::new("/no/such/directory/ready.json");
        let error = ReadyFile::write(path, &endpoints(), &Config::default(), None).unwrap_err();
        assert!(error.to_string().contains("--readyFile"), "{error}");
    }
}
