//! Sources of copies that are elsewhere: who fetches them, and what of the world may be reached.
//!
//! The emulator itself opens no connection. It hands a GET to the [`Fetch`] that it was built with
//! and streams the answer into its store; without one, nothing is elsewhere. The binary's is an
//! HTTP client that keeps to its [`SourceRules`]; a test's may be a function:
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! use http::{Request, Response};
//! use smalt::{Emulator, body, fetch::FetchError};
//!
//! let pages = |request: Request<()>| async move {
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

use http::{Request, Response};

pub use allow::{RuleError, SourceRule, SourceRules};

use crate::body::Body;

/// A fetch under way.
pub type Fetching<'a> =
    Pin<Box<dyn Future<Output = Result<Response<Body>, FetchError>> + Send + 'a>>;

/// Fetches what a URL names.
pub trait Fetch: Send + Sync + 'static {
    /// Sends a GET and returns the answer, whatever its status; redirects are answers. The body
    /// streams, and breaks off with an error when it takes too long.
    fn fetch(&self, request: Request<()>) -> Fetching<'_>;
}

impl<T, F> Fetch for T
where
    T: Fn(Request<()>) -> F + Send + Sync + 'static,
    F: Future<Output = Result<Response<Body>, FetchError>> + Send + 'static,
{
    fn fetch(&self, request: Request<()>) -> Fetching<'_> {
        Box::pin(self(request))
    }
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    /// The rules do not admit the address.
    #[error("the rules for copy sources do not admit {0}")]
    Forbidden(String),
    /// The URL cannot be fetched at all.
    #[error("{0} cannot be fetched")]
    Malformed(String),
    /// No such host, nobody there, or a broken answer.
    #[error("{0}")]
    Unreachable(String),
    /// It took too long.
    #[error("{0} took too long to answer")]
    TimedOut(String),
}

/// What an emulator fetches with, if with anything.
#[derive(Clone, Default)]
pub struct Fetcher(Option<Arc<dyn Fetch>>);

impl Fetcher {
    /// Fetches with this.
    pub fn new(fetch: impl Fetch) -> Self {
        Fetcher(Some(Arc::new(fetch)))
    }

    /// What fetches; absent where nothing is elsewhere.
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
