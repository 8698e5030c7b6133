//! One process's subscription to a topic: its queue, which it alone reads.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use smalt_sleeve::port::{CallContext, ErrorKind, PortResult, QueueMessages, Storage};
use tokio::time::Instant;

use super::relay::Relay;
use super::topic::{EVENT_TTL, Topic, subscription_queue, subscriptions};
use crate::config::ConfigError;
use crate::jitter;
use crate::metrics::Metrics;
use crate::observers::{Called, Observer};
use crate::rules::trigger::Trigger;
use crate::throttle::AccountLimit;

/// Visibility timeout of a received event, which is deleted at once. Only a failed delete lets an
/// event come back.
const HIDDEN: Duration = Duration::from_secs(30);
const AFTER_ERROR: Duration = Duration::from_secs(60);
const WHILE_SPENT: Duration = Duration::from_secs(60);
/// Interval of the search for subscriptions that nobody reads.
const TIDY_EVERY: Duration = Duration::from_secs(3_600);
/// Subscriptions that one search looks at: those after its own. In a large fleet, where each looked
/// at all others, the searches of an hour would be a million requests.
const TIDIED_MAX: usize = 16;
/// A subscription with an event that waited for this long has no reader.
const ABANDONED_AFTER: Duration = Duration::from_secs(300);
/// Events per get, the service's maximum.
const BATCH: u32 = 32;

/// Reads the events of a topic for one process, through a queue of its own. All requests are
/// counted, because they are billed.
pub struct Subscription {
    topic: String,
    worker: String,
    storage: Arc<dyn Storage>,
    metrics: Arc<Metrics>,
    every: Duration,
    relay: Relay,
    account: AccountLimit,
}

impl Subscription {
    /// Creates a subscription of the process `worker` to `topic`, looked at every `every`. `seed`
    /// tells processes with the same name apart.
    ///
    /// # Errors
    /// The topic's name is invalid.
    pub fn new(
        storage: Arc<dyn Storage>,
        topic: &str,
        (worker, seed): (&str, u64),
        every: Duration,
        relay: Relay,
    ) -> Result<Self, ConfigError> {
        Topic::check("topic", topic)?;
        let queue = subscription_queue(topic, jitter::of_name(worker) ^ seed);
        Ok(Subscription {
            topic: topic.to_owned(),
            worker: worker.to_owned(),
            storage,
            metrics: Arc::new(Metrics::new(&queue)),
            every,
            relay,
            account: AccountLimit::new(crate::throttle::ACCOUNT_RATE_PER_S),
        })
    }

    /// Counts its requests against a limit that the listeners share.
    #[must_use]
    pub fn within(mut self, account: AccountLimit) -> Self {
        self.account = account;
        self
    }

    /// Returns the counts of its requests; their queue is that of the subscription.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// Subscribes: creates the queue, so that events from now on arrive.
    ///
    /// # Errors
    /// The queue cannot be created.
    pub async fn subscribe(&self) -> PortResult<()> {
        let cx = CallContext::housekeeping();
        let create = self.storage.create_queue(&cx, self.metrics.queue());
        self.counted("Create Queue", create).await.map(drop)
    }

    /// Reads events until the future is dropped. Needs no [`subscribe`](Self::subscribe) before.
    pub async fn watch(&self) {
        let mut tidied: Option<Instant> = None;
        loop {
            // Woken listeners would receive nothing.
            if self.account.is_spent() {
                tokio::time::sleep(WHILE_SPENT).await;
                continue;
            }
            let pause = match self.look().await {
                Ok(()) => self.every,
                Err(error)
                    if error.kind == ErrorKind::NotFound && self.subscribe().await.is_ok() =>
                {
                    // Events may have been put before the queue existed.
                    self.relay.wake_all();
                    continue;
                }
                Err(error) => {
                    self.warn(&error, "cannot read events");
                    AFTER_ERROR.max(self.every)
                }
            };
            if tidied.is_none_or(|at| at.elapsed() >= TIDY_EVERY) {
                tidied = Some(Instant::now());
                if let Err(error) = self.tidy().await {
                    self.warn(&error, "cannot look for abandoned subscriptions");
                }
            }
            tokio::time::sleep(pause).await;
        }
    }

    /// Ends the subscription: deletes its queue.
    pub async fn leave(&self) {
        let cx = CallContext::housekeeping();
        let delete = self.storage.delete_queue(&cx, self.metrics.queue());
        if let Err(error) = self.counted("Delete Queue", delete).await {
            self.warn(
                &error,
                "cannot delete the subscription; another process will",
            );
        }
    }

    /// Receives events, wakes the listeners that they are for, and deletes them.
    async fn look(&self) -> PortResult<()> {
        let (cx, queue) = (CallContext::housekeeping(), self.metrics.queue());
        loop {
            let get = self.storage.get_messages(&cx, queue, BATCH, HIDDEN);
            let got = self.counted("Get Messages", get).await?.messages;
            for message in &got {
                match Trigger::parse(&message.text) {
                    Ok(event) => drop(self.relay.relay(&event)),
                    Err(problem) => self.warn(&problem, "deleted a malformed event"),
                }
            }
            for message in &got {
                let (id, receipt) = (&message.id, &message.pop_receipt);
                let delete = self.storage.delete_message(&cx, queue, id, receipt);
                if let Err(error) = self.counted("Delete Message", delete).await {
                    tracing::debug!(op = "trigger", queue, reason = %error, "not deleted");
                }
            }
            if got.len() < BATCH as usize {
                return Ok(());
            }
        }
    }

    /// Deletes the subscriptions of processes that died, among the next ones in the order of their
    /// names. A live reader whose queue is deleted creates it again and wakes its listeners.
    async fn tidy(&self) -> PortResult<()> {
        let cx = CallContext::housekeeping();
        let list = subscriptions(self.storage.as_ref(), &self.topic);
        let mut queues = self.counted("List Queues", list).await?;
        queues.retain(|queue| queue != self.metrics.queue());
        queues.sort_unstable();
        let own = queues.partition_point(|queue| queue.as_str() < self.metrics.queue());
        queues.rotate_left(own);
        for queue in queues.into_iter().take(TIDIED_MAX) {
            let peek = self.storage.peek_messages(&cx, &queue, 1);
            let peeked = self.counted("Peek Messages", peek).await;
            if peeked.is_ok_and(|peeked| is_abandoned(&peeked)) {
                let delete = self.storage.delete_queue(&cx, &queue);
                self.counted("Delete Queue", delete).await?;
                tracing::info!(op = "trigger", queue, "deleted an abandoned subscription");
            }
        }
        Ok(())
    }

    async fn counted<T>(
        &self,
        operation: &'static str,
        call: impl Future<Output = PortResult<T>>,
    ) -> PortResult<T> {
        self.account.request().await;
        let answer = call.await;
        self.metrics.called(&Called::of(operation, &answer));
        answer
    }

    fn warn(&self, reason: &dyn std::fmt::Display, what: &str) {
        let (worker, queue) = (self.worker.as_str(), self.metrics.queue());
        tracing::warn!(worker, op = "trigger", queue, %reason, "{what}");
    }
}

/// Returns whether the oldest event of a subscription has waited for too long. Counted from its
/// expiry, because a delayed event is older than it is visible.
fn is_abandoned(peeked: &QueueMessages) -> bool {
    let waited = |expires: smalt_protocol::Timestamp| {
        EVENT_TTL.saturating_sub(expires.since(peeked.server_time))
    };
    peeked.messages.first().is_some_and(|oldest| {
        Trigger::parse(&oldest.text).is_ok() && waited(oldest.expires) >= ABANDONED_AFTER
    })
}
