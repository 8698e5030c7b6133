//! How a request reaches the service: over sockets ([`HyperTransport`]) or through any function
//! ([`FnTransport`]), for instance a service in the same process.
//!
//! A transport carries one request once. It never repeats by itself what may have been executed: it
//! says truthfully whether the request can have reached the service, and the retry policy decides.

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

/// Carries a request to the service and its answer back, both whole.
#[async_trait]
pub trait Transport: Send + Sync + fmt::Debug + 'static {
    /// One request, one answer. The request's URI is absolute and it has a `Host` header.
    async fn round_trip(
        &self,
        request: http::Request<Bytes>,
    ) -> Result<http::Response<Bytes>, TransportError>;
}

/// Whether an answer's status says no. The head of such an answer says everything that is acted
/// upon, `Retry-After` above all: a transport hands it on though the text behind it broke off.
pub fn is_refusal(status: http::StatusCode) -> bool {
    status.is_client_error() || status.is_server_error()
}

/// Why there is no answer. The texts name hosts, never paths, queries or headers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransportError {
    /// The request surely did not reach the service: refused connection, unknown host, TLS.
    #[error("not reached: {0}")]
    Unreachable(String),
    /// Nothing was sent to whoever answers there: its certificate is not of an authority that is
    /// trusted, not of this host, or not of this time. Asking again brings the same one.
    #[error("its certificate is not trusted: {0}")]
    Untrusted(String),
    /// The request was sent, at least in part, and no whole answer came.
    #[error("no answer: {0}")]
    NoAnswer(String),
    /// The answer is larger than this transport takes. The request was executed; asking again would
    /// bring the same.
    #[error("the answer has more than {0} bytes")]
    AnswerTooLarge(u64),
    /// This is not a request that can be sent.
    #[error("malformed request: {0}")]
    Malformed(String),
}
