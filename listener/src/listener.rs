//! The listener: what an application embeds.

use std::future::Future;
use std::sync::{Arc, Mutex};

use smalt_sleeve::port::Storage;
use tokio::sync::{Semaphore, mpsc, watch};

use crate::builder::ListenerBuilder;
use crate::calls::Calls;
use crate::config::{ConfigError, ListenerConfig};
use crate::controller::{Controller, Mode, Wiring};
use crate::handler::Handler;
use crate::observers::{Observer, Observers};
use crate::payload::PayloadStore;
use crate::report::{ListenerError, PoolStatus, Report};
use crate::rules::done::DoneCache;
use crate::shared::{Phase, Shared};
use crate::signal::Signal;
use crate::throttle::{ACCOUNT_RATE_PER_S, AccountLimit};

/// Wakes an idle listener: a trigger. It is sticky: a wake-up during a get or just before a sleep
/// cuts that sleep short, so none is lost (DL18). Cheap, callable from anywhere, as often as
/// wished.
#[derive(Clone, Debug)]
pub struct Waker {
    queue: String,
    count: Arc<Signal<u64>>,
}

impl Waker {
    /// Tells the listener that a message has been put. Call it after the put, not before (DL19).
    pub fn wake(&self) {
        self.count.count();
    }

    /// The queue that it listens to.
    pub fn queue(&self) -> &str {
        &self.queue
    }

    /// Wakes the listener if it listens to `queue`, compared as Azure compares queue names (L32,
    /// DL21); says whether it does.
    pub fn wake_for(&self, queue: &str) -> bool {
        let ours = self.queue.eq_ignore_ascii_case(queue);
        if ours {
            self.wake();
        }
        ours
    }
}

/// Works one queue off with one handler.
///
/// ```no_run
/// # use smalt_sleeve::port::Storage;
/// # use std::error::Error;
/// # async fn example(storage: std::sync::Arc<dyn Storage>) -> Result<(), Box<dyn Error>> {
/// use smalt_listener::handler::{Message, Verdict, json, typed_function};
/// use smalt_listener::QueueListener;
///
/// #[derive(Clone, serde::Deserialize)]
/// struct Order {
///     id: u64,
/// }
///
/// let listener = QueueListener::builder("orders", storage)
///     .tasks(1, 20)
///     .handler(json(typed_function(|order: Message<Order>, _ctx| async move {
///         println!("order {}", order.body.id);
///         Verdict::Ok
///     })))
///     .build()?;
/// let report = listener.run_until(async { let _ = tokio::signal::ctrl_c().await; }).await?;
/// println!("{} messages received", report.received);
/// # Ok(())
/// # }
/// ```
///
/// All waiting goes through `tokio::time` (a paused clock moves it) and all randomness comes from
/// the seed. Dropping the future of a run is like a crash: nothing is acknowledged any more,
/// handlers are dropped, and what was taken comes back when its visibility lapses.
pub struct QueueListener {
    config: ListenerConfig,
    storage: Arc<dyn Storage>,
    handler: Arc<dyn Handler>,
    seed: u64,
    observers: Observers,
    account: AccountLimit,
    wake: Arc<Signal<u64>>,
    status: watch::Sender<PoolStatus>,
    done: Arc<Mutex<DoneCache>>,
}

impl QueueListener {
    /// Begins a listener on `queue`, with the default settings.
    pub fn builder(queue: &str, storage: Arc<dyn Storage>) -> ListenerBuilder {
        ListenerBuilder::new(queue, storage)
    }

    /// A listener on `config.queue`. Fails when the configuration makes no sense.
    pub fn new(
        config: ListenerConfig,
        storage: Arc<dyn Storage>,
        handler: Arc<dyn Handler>,
        seed: u64,
    ) -> Result<Self, ConfigError> {
        config.validate()?;
        Ok(QueueListener {
            config,
            storage,
            handler,
            seed,
            observers: Observers::default(),
            account: AccountLimit::new(ACCOUNT_RATE_PER_S),
            wake: Arc::new(Signal::new(0)),
            status: watch::channel(PoolStatus::default()).0,
            done: Arc::default(),
        })
    }

    /// Shows what happens to `observer`, too; there may be several.
    #[must_use]
    pub fn observed_by(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observers.add(observer);
        self
    }

    /// Draws its requests from a budget that it shares with other listeners on the account.
    #[must_use]
    pub fn within(mut self, account: AccountLimit) -> Self {
        self.account = account;
        self
    }

    /// A handle that wakes this listener.
    pub fn waker(&self) -> Waker {
        Waker {
            queue: self.config.queue.clone(),
            count: Arc::clone(&self.wake),
        }
    }

    /// A look at the pool, now and at each change.
    pub fn status(&self) -> watch::Receiver<PoolStatus> {
        self.status.subscribe()
    }

    /// The settings that this listener was made with.
    pub fn config(&self) -> &ListenerConfig {
        &self.config
    }

    /// Works until `shutdown` resolves, then drains: no more gets, what has not started is given
    /// back, what runs may end within the grace time, what is left then is cancelled and given
    /// back. No failure of storage ends it, only a handler that cannot run.
    pub async fn run_until(
        &self,
        shutdown: impl Future<Output = ()> + Send,
    ) -> Result<Report, ListenerError> {
        self.start(Mode::Run, shutdown).await
    }

    /// Works until the queue is empty and all that was taken is settled. A message that failed and
    /// waits for its retry is not waited for.
    pub async fn once(&self) -> Result<Report, ListenerError> {
        self.once_until(std::future::pending()).await
    }

    /// [`once`](Self::once), but ends early when `shutdown` resolves.
    pub async fn once_until(
        &self,
        shutdown: impl Future<Output = ()> + Send,
    ) -> Result<Report, ListenerError> {
        self.start(Mode::Once, shutdown).await
    }

    fn payloads(&self) -> Option<Arc<PayloadStore>> {
        let offload = self.config.offload.clone()?;
        let store = PayloadStore::new(Arc::clone(&self.storage), offload, &self.config.queue);
        let store = store.within(self.account.clone());
        Some(Arc::new(store.observed_by(self.observers.clone())))
    }

    async fn start(
        &self,
        mode: Mode,
        shutdown: impl Future<Output = ()> + Send,
    ) -> Result<Report, ListenerError> {
        let (events, heard) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared {
            config: self.config.clone(),
            calls: Calls::new(
                &self.config,
                Arc::clone(&self.storage),
                self.account.clone(),
                self.observers.clone(),
            ),
            room: Arc::new(Semaphore::new(self.config.in_hand_max())),
            payloads: self.payloads(),
            handler: Arc::clone(&self.handler),
            phase: Arc::new(Signal::new(Phase::Running)),
            wake: Arc::clone(&self.wake),
            work: Arc::new(Signal::new(0)),
            events,
            observers: self.observers.clone(),
            done: Arc::clone(&self.done),
        });
        let wiring = Wiring {
            events: heard,
            status: self.status.clone(),
            mode,
            seed: self.seed,
        };
        Controller::new(shared, wiring)
            .run(Box::pin(shutdown))
            .await
    }
}
