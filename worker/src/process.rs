//! Access to the process: environment variables, files, a seed and the clock. No other module of
//! this crate uses them.
#![expect(
    clippy::disallowed_methods,
    reason = "settings, secrets and certificates are in files; seeds and the check for clock skew \
              need this machine's randomness and time"
)]

use std::io;
use std::time::SystemTime;

use smalt_protocol::Timestamp;

/// Source of secrets and files. Tests provide their own.
pub trait Sources {
    /// Returns an environment variable; `None` if it is unset or not Unicode.
    fn variable(&self, name: &str) -> Option<String>;

    /// Reads a file as text.
    ///
    /// # Errors
    /// If the file cannot be read, or is not UTF-8.
    fn file(&self, path: &str) -> io::Result<String>;
}

/// The environment and the files of this process.
#[derive(Clone, Copy, Debug)]
pub struct Process;

impl Sources for Process {
    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn file(&self, path: &str) -> io::Result<String> {
        std::fs::read_to_string(path)
    }
}

/// Opens a file for reading.
///
/// # Errors
/// If the file cannot be opened.
pub fn open(path: &str) -> io::Result<std::fs::File> {
    std::fs::File::open(path)
}

/// Returns a seed that differs between starts, so that workers started together do not act in step.
///
/// # Errors
/// If the operating system provides no randomness.
pub fn seed() -> io::Result<u64> {
    getrandom::u64().map_err(|error| io::Error::other(format!("no random seed: {error}")))
}

/// Returns the time of this machine's clock.
pub fn wall_clock() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    Timestamp::from_unix(since.unwrap_or_default())
}
