//! Servers as child processes.
//!
//! # Layout
//! - [`process`]: a child process that is killed when it is dropped; [`smalt`]: the binary `smalt`
//!   as one; [`azurite`]: Azurite as one; [`files`]: what is read from files.

pub mod azurite;
pub mod files;
pub mod process;
pub mod smalt;

use std::time::Duration;

use crate::wire::WireError;

/// Why a server could not be started or asked.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The binary is not there.
    #[error("{0} is not there; run `bash ci/build.sh`, or name it")]
    NoBinary(String),
    /// Azurite is not there.
    #[error(
        "{0} is not there; run `npm install --prefix build/azurite azurite`, or name the command"
    )]
    NoAzurite(String),
    /// The process could not be started.
    #[error("{0} cannot be started: {1}")]
    Start(String, std::io::Error),
    /// It ended, or kept silent, instead of becoming ready.
    #[error("{0} did not become ready: {1}")]
    NotReady(String, String),
    /// A request got no answer, or not the expected one.
    #[error("{0}")]
    Call(String),
    /// A request was not answered in time.
    #[error("no answer within {0:?}")]
    Silent(Duration),
}

impl ServerError {
    /// A call that failed.
    pub fn call(error: impl std::fmt::Display) -> Self {
        ServerError::Call(error.to_string())
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
