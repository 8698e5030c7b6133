//! The events of one process: wakes its listeners and calls its handlers of events (L33).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;

use super::publish::{Destination, Undelivered};
use crate::rules::trigger::Trigger;
use crate::waker::Waker;

type OnEvent = Arc<dyn Fn(&Trigger) + Send + Sync>;

/// The listeners of one process and its handlers of events. Clones share both.
#[derive(Clone)]
pub struct Relay {
    account: String,
    hosts: Arc<Mutex<Hosts>>,
}

#[derive(Default)]
struct Hosts {
    listeners: Vec<(Option<String>, Waker)>,
    on_event: Vec<(String, OnEvent)>,
}

impl Relay {
    /// Creates a relay for events about queues of `account`.
    pub fn new(account: &str) -> Self {
        Relay {
            account: account.to_owned(),
            hosts: Arc::default(),
        }
    }

    /// Returns the account of the queues.
    pub fn account(&self) -> &str {
        &self.account
    }

    fn hosts(&self) -> MutexGuard<'_, Hosts> {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a listener, in place of an earlier one on the same queue. `set` is the partitioned
    /// queue that its queue belongs to.
    pub fn add(&self, set: Option<&str>, waker: Waker) {
        let mut hosts = self.hosts();
        (hosts.listeners).retain(|(_, known)| known.queue() != waker.queue());
        hosts.listeners.push((set.map(str::to_owned), waker));
    }

    /// Calls `handler` for each event with this name, whatever its queue. It must return quickly.
    pub fn on(&self, event: &str, handler: impl Fn(&Trigger) + Send + Sync + 'static) {
        let on_event = (event.to_owned(), Arc::new(handler) as OnEvent);
        self.hosts().on_event.push(on_event);
    }

    /// Wakes the listeners and calls the handlers that the event is for; returns their number.
    pub fn relay(&self, event: &Trigger) -> usize {
        if !event.is_about(&self.account) {
            return 0;
        }
        let queue = event.queue();
        let (woken, called) = {
            let hosts = self.hosts();
            let is_for = |(set, waker): &&(Option<String>, Waker)| {
                let is_set = |set: &String| set.eq_ignore_ascii_case(&queue);
                set.as_ref().is_some_and(is_set) || waker.is_for(&queue)
            };
            let named = |(name, _): &&(String, OnEvent)| event.event.as_ref() == Some(name);
            let woken = hosts.listeners.iter().filter(is_for).cloned();
            let called = hosts.on_event.iter().filter(named).cloned();
            (woken.collect::<Vec<_>>(), called.collect::<Vec<_>>())
        };
        // Called without the lock, because observers and handlers may use the relay.
        woken.iter().for_each(|(_, waker)| waker.notice(event));
        called.iter().for_each(|(_, handler)| handler(event));
        woken.len() + called.len()
    }

    /// Wakes all listeners, because events may have been lost.
    pub fn wake_all(&self) {
        let hosts = self.hosts();
        hosts.listeners.iter().for_each(|(_, waker)| waker.wake());
    }
}

#[async_trait]
impl Destination for Relay {
    async fn deliver(&self, event: &Trigger, _delay: Duration) -> Result<u64, Undelivered> {
        Ok(self.relay(event) as u64)
    }
}
