//! Observers of a listener: any number of them, called as things happen (L21).
//!
//! Observers have no influence on the listener, except by [`Observer::queue_empty`]. If one panics,
//! the panic is logged, and neither the listener nor the other observers are affected.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use smalt_protocol::Timestamp;
use smalt_sleeve::port::{ErrorKind, PortError, PortResult};

use crate::handler::{Context, Handler, Message, Verdict};
use crate::report::{Decision, PoolStatus, Report};
use crate::rules::trigger::Trigger;

/// A billed request to storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Called {
    /// Operation, such as `Get Messages`.
    pub operation: &'static str,
    /// How the request failed; `None` if it succeeded.
    pub error: Option<ErrorKind>,
    /// Whether the service throttled the request.
    pub throttled: bool,
}

impl Called {
    /// Returns the observable facts of a request's answer.
    pub fn of<T>(operation: &'static str, answer: &Result<T, PortError>) -> Self {
        let error = answer.as_ref().err();
        Called {
            operation,
            error: error.map(|error| error.kind),
            throttled: error.is_some_and(is_throttle),
        }
    }
}

/// Returns whether the service throttled the request.
pub(crate) fn is_throttle(error: &PortError) -> bool {
    error.kind == ErrorKind::Busy && error.status != Some(500)
}

/// An answered get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// Messages requested.
    pub asked: u32,
    /// Messages received; 0 for an empty get.
    pub got: u32,
    /// Age of the oldest of them by the service's clock; `None` for an empty get.
    pub oldest_age: Option<Duration>,
}

/// A message whose handler starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Started<'a> {
    /// Id of the message.
    pub id: &'a str,
    /// How often the message was received, including this time.
    pub dequeue_count: u32,
}

/// A renewal of a message's lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Renewed<'a> {
    /// Id of the message.
    pub id: &'a str,
    /// Whether the renewal succeeded. A failed one is retried while the lock is valid.
    pub succeeded: bool,
}

/// A lock that was lost while its handler ran; the handler is being cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostLock<'a> {
    /// Id of the message.
    pub id: &'a str,
    /// Why the lock was lost.
    pub reason: &'a str,
}

/// An alarm: the service is about to drop a message that is not yet handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expiring<'a> {
    /// Id of the message.
    pub id: &'a str,
    /// When the service drops the message.
    pub expires: Timestamp,
    /// Remaining time to live.
    pub left: Duration,
}

/// A dequeue task that received no message and pauses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Idle {
    /// Consecutive empty gets of this task.
    pub empty_gets: u64,
    /// Length of the pause, unless the task is woken.
    pub pause: Duration,
}

/// What a dequeue task does after an empty get.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnEmpty {
    /// Pauses as its back-off says.
    #[default]
    Pause,
    /// Pauses for this time instead, unless it is woken.
    PauseFor(Duration),
    /// Stops, unless it is one of the tasks that poll while the queue is empty. A message or an
    /// event starts tasks again.
    Stop,
}

/// Observes what a listener does. Every method does nothing by default; the listener's tasks call
/// them, so they must return quickly.
pub trait Observer: Send + Sync + 'static {
    /// An event wakes the listener (L32).
    fn triggered(&self, _event: &Trigger) {}

    /// A handler starts on this message. Its body is the whole one, also if it was in a blob
    /// (`OnNext`, L21). Called in the handler's task, after [`started`](Self::started).
    fn handling(&self, _message: &Message) {}

    /// A dequeue task received no message, for the `empty_gets`th time in a row, and is about to
    /// pause (`QueueEmpty`, L20). The answer of the first observer that decides holds.
    fn queue_empty(&self, _idle: &Idle) -> OnEmpty {
        OnEmpty::Pause
    }

    /// A request was answered or failed.
    fn called(&self, _call: &Called) {}

    /// A get was answered.
    fn received(&self, _fetched: &Fetched) {}

    /// A get failed (`OnError` of the source article). The listener continues.
    fn failed(&self, _error: &PortError) {}

    /// A handler starts.
    fn started(&self, _message: &Started<'_>) {}

    /// A lock was renewed, or its renewal failed.
    fn renewed(&self, _renewal: &Renewed<'_>) {}

    /// A lock was lost under a running handler.
    fn lost_lock(&self, _lost: &LostLock<'_>) {}

    /// A message is about to expire unhandled. Called at most once per receipt, as early as
    /// possible.
    fn expiring(&self, _alarm: &Expiring<'_>) {}

    /// A message was handled, retried, poisoned or lost ([`Outcome`](crate::Outcome)), and its log
    /// line was written (`OnNext`).
    fn decided(&self, _decision: &Decision) {}

    /// A dequeue task pauses.
    fn idle(&self, _idle: &Idle) {}

    /// The pool's state or its number of tasks changed.
    fn scaled(&self, _pool: &PoolStatus) {}

    /// The run has ended (`OnCompleted`).
    fn stopped(&self, _report: &Report) {}
}

#[derive(Clone, Default)]
pub(crate) struct Observers(Vec<Arc<dyn Observer>>);

impl Observers {
    pub(crate) fn add(&mut self, observer: Arc<dyn Observer>) {
        self.0.push(observer);
    }

    /// Returns a handler that shows each message to the observers before it handles it.
    pub(crate) fn showing(&self, handler: Arc<dyn Handler>) -> Arc<dyn Handler> {
        let observers = self.clone();
        Arc::new(Showing { observers, handler })
    }

    /// Makes a request and reports the result to the observers.
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

    /// Calls each observer.
    pub(crate) fn tell(&self, tell: impl Fn(&dyn Observer)) {
        self.ask(tell).for_each(drop);
    }

    /// Returns the decision of the first observer that makes one.
    pub(crate) fn on_empty(&self, idle: &Idle) -> OnEmpty {
        let mut decisions = self.ask(|observer| observer.queue_empty(idle));
        let decided = decisions.find(|decision| *decision != OnEmpty::Pause);
        decided.unwrap_or_default()
    }

    /// Asks each observer. Observers are application code and may panic.
    fn ask<T>(&self, ask: impl Fn(&dyn Observer) -> T) -> impl Iterator<Item = T> {
        self.0.iter().filter_map(move |observer| {
            let answer = catch_unwind(AssertUnwindSafe(|| ask(observer.as_ref())));
            if answer.is_err() {
                tracing::error!(op = "observer", "an observer panicked");
            }
            answer.ok()
        })
    }
}

struct Showing {
    observers: Observers,
    handler: Arc<dyn Handler>,
}

#[async_trait]
impl Handler for Showing {
    async fn handle(&self, message: &Message, ctx: &Context) -> Verdict {
        self.observers.tell(|observer| observer.handling(message));
        self.handler.handle(message, ctx).await
    }
}
