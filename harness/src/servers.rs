//! Servers as child processes.
//!
//! # Layout
//! - [`process`]: a child process that is killed on drop; [`smalt`]: the `smalt` binary;
//!   [`azurite`]: Azurite; [`files`]: reading and writing files.

pub mod azurite;
pub mod files;
pub mod process;
pub mod smalt;

use std::time::Duration;

use crate::wire::WireError;

/// Why a server could not be started or called.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The `smalt` binary does not exist.
    #[error("{0} does not exist; run `bash ci/build.sh`, or pass the path of the binary")]
    NoBinary(String),
    /// Azurite is not installed.
    #[error(
        "{0} does not exist; run `npm install --prefix build/azurite azurite`, or pass the command"
    )]
    NoAzurite(String),
    /// The process could not be started.
    #[error("{0} cannot be started: {1}")]
    Start(String, std::io::Error),
    /// The process ended or stayed silent instead of becoming ready.
    #[error("{0} did not become ready: {1}")]
    NotReady(String, String),
    /// A request got no answer, or an unexpected one.
    #[error("{0}")]
    Call(String),
    /// A request was not answered in time.
    #[error("no answer within {0:?}")]
    Silent(Duration),
}

impl ServerError {
    /// Wraps the error of a failed call.
    pub fn call(error: impl std::fmt::Display) -> Self {
        ServerError::Call(error.to_string())
    }
}

impl From<smalt_sleeve::PortError> for ServerError {
    fn from(error: smalt_sleeve::PortError) -> Self {
        ServerError::call(error)
    }
}

impl From<WireError> for ServerError {
    fn from(error: WireError) -> Self {
        match error {
            WireError::Silent(limit) => ServerError::Silent(limit),
            error => ServerError::call(error),
        }
    }
}
