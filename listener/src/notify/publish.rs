//! What publishes events: a sender, to any number of destinations at once (L33).

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::join_all;
use smalt_sleeve::port::{CallContext, Storage};
use tokio::time::Instant;

use crate::rules::trigger::{Trigger, When};

/// A sender looks at the depth at most once in this time. A listener that an event woke stays awake
/// for longer (its cooldown).
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Why an event was not delivered.
pub type Undelivered = Box<dyn std::error::Error + Send + Sync>;

/// Where events go.
#[async_trait]
pub trait Destination: Send + Sync + 'static {
    /// Delivers an event after `delay`, when the message that it is about becomes visible. Returns
    /// how many subscribers or listeners it reached.
    async fn deliver(&self, event: &Trigger, delay: Duration) -> Result<u64, Undelivered>;
}

pub(crate) struct Publisher {
    to: Vec<Arc<dyn Destination>>,
    when: When,
    /// When the depth was last asked for, and the answer.
    looked: Mutex<Option<(Instant, Option<u64>)>>,
}

impl Publisher {
    pub(crate) fn new(to: Vec<Arc<dyn Destination>>, when: When) -> Self {
        Publisher {
            to,
            when,
            looked: Mutex::default(),
        }
    }

    /// Returns whether it has no destination, so that asking for the depth would be in vain.
    pub(crate) fn is_silent(&self) -> bool {
        self.to.is_empty()
    }

    /// Returns a publisher to the same destinations for another queue.
    pub(crate) fn of_another_queue(&self) -> Self {
        Publisher::new(self.to.clone(), self.when)
    }

    /// Returns the event about a message that is about to be put, if one is due. The depth is
    /// taken before the put, so that of two senders into an empty queue at least one publishes.
    pub(crate) async fn due(
        &self,
        storage: &dyn Storage,
        queue: &str,
        body: &[u8],
        delay: Duration,
    ) -> Option<Trigger> {
        let mut event = Trigger {
            account: Some(storage.account().to_owned()),
            payload_size: Some(body.len() as u64),
            ..Trigger::about(queue)
        };
        // The depth when a delayed message becomes visible is not known.
        let (before, last) = if self.when.asks_depth() && delay.is_zero() {
            let last = self.claim_look()?;
            let cx = CallContext::housekeeping();
            let depth = storage.queue_properties(&cx, queue).await.ok();
            let depth = depth.map(|queue| queue.approximate_count);
            *self.looked() = Some((Instant::now(), depth));
            (depth, last)
        } else {
            (None, None)
        };
        event.event = Some(self.when.event(before, last)?.to_owned());
        event.depth = before.map(|depth| depth.saturating_add(1));
        Some(event)
    }

    /// Returns the depth at the previous look; `None` if that was a moment ago.
    fn claim_look(&self) -> Option<Option<u64>> {
        let mut looked = self.looked();
        let last = *looked;
        if last.is_some_and(|(at, _)| at.elapsed() < LOOK_EVERY) {
            return None;
        }
        let depth = last.and_then(|(_, depth)| depth);
        *looked = Some((Instant::now(), depth));
        Some(depth)
    }

    fn looked(&self) -> std::sync::MutexGuard<'_, Option<(Instant, Option<u64>)>> {
        self.looked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Delivers an event to all destinations; logs failures, because they cost only latency.
    pub(crate) async fn publish(&self, event: &Trigger, delay: Duration) {
        let named = event.event.as_deref().unwrap_or_default();
        tracing::debug!(op = "notify", queue = %event.queue, event = named, "publishing");
        let delivered = join_all(self.to.iter().map(|to| to.deliver(event, delay))).await;
        for error in delivered.into_iter().filter_map(Result::err) {
            tracing::warn!(
                op = "notify",
                queue = %event.queue,
                outcome = "event_lost",
                reason = %error,
                "cannot deliver an event; the listeners' watchdog finds the message"
            );
        }
    }
}
