//! The builder of a listener: required parts first, then optional settings.

use std::sync::Arc;
use std::time::Duration;

use smalt_sleeve::port::Storage;

use crate::config::{ConfigError, Encoding, Idle, ListenerConfig, Policy, SentinelConfig, Tasks};
use crate::handler::Handler;
use crate::jitter;
use crate::listener::QueueListener;
use crate::observers::Observer;
use crate::throttle::AccountLimit;

/// Type of a builder without a handler.
#[derive(Clone, Copy, Debug)]
pub struct NoHandler;

/// Builds a [`QueueListener`]; see [`QueueListener::builder`]. It can build once it has a handler.
pub struct ListenerBuilder<H = NoHandler> {
    config: ListenerConfig,
    storage: Arc<dyn Storage>,
    seed: Option<u64>,
    observers: Vec<Arc<dyn Observer>>,
    account: Option<AccountLimit>,
    handler: H,
}

impl ListenerBuilder {
    pub(crate) fn new(queue: &str, storage: Arc<dyn Storage>) -> Self {
        ListenerBuilder {
            config: ListenerConfig::new(queue),
            storage,
            seed: None,
            observers: Vec::new(),
            account: None,
            handler: NoHandler,
        }
    }

    /// Sets the handler of the messages.
    pub fn handler(self, handler: impl Handler) -> ListenerBuilder<Arc<dyn Handler>> {
        ListenerBuilder {
            config: self.config,
            storage: self.storage,
            seed: self.seed,
            observers: self.observers,
            account: self.account,
            handler: Arc::new(handler),
        }
    }
}

impl ListenerBuilder<Arc<dyn Handler>> {
    /// Builds the listener, or returns the first invalid setting.
    pub fn build(self) -> Result<QueueListener, ConfigError> {
        // By default, workers with different names get different seeds; workers with equal names
        // need their own.
        let seed = self
            .seed
            .unwrap_or_else(|| jitter::of_name(&self.config.worker));
        let listener = QueueListener::new(self.config, self.storage, self.handler, seed)?;
        let listener = match self.account {
            Some(account) => listener.within(account),
            None => listener,
        };
        let observers = self.observers.into_iter();
        Ok(observers.fold(listener, QueueListener::observed_by))
    }
}

impl<H> ListenerBuilder<H> {
    /// Sets the name of this worker in logs and request ids; each process should have its own.
    #[must_use]
    pub fn worker(self, name: impl Into<String>) -> Self {
        let name = name.into();
        self.settings(|c| c.worker = name)
    }

    /// Sets the visibility timeout of received messages: whole seconds, 1 s to 7 d.
    #[must_use]
    pub fn visibility(self, visibility: Duration) -> Self {
        self.settings(|c| c.visibility = visibility)
    }

    /// Sets the number of attempts before a message goes to the poison queue.
    #[must_use]
    pub fn max_dequeue(self, attempts: u32) -> Self {
        self.settings(|c| c.max_dequeue = attempts)
    }

    /// Sets the delays before the second and later attempts; the last one repeats.
    #[must_use]
    pub fn retry(self, delays: impl IntoIterator<Item = Duration>) -> Self {
        self.settings(|c| c.retry = delays.into_iter().collect())
    }

    /// Sets the smallest number of dequeue tasks while there is work, and the largest.
    #[must_use]
    pub fn tasks(self, min: u32, max: u32) -> Self {
        self.settings(|c| c.tasks = Tasks { min, max })
    }

    /// Sets how many messages one task handles at once: 1 to 32.
    #[must_use]
    pub fn slots(self, slots: u32) -> Self {
        self.settings(|c| c.slots = slots)
    }

    /// Sets the policy for the number of tasks.
    #[must_use]
    pub fn policy(self, policy: Policy) -> Self {
        self.settings(|c| c.policy = policy)
    }

    /// Sets the first and the longest interval of an idle task.
    #[must_use]
    pub fn idle(self, min: Duration, max: Duration) -> Self {
        self.settings(|c| c.idle = Idle { min, max })
    }

    /// Sets how many tasks poll while the queue is empty; with 0 only the watchdog looks.
    #[must_use]
    pub fn idle_tasks(self, tasks: u32) -> Self {
        self.settings(|c| c.idle_tasks = tasks)
    }

    /// Uses one idle poller for all listeners of the fleet on this queue, in place of
    /// [`idle_tasks`](Self::idle_tasks) in each.
    #[must_use]
    pub fn sentinel(self, sentinel: SentinelConfig) -> Self {
        self.settings(|c| c.sentinel = Some(sentinel))
    }

    /// Sets the limit on requests that all listeners on the account share.
    #[must_use]
    pub fn within(mut self, account: AccountLimit) -> Self {
        self.account = Some(account);
        self
    }

    /// Sets the largest number of requests per second to the queue.
    #[must_use]
    pub fn rate_per_s(self, requests: u32) -> Self {
        self.settings(|c| c.rate_per_s = requests)
    }

    /// Sets the encoding of bodies in messages.
    #[must_use]
    pub fn encoding(self, encoding: Encoding) -> Self {
        self.settings(|c| c.encoding = encoding)
    }

    /// Sets the longest time of one run of the handler.
    #[must_use]
    pub fn handler_timeout(self, timeout: Duration) -> Self {
        self.settings(|c| c.handler_timeout = timeout)
    }

    /// Sets the longest time that running handlers get to finish after a stop.
    #[must_use]
    pub fn grace(self, grace: Duration) -> Self {
        self.settings(|c| c.grace = grace)
    }

    /// Changes any other [setting](ListenerConfig).
    #[must_use]
    pub fn settings(mut self, change: impl FnOnce(&mut ListenerConfig)) -> Self {
        change(&mut self.config);
        self
    }

    /// Sets the seed of all random choices; by default it derives from the worker's name.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Adds an observer; there may be several.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observers.push(observer);
        self
    }
}
