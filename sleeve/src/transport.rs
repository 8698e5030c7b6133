//! How a request reaches the service: over sockets ([`HyperTransport`]) or through any function
//! ([`FnTransport`]), for example a service in the same process.
//!
//! A transport sends one request once. It never repeats a request that may have been executed; it
//! reports whether the request can have reached the service, and the retry policy decides.

mod connect;
mod function;
mod hyper;
mod pool;
mod sdk;
mod tls;

use std::fmt;

use async_trait::async_trait;
use bytes::Bytes;

pub use function::{FnTransport, ResponseFuture};
pub use hyper::{HyperTransport, HyperTransportSettings};

pub(crate) use sdk::SdkClient;

/// Sends a request to the service and returns the response, both whole.
#[async_trait]
pub trait Transport: Send + Sync + fmt::Debug + 'static {
    /// Sends one request. Its URI is absolute and it has a `Host` header.
    async fn round_trip(
        &self,
        request: http::Request<Bytes>,
    ) -> Result<http::Response<Bytes>, TransportError>;
}

/// Returns whether the status is an error. The head of an error response contains everything that
/// is acted upon, such as `Retry-After`, so a transport returns it even if the body is cut off.
pub fn is_refusal(status: http::StatusCode) -> bool {
    status.is_client_error() || status.is_server_error()
}

/// Why there is no response. The texts contain host names, but no paths, queries or headers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransportError {
    /// The request surely did not reach the service: connection refused, unknown host, TLS.
    #[error("not reached: {0}")]
    Unreachable(String),
    /// Nothing was sent, because the server's certificate has an untrusted authority, another host
    /// or another time. A retry would fail in the same way.
    #[error("the server's certificate is not trusted: {0}")]
    Untrusted(String),
    /// The request was sent, at least in part, but no complete response arrived.
    #[error("no answer: {0}")]
    NoAnswer(String),
    /// The response is larger than this transport accepts. The request was executed; a retry would
    /// fail in the same way.
    #[error("the response has more than {0} bytes")]
    AnswerTooLarge(u64),
    /// The request is malformed and cannot be sent.
    #[error("malformed request: {0}")]
    Malformed(String),
}
