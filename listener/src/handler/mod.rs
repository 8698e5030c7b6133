//! What handles a message: your own async function, a command, or an HTTP endpoint.
//!
//! A [`Handler`] is given one message at a time, a [`BatchHandler`] several. Both name the type of
//! body that they want: [`json`] and [`text`] decode it for them.

mod batch;
pub mod exec;
mod function;
pub mod http;
mod process_group;
mod typed;

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use smalt_protocol::Timestamp;
use tokio::sync::watch;

pub use batch::{BATCH_LINGER, BatchHandler, Batched, batched};
pub use function::{FunctionHandler, function, typed_function};
pub use typed::{Decoded, json, text};

/// A message as its handler sees it, with a body of type `T`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message<T = Bytes> {
    /// Message id: the same at every attempt, so the key for a handler that must not repeat itself.
    pub id: String,
    /// Queue that it came from.
    pub queue: String,
    /// Body, decoded by the queue's encoding and for the handler's type.
    pub body: T,
    /// How often it was taken, this time included.
    pub dequeue_count: u32,
    /// When it was put.
    pub inserted: Timestamp,
    /// When the service will drop it ([`Timestamp::MAX`] for never).
    pub expires: Timestamp,
}

impl<T> Message<T> {
    /// The same message with another body.
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

/// What a handler knows of its surroundings.
#[derive(Clone, Debug)]
pub struct Context {
    /// Name of the worker.
    pub worker: String,
    /// Most time that this attempt may take.
    pub timeout: Duration,
    /// The attempt after which the message goes to the poison queue.
    pub max_dequeue: u32,
    cancelled: watch::Receiver<bool>,
}

impl Context {
    /// A context, and the switch that cancels it.
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

    /// Whether the run has lost its purpose: time is up, the lock is lost, or the listener leaves.
    pub fn is_cancelled(&self) -> bool {
        *self.cancelled.borrow()
    }

    /// Waits until the run has lost its purpose. A handler that listens gets a few seconds to end;
    /// one that does not is dropped at its next await.
    pub async fn cancelled(&self) {
        let mut cancelled = self.cancelled.clone();
        // A closed channel means that nobody waits for the verdict any more.
        let _ = cancelled.wait_for(|c| *c).await;
    }
}

/// What a handler says about a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Done: the message is deleted.
    Ok,
    /// Not now: the message comes back, after `after` or by the queue's curve; after the last
    /// attempt it goes to the poison queue.
    Retry {
        /// When to try again.
        after: Option<Duration>,
        /// Why, for the log and the poison queue.
        reason: String,
    },
    /// Never: the message goes to the poison queue at once.
    Reject {
        /// Why, for the log and the poison queue.
        reason: String,
    },
    /// The handler itself cannot run, whatever the message: the message is given back, and the
    /// listener stops ([`ListenerError::HandlerUnable`](crate::ListenerError::HandlerUnable)).
    Unable {
        /// Why, for the log and the error.
        reason: String,
    },
}

impl Verdict {
    /// Retry by the curve.
    pub fn retry(reason: impl Into<String>) -> Self {
        Verdict::Retry {
            after: None,
            reason: reason.into(),
        }
    }

    /// Retry after a time of the handler's choice.
    pub fn retry_after(after: Duration, reason: impl Into<String>) -> Self {
        Verdict::Retry {
            after: Some(after),
            reason: reason.into(),
        }
    }

    /// The handler itself cannot run.
    pub fn unable(reason: impl Into<String>) -> Self {
        Verdict::Unable {
            reason: reason.into(),
        }
    }

    /// Reject.
    pub fn reject(reason: impl Into<String>) -> Self {
        Verdict::Reject {
            reason: reason.into(),
        }
    }
}

/// Something that handles messages. One handler serves all messages of a queue at once; delivery is
/// at least once, so a handler must bear to see a message again ([`Message::id`]).
///
/// A panic, a time-out or a dropped run counts as [`Verdict::Retry`] and touches no other message.
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
