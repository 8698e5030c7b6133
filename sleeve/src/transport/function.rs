//! A transport made from a function: the service runs in the same process, without a socket.

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;

use async_trait::async_trait;
use bytes::Bytes;

use super::{Transport, TransportError};

/// Future that the function returns.
pub type ResponseFuture = Pin<Box<dyn Future<Output = io::Result<http::Response<Bytes>>> + Send>>;

type Function = dyn Fn(http::Request<Bytes>) -> ResponseFuture + Send + Sync;

/// A transport that calls a function from HTTP request to HTTP response.
///
/// Errors mean the same as on a socket: `ConnectionRefused`, `NotFound` and the unreachable kinds
/// mean that the request never arrived; every other kind means that it arrived and was not
/// answered.
pub struct FnTransport {
    function: Box<Function>,
}

impl FnTransport {
    /// Creates a transport that passes every request to `function`.
    pub fn new<F, R>(function: F) -> Self
    where
        F: Fn(http::Request<Bytes>) -> R + Send + Sync + 'static,
        R: Future<Output = io::Result<http::Response<Bytes>>> + Send + 'static,
    {
        FnTransport {
            function: Box::new(move |request| Box::pin(function(request))),
        }
    }
}

impl fmt::Debug for FnTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FnTransport").finish_non_exhaustive()
    }
}

#[async_trait]
impl Transport for FnTransport {
    async fn round_trip(
        &self,
        request: http::Request<Bytes>,
    ) -> Result<http::Response<Bytes>, TransportError> {
        (self.function)(request).await.map_err(|error| {
            if never_arrived(error.kind()) {
                TransportError::Unreachable(error.to_string())
            } else {
                TransportError::NoAnswer(error.to_string())
            }
        })
    }
}

fn never_arrived(kind: io::ErrorKind) -> bool {
    matches!(
        kind,
        io::ErrorKind::ConnectionRefused
            | io::ErrorKind::NotFound
            | io::ErrorKind::AddrNotAvailable
            | io::ErrorKind::HostUnreachable
            | io::ErrorKind::NetworkUnreachable
            | io::ErrorKind::NetworkDown
    )
}
