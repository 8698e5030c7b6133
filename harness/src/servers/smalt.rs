//! The binary `smalt` as a child process on free ports.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use super::ServerError;
use super::process::Process;

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

/// A running `smalt`.
pub struct Smalt {
    /// The process.
    pub process: Process,
    /// Address of the blob service.
    pub blob: SocketAddr,
    /// Address of the queue service.
    pub queue: SocketAddr,
    /// Address of the table service.
    pub table: SocketAddr,
    /// Address of the control endpoint.
    pub control: SocketAddr,
}

/// Returns the named binary, or the `smalt` next to this executable.
///
/// # Errors
/// When the binary does not exist.
pub fn binary(named: Option<&Path>) -> Result<PathBuf, ServerError> {
    named_or_beside(named, "smalt")
}

/// Returns the named binary, or the one called `name` next to this executable.
///
/// # Errors
/// When the binary does not exist.
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
    pub async fn start(&self) -> Result<Smalt, ServerError> {
        let mut arguments: Vec<String> = ["blob", "queue", "table", "control"]
            .iter()
            .flat_map(|service| [format!("--{service}Port"), "0".to_owned()])
            .collect();
        arguments.push("--location".to_owned());
        arguments.push(self.location.display().to_string());
        arguments.extend(self.flags.iter().cloned());
        let mut process = Process::start(&self.binary, &arguments)?;
        let mut found = [None; 4];
        while found.iter().any(Option::is_none) {
            let line = process.line().await?;
            for (place, name) in found.iter_mut().zip(["blob", "queue", "table", "control"]) {
                *place = place.or_else(|| announced(&line, name));
            }
        }
        process.ignore_output();
        let [Some(blob), Some(queue), Some(table), Some(control)] = found else {
            return Err(ServerError::NotReady("smalt".to_owned(), String::new()));
        };
        Ok(Smalt {
            process,
            blob,
            queue,
            table,
            control,
        })
    }
}

impl Smalt {
    /// Returns host and port of blob, queue and table service.
    pub fn addresses(&self) -> [String; 3] {
        [self.blob, self.queue, self.table].map(|address| address.to_string())
    }

    /// Kills the process with SIGKILL.
    pub async fn kill(self) -> Result<(), ServerError> {
        self.process.kill().await
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
