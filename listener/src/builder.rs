//! How an application makes a listener: what it needs, then what it wants otherwise.

use std::sync::Arc;
use std::time::Duration;

use smalt_sleeve::port::Storage;

use crate::config::{ConfigError, Encoding, Idle, ListenerConfig, Policy, SentinelConfig, Tasks};
use crate::handler::Handler;
use crate::jitter;
use crate::listener::QueueListener;
use crate::observers::Observer;
use crate::throttle::AccountLimit;

/// A builder that has no handler yet.
#[derive(Clone, Copy, Debug)]
pub struct NoHandler;

/// Makes a [`QueueListener`]; see [`QueueListener::builder`]. It builds once it has a handler.
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

    /// What handles the messages.
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
    /// The listener. Fails when its settings make no sense.
    pub fn build(self) -> Result<QueueListener, ConfigError> {
        // Workers of different names spread out; a seed of one's own does so for equal names.
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
    /// Name of this worker in logs and request ids; each process should have its own.
    #[must_use]
    pub fn worker(self, name: impl Into<String>) -> Self {
        let name = name.into();
        self.settings(|c| c.worker = name)
    }

    /// How long a taken message is hidden from others at a time: whole seconds, 1 s to 7 d.
    #[must_use]
    pub fn visibility(self, visibility: Duration) -> Self {
        self.settings(|c| c.visibility = visibility)
    }

    /// Attempts at a message before the poison queue.
    #[must_use]
    pub fn max_dequeue(self, attempts: u32) -> Self {
        self.settings(|c| c.max_dequeue = attempts)
    }

    /// Delays before the second, third, ... attempt; the last serves all later ones.
    #[must_use]
    pub fn retry(self, delays: impl IntoIterator<Item = Duration>) -> Self {
        self.settings(|c| c.retry = delays.into_iter().collect())
    }

    /// Fewest and most dequeue tasks while there is work.
    #[must_use]
    pub fn tasks(self, min: u32, max: u32) -> Self {
        self.settings(|c| c.tasks = Tasks { min, max })
    }

    /// Messages that one task handles at once: 1 to 32.
    #[must_use]
    pub fn slots(self, slots: u32) -> Self {
        self.settings(|c| c.slots = slots)
    }

    /// How the number of tasks is chosen.
    #[must_use]
    pub fn policy(self, policy: Policy) -> Self {
        self.settings(|c| c.policy = policy)
    }

    /// First and longest interval of an idle task.
    #[must_use]
    pub fn idle(self, min: Duration, max: Duration) -> Self {
        self.settings(|c| c.idle = Idle { min, max })
    }

    /// Tasks that go on polling while the queue is empty; with 0 only the watchdog looks.
    #[must_use]
    pub fn idle_tasks(self, tasks: u32) -> Self {
        self.settings(|c| c.idle_tasks = tasks)
    }

    /// One idle poller for all listeners of the fleet on this queue, in place of
    /// [`idle_tasks`](Self::idle_tasks) in each.
    #[must_use]
    pub fn sentinel(self, sentinel: SentinelConfig) -> Self {
        self.settings(|c| c.sentinel = Some(sentinel))
    }

    /// The budget of requests that all listeners on the account share.
    #[must_use]
    pub fn within(mut self, account: AccountLimit) -> Self {
        self.account = Some(account);
        self
    }

    /// Most requests per second to the queue.
    #[must_use]
    pub fn rate_per_s(self, requests: u32) -> Self {
        self.settings(|c| c.rate_per_s = requests)
    }

    /// How bodies are written into messages.
    #[must_use]
    pub fn encoding(self, encoding: Encoding) -> Self {
        self.settings(|c| c.encoding = encoding)
    }

    /// Most time for one run of the handler.
    #[must_use]
    pub fn handler_timeout(self, timeout: Duration) -> Self {
        self.settings(|c| c.handler_timeout = timeout)
    }

    /// Most time for running handlers after the order to stop.
    #[must_use]
    pub fn grace(self, grace: Duration) -> Self {
        self.settings(|c| c.grace = grace)
    }

    /// Changes any other of the [settings](ListenerConfig).
    #[must_use]
    pub fn settings(mut self, change: impl FnOnce(&mut ListenerConfig)) -> Self {
        change(&mut self.config);
        self
    }

    /// Where all randomness comes from; the worker's name unless told.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Shows what happens to `observer`, too; there may be several.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observers.push(observer);
        self
    }
}
