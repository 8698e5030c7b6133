//! Requests and answers as plain values, and every way to send them.
//!
//! # Layout
//! - [`message`]: [`Request`], [`Answer`] and their [`Headers`]; [`url`]: URLs exactly as
//!   clients wrote them.
//! - [`access`]: accounts, keys and signatures.
//! - [`endpoint`]: a service reached over a new connection per request, in plain text or TLS;
//!   [`connection`]: one connection for consecutive requests.
//! - [`in_process`]: the emulator in this process.

pub mod access;
pub mod connection;
pub mod endpoint;
pub mod in_process;
pub mod message;
pub mod url;

use std::time::Duration;

pub use message::{Answer, Headers, Request};

/// Why there is no answer, or an unexpected one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The string is not the address of a service, or the certificate is invalid.
    #[error("invalid service address: {0}")]
    Address(String),
    /// The request cannot be sent because it is malformed.
    #[error("not a request: {0}")]
    Request(String),
    /// The connection failed or broke, or the answer is not the expected one.
    #[error("{0}")]
    Call(String),
    /// The answer did not come in time.
    #[error("no answer within {0:?}")]
    Silent(Duration),
}

impl WireError {
    /// Wraps the error of a failed call.
    pub fn call(error: impl std::fmt::Display) -> Self {
        WireError::Call(error.to_string())
    }

    /// Wraps the error of a malformed request.
    pub fn request(error: impl std::fmt::Display) -> Self {
        WireError::Request(error.to_string())
    }
}
