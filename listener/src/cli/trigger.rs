//! Events from outside the process that wake listeners, and the trigger queue.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use smalt_listener::metrics::Metrics;
use smalt_listener::observers::{Called, Observer};
use smalt_listener::rules::trigger::Trigger;
use smalt_listener::{AccountLimit, Waker};
use smalt_sleeve::port::{CallContext, ErrorKind, PortResult, Storage};

/// Visibility timeout of a received event. An event for another process becomes visible again after
/// it.
const HIDDEN: Duration = Duration::from_secs(30);
/// Pause after a failed look at the trigger queue.
const AFTER_ERROR: Duration = Duration::from_secs(60);
/// Pause between two checks of a spent budget.
const WHILE_SPENT: Duration = Duration::from_secs(60);

/// Events per get, the service's maximum.
const BATCH: u32 = 32;

/// The listeners that events can wake.
pub(crate) struct Wakers {
    pub(crate) account: String,
    pub(crate) wakers: Mutex<Vec<Woken>>,
}

pub(crate) struct Woken {
    /// The partitioned queue that this listener's queue belongs to.
    pub(crate) set: Option<String>,
    pub(crate) waker: Waker,
}

impl Wakers {
    /// Wakes the listeners that the event is for and returns their number.
    pub(crate) fn wake(&self, event: &Trigger) -> usize {
        if !event.is_about(&self.account) {
            return 0;
        }
        let queue = event.queue();
        let wakers = self.wakers.lock().unwrap_or_else(PoisonError::into_inner);
        let woken = wakers.iter().filter(|Woken { set, waker }| {
            let by_set = set
                .as_ref()
                .is_some_and(|set| set.eq_ignore_ascii_case(&queue));
            if by_set {
                waker.wake();
            }
            by_set || waker.wake_for(&queue)
        });
        woken.count()
    }

    /// Adds a listener, in place of an earlier one on the same queue.
    pub(crate) fn add(&self, woken: Woken) {
        let mut wakers = self.wakers.lock().unwrap_or_else(PoisonError::into_inner);
        wakers.retain(|known| known.waker.queue() != woken.waker.queue());
        wakers.push(woken);
    }
}

/// A trigger queue. Its requests are counted because they are billed.
pub(crate) struct TriggerQueue {
    /// Name of the process in its log.
    pub(crate) worker: String,
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) metrics: Arc<Metrics>,
    /// Interval between two looks.
    pub(crate) every: Duration,
    pub(crate) wakers: Arc<Wakers>,
    /// The limit that its requests count against.
    pub(crate) account: AccountLimit,
}

impl TriggerQueue {
    /// Reads the queue until the future is dropped.
    pub(crate) async fn watch(self) {
        loop {
            // Woken listeners would receive nothing.
            if self.account.is_spent() {
                tokio::time::sleep(WHILE_SPENT).await;
                continue;
            }
            let pause = match self.look().await {
                Ok(()) => self.every,
                Err(error) => {
                    let missing = error.kind == ErrorKind::NotFound;
                    if missing && self.create().await {
                        continue;
                    }
                    let queue = self.metrics.queue();
                    let worker = self.worker.as_str();
                    tracing::warn!(worker, op = "trigger", queue, reason = %error, "cannot poll");
                    AFTER_ERROR.max(self.every)
                }
            };
            tokio::time::sleep(pause).await;
        }
    }

    async fn create(&self) -> bool {
        let cx = CallContext::default();
        let call = self.storage.create_queue(&cx, self.metrics.queue());
        self.counted("Create Queue", call).await.is_ok()
    }

