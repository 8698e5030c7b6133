//! Azurite as a child process on free ports.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use tokio::process::Command;

use super::{Running, ServerError, files};

/// Path where `ci/azurite.sh` installs it, relative to the working directory.
const INSTALLED: &str = "build/azurite/node_modules/.bin/azurite";
/// Text in front of the address when a service is ready.
const READY: &str = "successfully listening at http://";

/// Returns the named command, or the one that `ci/azurite.sh` installed.
pub fn binary(named: Option<&Path>) -> Result<PathBuf, ServerError> {
    let path = named.unwrap_or(Path::new(INSTALLED));
    if path.is_file() {
        Ok(path.to_owned())
    } else {
        Err(ServerError::NoAzurite(path.display().to_string()))
    }
}

/// Starts Azurite with these accounts (`name:key;name:key`) or its default one, in memory or in a
/// directory, and waits until it is ready.
///
/// # Errors
/// When it does not start, or ends before it is ready.
pub async fn start(
    binary: &Path,
    accounts: Option<&str>,
    location: Option<&Path>,
) -> Result<Running, ServerError> {
    let flags = ["--silent", "--skipApiVersionCheck", "--disableTelemetry"].map(str::to_owned);
    let place = match location {
        Some(dir) => vec!["--location".to_owned(), dir.display().to_string()],
        None => vec!["--inMemoryPersistence".to_owned()],
    };
    let mut command = with_own_node(binary);
    if let Some(accounts) = accounts {
        command.env("AZURITE_ACCOUNTS", accounts);
    }
    let (services, flags) = (["blob", "queue", "table"], flags.into_iter().chain(place));
    Running::start(command, binary, &services, flags, announced).await
}

/// Returns the version in the package of this command; `unknown` without a package.
pub fn version(binary: &Path) -> String {
    let modules = binary.parent().and_then(Path::parent);
    let package = modules.map(|modules| modules.join("azurite/package.json"));
    let package = package.and_then(|path| files::text(&path).ok());
    let package = package.and_then(|text| serde_json::from_str(&text).ok());
    let package: serde_json::Value = package.unwrap_or_default();
    package["version"].as_str().unwrap_or("unknown").to_owned()
}

/// Returns the command, with the node installed beside it, if any, first in the path.
fn with_own_node(binary: &Path) -> Command {
    let mut command = Command::new(binary);
    let own = binary.parent().map(Path::to_owned);
    let inherited = std::env::var_os("PATH").unwrap_or_default();
    let dirs = own.into_iter().chain(std::env::split_paths(&inherited));
    if let Ok(path) = std::env::join_paths(dirs) {
        command.env("PATH", path);
    }
    command
}

/// Returns the address in `Azurite Blob service is successfully listening at
/// http://127.0.0.1:10000`.
fn announced(line: &str, service: &str) -> Option<SocketAddr> {
    let (before, address) = line.split_once(READY)?;
    let is_named = before.to_ascii_lowercase().contains(service);
    is_named.then(|| address.trim().parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_announcement() {
        let line = "Azurite Blob service is successfully listening at http://127.0.0.1:10000";
        let port = announced(line, "blob").map(|address| address.port());
        assert_eq!(port, Some(10_000));
        assert_eq!(announced(line, "queue"), None);
        assert_eq!(announced("Azurite Blob service is starting", "blob"), None);
    }

    #[test]
    fn missing_azurite_error_says_how_to_install_it() {
        let error = binary(Some(Path::new("/nowhere/azurite"))).err();
        assert!(error.is_some_and(|e| e.to_string().contains("npm install")));
    }
}
