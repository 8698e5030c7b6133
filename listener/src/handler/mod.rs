//! Handlers of messages: your own async function, a command, or an HTTP endpoint.
//!
//! A [`Handler`] gets one message at a time, a [`BatchHandler`] several. Both declare the body type
//! that they accept; [`json`] and [`text`] decode it.

mod batch;
mod each;
pub mod exec;
mod function;
pub mod http;
pub(crate) mod process_group;
mod typed;

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use smalt_protocol::Timestamp;
use tokio::sync::watch;

pub use batch::{BATCH_LINGER, BatchHandler, Batched, batched};
pub use each::{Each, each};
pub use function::{FunctionHandler, function, typed_function};
pub use typed::{Decoded, json, text};

/// A message as passed to a handler, with a body of type `T`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message<T = Bytes> {
    /// Message id, the same at every attempt. A handler that must not act twice can use it as a
    /// key.
    pub id: String,
    /// Queue that the message came from.
    pub queue: String,
    /// Body, decoded by the queue's encoding and to the handler's type.
    pub body: T,
    /// How often the message was received, including this time.
    pub dequeue_count: u32,
    /// When the message was put.
    pub inserted: Timestamp,
    /// When the service drops the message ([`Timestamp::MAX`] for never).
    pub expires: Timestamp,
}

impl<T> Message<T> {
    /// Returns the same message with another body.
    pub fn with_body<U>(&self, body: U) -> Message<U> {
        Message {
            id: self.id.clone(),
            queue: self.queue.clone(),
            body,
            dequeue_count: self.dequeue_count,
            inserted: self.inserted,
            expires: self.expires,
        }
    }
}

/// The context of one run of a handler.
#[derive(Clone, Debug)]
pub struct Context {
    /// Name of the worker.
    pub worker: String,
    /// Longest time that this attempt may take.
    pub timeout: Duration,
    /// Number of the attempt after which the message goes to the poison queue.
    pub max_dequeue: u32,
    cancelled: watch::Receiver<bool>,
}

impl Context {
    /// Creates a context and the switch that cancels it.
    pub fn new(
        worker: &str,
        timeout: Duration,
        max_dequeue: u32,
    ) -> (Context, watch::Sender<bool>) {
        let (switch, cancelled) = watch::channel(false);
        let ctx = Context {
            worker: worker.to_owned(),
            timeout,
            max_dequeue,
            cancelled,
        };
        (ctx, switch)
    }

    /// Returns whether the run is cancelled: it timed out, its lock is lost, or the listener stops.
    pub fn is_cancelled(&self) -> bool {
        *self.cancelled.borrow()
    }

    /// Waits until the run is cancelled. A handler that awaits this gets a few seconds to end; any
    /// other handler is dropped at its next await.
    pub async fn cancelled(&self) {
        let mut cancelled = self.cancelled.clone();
        // A closed channel means that nothing waits for the verdict any more.
        let _ = cancelled.wait_for(|c| *c).await;
    }
}

/// A handler's verdict on a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Handled: the message is deleted.
    Ok,
    /// Failed for now: the message is retried after `after`, or after the delay of the queue's
    /// curve. After the last attempt it goes to the poison queue.
    Retry {
        /// Delay before the next attempt; `None` for the queue's curve.
        after: Option<Duration>,
        /// The reason for the log and the poison queue.
        reason: String,
    },
    /// Failed for good: the message goes to the poison queue at once.
    Reject {
        /// The reason for the log and the poison queue.
        reason: String,
    },
    /// The handler itself cannot run, whatever the message: the message is given back, and the
    /// listener stops ([`ListenerError::HandlerUnable`](crate::ListenerError::HandlerUnable)).
    Unable {
        /// The reason for the log and the error.
        reason: String,
    },
}

impl Verdict {
    /// Returns a retry by the queue's curve.
    pub fn retry(reason: impl Into<String>) -> Self {
        Verdict::Retry {
            after: None,
            reason: reason.into(),
        }
    }

    /// Returns a retry after a delay that the handler chooses.
    pub fn retry_after(after: Duration, reason: impl Into<String>) -> Self {
        Verdict::Retry {
            after: Some(after),
            reason: reason.into(),
        }
    }

    /// Returns that the handler itself cannot run.
    pub fn unable(reason: impl Into<String>) -> Self {
        Verdict::Unable {
            reason: reason.into(),
        }
    }

    /// Returns a rejection.
    pub fn reject(reason: impl Into<String>) -> Self {
        Verdict::Reject {
            reason: reason.into(),
        }
    }
}

/// Handles messages. One handler handles all messages of a queue concurrently. Delivery is at least
/// once, so a handler must tolerate the same message again ([`Message::id`]).
///
/// A panic, a timeout or a dropped run counts as [`Verdict::Retry`] and affects no other message.
///
/// ```
/// use async_trait::async_trait;
/// use smalt_listener::handler::{Context, Handler, Message, Verdict, json};
///
/// #[derive(serde::Deserialize)]
/// struct Order {
///     id: u64,
/// }
///
/// struct Shop;
///
/// #[async_trait]
/// impl Handler<Order> for Shop {
///     async fn handle(&self, message: &Message<Order>, _ctx: &Context) -> Verdict {
///         match message.body.id {
///             0 => Verdict::reject("no such order"),
///             _ => Verdict::Ok,
///         }
///     }
/// }
///
/// let handler = json(Shop); // a `Handler` of bytes: what a listener takes
/// # let _ = handler;
/// ```
#[async_trait]
pub trait Handler<T: Send + Sync + 'static = Bytes>: Send + Sync + 'static {
    /// Handles one message.
    async fn handle(&self, message: &Message<T>, ctx: &Context) -> Verdict;
}
