//! The binary `smalt` as a child process on free ports.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use tokio::process::Command;

use super::{Running, ServerError};

/// How to start a `smalt`.
#[derive(Clone, Debug)]
pub struct Launch {
    /// Path of the binary.
    pub binary: PathBuf,
    /// Directory of the data.
    pub location: PathBuf,
    /// Additional command-line flags.
    pub flags: Vec<String>,
}

/// Returns the named binary, or the `smalt` next to this executable.
pub fn binary(named: Option<&Path>) -> Result<PathBuf, ServerError> {
    named_or_beside(named, "smalt")
}

/// Returns the named binary, or the one called `name` next to this executable.
pub fn named_or_beside(named: Option<&Path>, name: &str) -> Result<PathBuf, ServerError> {
    let path = match named {
        Some(path) => path.to_owned(),
        None => {
            let own = std::env::current_exe().map_err(ServerError::call)?;
            own.with_file_name(format!("{name}{}", std::env::consts::EXE_SUFFIX))
        }
    };
    if path.is_file() {
        Ok(path)
    } else {
        Err(ServerError::NoBinary(path.display().to_string()))
    }
}

impl Launch {
    /// Starts smalt and waits for its announcement.
    ///
    /// # Errors
    /// When it does not start, or prints something else.
    pub async fn start(&self) -> Result<Running, ServerError> {
        let services = ["blob", "queue", "table", "control"];
        let location = ["--location".to_owned(), self.location.display().to_string()];
        let flags = location.into_iter().chain(self.flags.iter().cloned());
        let command = Command::new(&self.binary);
        Running::start(command, &self.binary, &services, flags, announced).await
    }
}

/// Returns the address in `  blob     http://127.0.0.1:10000`.
fn announced(line: &str, name: &str) -> Option<SocketAddr> {
    let rest = line.trim().strip_prefix(name)?.trim_start();
    rest.split_once("://")?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_announcement() {
        let line = "  queue    http://127.0.0.1:10001";
        let port = announced(line, "queue").map(|address| address.port());
        assert_eq!(port, Some(10001));
        assert_eq!(announced(line, "blob"), None);
        assert_eq!(announced("  data     /tmp/queue", "data"), None);
    }

    #[test]
    fn missing_binary_error_says_how_to_build_it() {
        let error = binary(Some(Path::new("/nowhere/smalt"))).unwrap_err();
        assert!(error.to_string().contains("ci/build.sh"));
    }
}
