//! What a worker reads from its process: environment variables, files, a seed, the clock. The one
//! module of the crate that touches any of them.
#![expect(
    clippy::disallowed_methods,
    reason = "settings, secrets and certificates are in files; seeds and the check for clock skew \
              need this machine's randomness and time"
)]

use std::io;
use std::time::SystemTime;

use smalt_protocol::Timestamp;

/// Where secrets and files are read from. Tests inject their own.
pub trait Sources {
    /// The value of an environment variable; `None` when it is unset or not Unicode.
    fn variable(&self, name: &str) -> Option<String>;

    /// The text of a file.
    ///
    /// # Errors
    /// The file cannot be read, or is not UTF-8.
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
/// The file cannot be opened.
pub fn open(path: &str) -> io::Result<std::fs::File> {
    std::fs::File::open(path)
}

/// A seed that differs from start to start, so that workers started together do not act in step.
///
/// # Errors
/// The operating system provides no randomness.
pub fn seed() -> io::Result<u64> {
    getrandom::u64().map_err(|error| io::Error::other(format!("no random seed: {error}")))
}

/// The time of this machine's clock.
pub fn wall_clock() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    Timestamp::from_unix(since.unwrap_or_default())
}
