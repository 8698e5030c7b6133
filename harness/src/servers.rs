//! Servers as child processes or in this one, and what it takes to talk to them: shared by the
//! benchmark, the crash test, the malformed requests and the simulation.
//!
//! # Layout
//! - [`process`]: a child process that is killed when it is dropped; [`smalt`]: the binary `smalt`
//!   as one; [`azurite`]: Azurite as one; [`files`]: what is read from files.
//! - [`in_process`]: the emulator in this process.
//! - [`connection`]: one kept-alive HTTP/1.1 connection; [`access`]: requests that are allowed.

pub mod access;
pub mod azurite;
pub mod connection;
pub mod files;
pub mod in_process;
pub mod process;
pub mod smalt;

use std::time::Duration;

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
    /// A request did not get through.
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
