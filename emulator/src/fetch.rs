//! Fetches copy sources outside the emulator, and limits which hosts may be reached.
//!
//! The emulator itself opens no connection. It passes a GET, or the POST of a webhook, to the
//! [`Fetch`] that it was built with and streams the answer of a source into its store; without one,
//! it has no outside sources. The binary uses
//! an HTTP client that obeys [`SourceRules`]; a test may use a function:
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! use bytes::Bytes;
//! use http::{Request, Response};
//! use smalt::{Emulator, body, fetch::FetchError};
//!
//! let pages = |request: Request<Bytes>| async move {
//!     match request.uri().host() {
//!         Some("pages.example") => Ok(Response::new(body::full("a page"))),
//!         _ => Err(FetchError::Unreachable("no such host".to_owned())),
//!     }
//! };
//! let emulator = Emulator::builder().fetch_sources_by(pages).seed(1).open()?;
//! # let _ = emulator;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).unwrap();
//! ```

mod allow;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};

pub use allow::{RuleError, SourceRule, SourceRules};

use crate::body::Body;

/// The future that [`Fetch::fetch`] returns.
pub type Fetching<'a> =
    Pin<Box<dyn Future<Output = Result<Response<Body>, FetchError>> + Send + 'a>>;

/// Fetches URLs outside the emulator.
pub trait Fetch: Send + Sync + 'static {
    /// Sends a request and returns the response, whatever its status; does not follow redirects.
    /// The body streams, and ends with an error when it takes too long.
    fn fetch(&self, request: Request<Bytes>) -> Fetching<'_>;
}

impl<T, F> Fetch for T
where
    T: Fn(Request<Bytes>) -> F + Send + Sync + 'static,
    F: Future<Output = Result<Response<Body>, FetchError>> + Send + 'static,
{
    fn fetch(&self, request: Request<Bytes>) -> Fetching<'_> {
        Box::pin(self(request))
    }
}

/// Why a fetch failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    /// The rules do not admit the address.
    #[error("the rules for copy sources do not admit {0}")]
    Forbidden(String),
    /// The URL cannot be fetched at all.
    #[error("{0} cannot be fetched")]
    Malformed(String),
    /// The host is unknown or unreachable, or the response is broken.
    #[error("{0}")]
    Unreachable(String),
    /// The response took too long.
    #[error("{0} took too long to answer")]
    TimedOut(String),
}

/// The [`Fetch`] that an emulator uses, if any.
#[derive(Clone, Default)]
pub struct Fetcher(Option<Arc<dyn Fetch>>);

impl Fetcher {
    /// Wraps a [`Fetch`].
    pub fn new(fetch: impl Fetch) -> Self {
        Fetcher(Some(Arc::new(fetch)))
    }

    /// Returns the [`Fetch`]; `None` if there are no outside sources.
    pub fn get(&self) -> Option<&dyn Fetch> {
        self.0.as_deref()
    }
}

impl fmt::Debug for Fetcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_set = self.0.is_some();
        f.debug_tuple("Fetcher").field(&is_set).finish()
    }
}
