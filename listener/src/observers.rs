//! Whoever wants to see what a listener does: any number of observers, told as it happens (L21).
//!
//! Observers see, they do not decide. One that panics is reported, and neither the listener nor
//! the other observers notice.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use smalt_protocol::Timestamp;
use smalt_sleeve::port::{ErrorKind, PortError, PortResult};

use crate::report::{Decision, PoolStatus, Report};

/// A request that was sent to storage: what is billed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Called {
    /// Operation (`Get Messages`).
    pub operation: &'static str,
    /// How it failed, if it did.
    pub error: Option<ErrorKind>,
    /// Whether the service said that it is asked too often.
    pub throttled: bool,
}

impl Called {
    /// What is to be seen of a request to storage.
    pub fn of<T>(operation: &'static str, answer: &Result<T, PortError>) -> Self {
        let error = answer.as_ref().err();
        Called {
            operation,
            error: error.map(|error| error.kind),
            throttled: error.is_some_and(is_throttle),
        }
    }
}

/// Whether the service said that it is asked too often.
pub(crate) fn is_throttle(error: &PortError) -> bool {
    error.kind == ErrorKind::Busy && error.status != Some(500)
}

/// A get that was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// Messages asked for.
    pub asked: u32,
    /// Messages received; none for an empty get.
    pub got: u32,
    /// Age of the oldest of them, by the service's clock.
    pub oldest_age: Option<Duration>,
}

/// A message whose handler starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Started<'a> {
    /// Message id.
    pub id: &'a str,
    /// How often it was taken, this time included.
    pub dequeue_count: u32,
}

/// A renewal of a message's lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Renewed<'a> {
    /// Message id.
    pub id: &'a str,
    /// Whether it succeeded. One that failed is tried again while the lock holds.
    pub succeeded: bool,
}

/// A lock that is lost while its handler runs: the handler is being cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostLock<'a> {
    /// Message id.
    pub id: &'a str,
    /// Why.
    pub reason: &'a str,
}

/// An alarm: the service is about to drop a message that is not handled yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expiring<'a> {
    /// Message id.
    pub id: &'a str,
    /// When the service drops it.
    pub expires: Timestamp,
    /// What is left of its life now.
    pub left: Duration,
}

/// A dequeue task that found nothing and pauses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Idle {
    /// Empty gets of this task in a row.
    pub empty_gets: u64,
    /// How long it pauses, unless it is woken.
    pub pause: Duration,
}

/// Sees what a listener does. Every method does nothing unless it is written; all are called from
/// the listener's tasks and must return soon.
pub trait Observer: Send + Sync + 'static {
    /// A request was answered, or not.
    fn called(&self, _call: &Called) {}

    /// A get was answered.
    fn received(&self, _fetched: &Fetched) {}

    /// A get failed (`OnError` of the source article). The listener goes on.
    fn failed(&self, _error: &PortError) {}

    /// A handler starts.
    fn started(&self, _message: &Started<'_>) {}

    /// A lock was renewed, or could not be.
    fn renewed(&self, _renewal: &Renewed<'_>) {}

    /// A lock was lost under a running handler.
    fn lost_lock(&self, _lost: &LostLock<'_>) {}

    /// A message is about to expire unhandled; told once per receipt, as early as it is known.
    fn expiring(&self, _alarm: &Expiring<'_>) {}

    /// A message came to its end: handled, retried, poisoned, lost
    /// ([`Outcome`](crate::Outcome)); its log line is written (`OnNext`).
    fn decided(&self, _decision: &Decision) {}

    /// A dequeue task pauses.
    fn idle(&self, _idle: &Idle) {}

    /// The pool's state or its number of tasks changed.
    fn scaled(&self, _pool: &PoolStatus) {}

    /// The run is over (`OnCompleted`).
    fn stopped(&self, _report: &Report) {}
}

/// The observers of one listener.
#[derive(Clone, Default)]
pub(crate) struct Observers(Vec<Arc<dyn Observer>>);

impl Observers {
    pub(crate) fn add(&mut self, observer: Arc<dyn Observer>) {
        self.0.push(observer);
    }

    /// Makes a request, and shows what came of it.
    pub(crate) async fn see<T>(
        &self,
        operation: &'static str,
        call: impl Future<Output = PortResult<T>>,
    ) -> PortResult<T> {
        let answer = call.await;
        let called = Called::of(operation, &answer);
        self.tell(|observer| observer.called(&called));
        answer
    }

    /// Tells each of them. It is the application's code, and may panic.
    pub(crate) fn tell(&self, tell: impl Fn(&dyn Observer)) {
        for observer in &self.0 {
            let told = catch_unwind(AssertUnwindSafe(|| tell(observer.as_ref())));
            if told.is_err() {
                tracing::error!(op = "observer", "an observer panicked");
            }
        }
    }
}
