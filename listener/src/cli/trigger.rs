//! The triggers that come from outside of the process, and the queue that they may come through.

use std::sync::Arc;
use std::time::Duration;

use smalt_listener::Waker;
use smalt_listener::rules::trigger::Trigger;
use smalt_sleeve::port::{CallContext, ErrorKind, PortResult, Storage};

/// How long a taken event is hidden: one for another process comes back to be found by it.
const HIDDEN: Duration = Duration::from_secs(30);
/// Between two looks while the trigger queue cannot be read.
const AFTER_ERROR: Duration = Duration::from_secs(60);

/// Whom events can wake.
pub(crate) struct Wakers {
    pub(crate) account: String,
    pub(crate) wakers: Vec<Waker>,
}

impl Wakers {
    /// Wakes those that the event is for; how many.
    pub(crate) fn wake(&self, event: &Trigger) -> usize {
        if !event.is_about(&self.account) {
            return 0;
        }
        let queue = event.queue();
        let woken = self.wakers.iter().filter(|waker| waker.wake_for(&queue));
        woken.count()
    }
}

/// Reads a trigger queue for good.
pub(crate) async fn watch(
    storage: Arc<dyn Storage>,
    queue: String,
    every: Duration,
    wakers: Arc<Wakers>,
) {
    loop {
        let pause = match look(storage.as_ref(), &queue, &wakers).await {
            Ok(()) => every,
            Err(error) => {
                let missing = error.kind == ErrorKind::NotFound;
                if missing && create(storage.as_ref(), &queue).await {
                    continue;
                }
                tracing::warn!(op = "trigger", queue = %queue, reason = %error, "no triggers");
                AFTER_ERROR.max(every)
            }
        };
        tokio::time::sleep(pause).await;
    }
}

async fn create(storage: &dyn Storage, queue: &str) -> bool {
    let created = storage.create_queue(&CallContext::default(), queue).await;
    created.is_ok()
}

/// Takes what is there, and wakes whom it is for. An event for somebody else is left: it is visible
/// again soon, and its time to live ends it.
async fn look(storage: &dyn Storage, queue: &str, wakers: &Wakers) -> PortResult<()> {
    let cx = CallContext::default();
    loop {
        let got = storage.get_messages(&cx, queue, 32, HIDDEN).await?;
        for message in &got.messages {
            let keep = match Trigger::parse(&message.text) {
                Ok(event) => wakers.wake(&event) == 0,
                Err(problem) => {
                    tracing::warn!(op = "trigger", queue, reason = %problem, "no event: deleted");
                    false
                }
            };
            if !keep {
                let (id, receipt) = (&message.id, &message.pop_receipt);
                let deleted = storage.delete_message(&cx, queue, id, receipt).await;
                if let Err(error) = deleted {
                    tracing::debug!(op = "trigger", queue, reason = %error, "it comes again");
                }
            }
        }
        if got.messages.len() < 32 {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use smalt_listener::handler::{Verdict, function};
    use smalt_listener::{Listener, ListenerConfig};
    use smalt_sleeve::port::MessageTtl;

    use super::*;
    use crate::cli::support::{FakeStorage, QUEUE, run_for, s};

    const EVENTS: &str = "events";

    fn asleep(storage: &Arc<FakeStorage>) -> (Listener, Arc<Wakers>) {
        let config = ListenerConfig {
            idle_tasks: 0,
            watchdog: s(600),
            cooldown: s(1),
            ..ListenerConfig::new(QUEUE)
        };
        let handler = Arc::new(function(|_, _| async { Verdict::Ok }));
        let storage = Arc::clone(storage) as Arc<dyn Storage>;
        let listener = Listener::new(config, Arc::clone(&storage), handler, 1).unwrap();
        let wakers = Arc::new(Wakers {
            account: storage.account().to_owned(),
            wakers: vec![listener.waker()],
        });
        (listener, wakers)
    }

    /// Seconds from the put to the delete, with these events sent right after the put.
    async fn latency(events: &[&str]) -> u64 {
        let storage = Arc::new(FakeStorage::new(&[QUEUE, EVENTS]));
        let (listener, wakers) = asleep(&storage);
        let port = Arc::clone(&storage) as Arc<dyn Storage>;
        let watch = tokio::spawn(watch(port, EVENTS.to_owned(), s(1), wakers));
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

    /// DL18, DL21: an event that is lost, broken or about something else strands nothing.
    #[tokio::test(start_paused = true)]
    async fn dl18_the_watchdog_finds_what_no_event_told() {
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
        look(storage.as_ref(), EVENTS, &wakers).await.unwrap();
        let left = storage.stored(EVENTS);
        assert_eq!(left.len(), 1);
        assert!(left[0].text.contains("mails"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_missing_trigger_queue_is_made() {
        let storage = Arc::new(FakeStorage::new(&[QUEUE]));
        let (_listener, wakers) = asleep(&storage);
        let port = Arc::clone(&storage) as Arc<dyn Storage>;
        let watch = tokio::spawn(watch(port, EVENTS.to_owned(), s(1), wakers));
        tokio::time::sleep(s(5)).await;
        storage.put(EVENTS, r#"{"queue":"orders"}"#);
        tokio::time::sleep(s(5)).await;
        assert!(storage.stored(EVENTS).is_empty());
        watch.abort();
    }
}
