//! Requests and answers as plain values, and every way to send them.
//!
//! # Layout
//! - [`message`]: [`Request`], [`Answer`] and their [`Headers`]; [`url`]: URLs as clients wrote
//!   them.
//! - [`access`]: accounts, their keys and signatures.
//! - [`endpoint`]: a service that is asked on a new connection each time, in the clear or by TLS;
//!   [`connection`]: one connection that requests follow each other on.
//! - [`in_process`]: the emulator in this process.

pub mod access;
pub mod connection;
pub mod endpoint;
pub mod in_process;
pub mod message;
pub mod url;

use std::time::Duration;

pub use message::{Answer, Headers, Request};

/// Why there is no answer, or not the expected one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The text is not the address of a service, or the certificate is not one.
    #[error("not the address of a service: {0}")]
    Address(String),
    /// The request cannot be put on the wire.
    #[error("not a request: {0}")]
    Request(String),
    /// There is no connection, it broke, or the answer is not the expected one.
    #[error("{0}")]
    Call(String),
    /// The answer did not come in time.
    #[error("no answer within {0:?}")]
    Silent(Duration),
}

impl WireError {
    /// A call that failed.
    pub fn call(error: impl std::fmt::Display) -> Self {
        WireError::Call(error.to_string())
    }

    /// A request that cannot be put on the wire.
    pub fn request(error: impl std::fmt::Display) -> Self {
        WireError::Request(error.to_string())
    }
}
