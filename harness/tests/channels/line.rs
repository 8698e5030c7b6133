//! Transports that a test controls: one that dies at a given request, like a process's kill -9, and
//! one that sends a request only when the test says so.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use smalt_sleeve::{Transport, TransportError};
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinHandle;

type Answer = Result<http::Response<Bytes>, TransportError>;

/// When a process dies during its last request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Death {
    /// Before the request is sent.
    Unsent,
    /// After the request is executed, and before the answer arrives.
    Unanswered,
}

/// A transport that sends a number of requests, and then none.
pub(crate) struct Mortal {
    inner: Arc<dyn Transport>,
    last: u64,
    death: Death,
    asked: AtomicU64,
    died: Notify,
}

impl Mortal {
    /// Makes the request with this number, from 0, the last.
    pub(crate) fn new(inner: Arc<dyn Transport>, last: u64, death: Death) -> Arc<Self> {
        Arc::new(Mortal {
            inner,
            last,
            death,
            asked: AtomicU64::new(0),
            died: Notify::new(),
        })
    }

    /// Runs `life` until the transport dies. Returns `None`, or the result of `life` if it ends
    /// before.
    pub(crate) async fn life<T>(&self, life: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.died.notified() => None,
            lived = life => Some(lived),
        }
    }
}

impl fmt::Debug for Mortal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mortal").finish_non_exhaustive()
    }
}

#[async_trait]
impl Transport for Mortal {
    async fn round_trip(&self, request: http::Request<Bytes>) -> Answer {
        let number = self.asked.fetch_add(1, Ordering::SeqCst);
        if number < self.last {
            return self.inner.round_trip(request).await;
        }
        if number == self.last && self.death == Death::Unanswered {
            let _ = self.inner.round_trip(request).await;
        }
        self.died.notify_one();
        std::future::pending().await
    }
}

/// A process that proceeds by one request at a time.
pub(crate) struct Stepped<T> {
    line: Arc<Gate>,
    task: JoinHandle<T>,
}

#[derive(Debug)]
struct Gate {
    inner: Arc<dyn Transport>,
    open: Semaphore,
    answered: AtomicU64,
}

#[async_trait]
impl Transport for Gate {
    async fn round_trip(&self, request: http::Request<Bytes>) -> Answer {
        if let Ok(permit) = self.open.acquire().await {
            permit.forget();
        }
        let answer = self.inner.round_trip(request).await;
        self.answered.fetch_add(1, Ordering::SeqCst);
        answer
    }
}

impl<T: Send + 'static> Stepped<T> {
    /// Starts a process with its own transport, and runs it up to its first request.
    pub(crate) fn begin<F>(
        inner: Arc<dyn Transport>,
        life: impl FnOnce(Arc<dyn Transport>) -> F,
    ) -> Self
    where
        F: Future<Output = T> + Send + 'static,
    {
        let line = Arc::new(Gate {
            inner,
            open: Semaphore::new(0),
            answered: AtomicU64::new(0),
        });
        let task = tokio::spawn(life(Arc::clone(&line) as Arc<dyn Transport>));
        Stepped { line, task }
    }

    /// Sends one more request; returns `false` if there is none.
    pub(crate) async fn step(&self) -> bool {
        let before = self.line.answered.load(Ordering::SeqCst);
        self.line.open.add_permits(1);
        while self.line.answered.load(Ordering::SeqCst) == before {
            if self.task.is_finished() {
                return false;
            }
            // Lets the other task or the clock proceed, in case the process is pausing.
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        true
    }

    /// Runs the process to its end without further control.
    pub(crate) async fn finish(self) -> Result<T, tokio::task::JoinError> {
        self.line.open.add_permits(Semaphore::MAX_PERMITS / 2);
        self.task.await
    }

    /// Ends the process like kill -9.
    pub(crate) fn kill(self) {
        self.task.abort();
    }
}