    /// Receives events and wakes the listeners that they are for. Leaves an event for another
    /// process: it becomes visible again soon, and its time to live ends it.
    async fn look(&self) -> PortResult<()> {
        let (cx, queue) = (CallContext::default(), self.metrics.queue());
        loop {
            let get = self.storage.get_messages(&cx, queue, BATCH, HIDDEN);
            let got = self.counted("Get Messages", get).await?.messages;
            for message in got.iter().filter(|message| self.is_settled(&message.text)) {
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

    /// Returns whether an event can be deleted: it woke a listener, or it is malformed.
    fn is_settled(&self, text: &str) -> bool {
        match Trigger::parse(text) {
            Ok(event) => self.wakers.wake(&event) > 0,
            Err(problem) => {
                let queue = self.metrics.queue();
                let worker = self.worker.as_str();
                tracing::warn!(
                    worker, op = "trigger", queue, reason = %problem,
                    "deleted a malformed event"
                );
                true
            }
        }
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
}

#[cfg(test)]
mod tests {
    use smalt_listener::handler::{Verdict, function};
    use smalt_listener::{ACCOUNT_RATE_PER_S, ListenerConfig, QueueListener};
    use smalt_sleeve::port::MessageTtl;

    use super::*;
    use crate::cli::support::{FakeStorage, QUEUE, run_for, s};

    const EVENTS: &str = "events";

    fn asleep(storage: &Arc<FakeStorage>) -> (QueueListener, Arc<Wakers>) {
        let config = ListenerConfig {
            idle_tasks: 0,
            watchdog: s(600),
            cooldown: s(1),
            ..ListenerConfig::new(QUEUE)
        };
        let handler = Arc::new(function(|_, _| async { Verdict::Ok }));
        let storage = Arc::clone(storage) as Arc<dyn Storage>;
        let listener = QueueListener::new(config, Arc::clone(&storage), handler, 1).unwrap();
        let wakers = Arc::new(Wakers {
            account: storage.account().to_owned(),
            wakers: Mutex::new(vec![Woken {
                set: None,
                waker: listener.waker(),
            }]),
        });
        (listener, wakers)
    }

    fn trigger_queue(storage: &Arc<FakeStorage>, wakers: Arc<Wakers>) -> TriggerQueue {
        TriggerQueue {
            worker: "w".to_owned(),
            storage: Arc::clone(storage) as Arc<dyn Storage>,
            metrics: Arc::new(Metrics::new(EVENTS)),
            every: s(1),
            wakers,
            account: AccountLimit::new(ACCOUNT_RATE_PER_S),
        }
    }

    /// Returns the seconds from the put to the delete, with `events` sent right after the put.
    async fn latency(events: &[&str]) -> u64 {
        let storage = Arc::new(FakeStorage::new(&[QUEUE, EVENTS]));
        let (listener, wakers) = asleep(&storage);
        let watch = tokio::spawn(trigger_queue(&storage, wakers).watch());
        let ours = Arc::clone(&storage);
        let at = tokio::time::Instant::now() + s(100);
        let events: Vec<String> = events.iter().map(|e| (*e).to_owned()).collect();
        let sender = tokio::spawn(async move {
            tokio::time::sleep_until(at).await;
            ours.put(QUEUE, "work");
            for event in events {
                ours.put_for(EVENTS, &event, MessageTtl::After(s(300)));
            }
        });
        run_for(&listener, s(2000)).await;
        sender.await.unwrap();
        watch.abort();
        assert!(storage.stored(QUEUE).is_empty());
        let deleted = storage.deleted();
        // The handled message is the first of the queue's own; events are deleted as well.
        let done = deleted.iter().filter(|(_, when)| *when >= at);
        done.map(|(_, when)| (*when - at).as_secs()).max().unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn an_event_wakes_the_listener() {
        assert!(latency(&[r#"{"queue":"Orders","account":"FAKE"}"#]).await <= 2);
    }

    /// DL18, DL21: a lost, malformed or unrelated event strands no message.
    #[tokio::test(start_paused = true)]
    async fn dl18_the_watchdog_finds_messages_without_events() {
        for events in [
            &[][..],
            &[r#"{"queue":"mails"}"#],
            &[r#"{"queue":"orders","account":"other"}"#],
            &["broken"],
        ] {
            let latency = latency(events).await;
            assert!((3..=601).contains(&latency), "{latency} s with {events:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_event_for_another_process_is_left_for_it() {
        let storage = Arc::new(FakeStorage::new(&[QUEUE, EVENTS]));
        let (_listener, wakers) = asleep(&storage);
        storage.put(EVENTS, r#"{"queue":"mails"}"#);
        storage.put(EVENTS, r#"{"queue":"orders"}"#);
        storage.put(EVENTS, "broken");
        trigger_queue(&storage, wakers).look().await.unwrap();
        let left = storage.stored(EVENTS);
        assert_eq!(left.len(), 1);
        assert!(left[0].text.contains("mails"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_missing_trigger_queue_is_created() {
        let storage = Arc::new(FakeStorage::new(&[QUEUE]));
        let (_listener, wakers) = asleep(&storage);
        let events = trigger_queue(&storage, wakers);
        let counts = Arc::clone(&events.metrics);
        let watch = tokio::spawn(events.watch());
        tokio::time::sleep(s(5)).await;
        storage.put(EVENTS, r#"{"queue":"orders"}"#);
        tokio::time::sleep(s(5)).await;
        assert!(storage.stored(EVENTS).is_empty());
        watch.abort();
        let requests = counts.counts().requests;
        assert_eq!(requests["Create Queue"], 1);
        assert_eq!(requests["Delete Message"], 1);
        assert!(
            (10..=13).contains(&requests["Get Messages"]),
            "{requests:?}"
        );
    }
}
