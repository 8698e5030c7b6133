//! The listener that an application embeds.

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
use crate::rules::scaling::{Limits, MakeRule, ScalingRule};
use crate::shared::{Phase, Shared};
use crate::signal::Signal;
use crate::throttle::{ACCOUNT_RATE_PER_S, AccountLimit};
use crate::waker::Waker;

/// Processes one queue with one handler.
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
/// All waiting uses `tokio::time`, so that a paused clock controls it, and all random choices come
/// from the seed. Dropping the future of a run is like a crash: nothing more is acknowledged,
/// handlers are dropped, and received messages return when their visibility timeout ends.
pub struct QueueListener {
    config: ListenerConfig,
    storage: Arc<dyn Storage>,
    handler: Arc<dyn Handler>,
    seed: u64,
    observers: Observers,
    rule: Option<MakeRule>,
    account: AccountLimit,
    wake: Arc<Signal<u64>>,
    status: watch::Sender<PoolStatus>,
    done: Arc<Mutex<DoneCache>>,
}

impl QueueListener {
    /// Starts a builder of a listener on `queue`, with the default settings.
    pub fn builder(queue: &str, storage: Arc<dyn Storage>) -> ListenerBuilder {
        ListenerBuilder::new(queue, storage)
    }

    /// Creates a listener on `config.queue`, or returns the first invalid setting.
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
            rule: None,
            account: AccountLimit::new(ACCOUNT_RATE_PER_S),
            wake: Arc::new(Signal::new(0)),
            status: watch::channel(PoolStatus::default()).0,
            done: Arc::default(),
        })
    }

    /// Adds an observer; there may be several.
    #[must_use]
    pub fn observed_by(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observers.add(observer);
        self
    }

    /// Scales by this rule in place of the settings' policy (L30); `make` is called at the start of
    /// each run. The numbers stay within `tasks.min` and `tasks.max`.
    #[must_use]
    pub fn scaled_by<R: ScalingRule + 'static>(
        mut self,
        make: impl Fn(&Limits) -> R + Send + Sync + 'static,
    ) -> Self {
        self.rule = Some(Arc::new(move |limits| Box::new(make(limits))));
        self
    }

    /// Limits its requests by a limit that other listeners on the account share.
    #[must_use]
    pub fn within(mut self, account: AccountLimit) -> Self {
        self.account = account;
        self
    }

    /// Returns a handle that wakes this listener. Events that wake it are shown to the observers
    /// that were added before.
    pub fn waker(&self) -> Waker {
        Waker::new(
            &self.config.queue,
            Arc::clone(&self.wake),
            self.observers.clone(),
        )
    }

    /// Returns a receiver of the pool's status, now and at each change.
    pub fn status(&self) -> watch::Receiver<PoolStatus> {
        self.status.subscribe()
    }

    /// Returns the listener's settings.
    pub fn config(&self) -> &ListenerConfig {
        &self.config
    }

    /// Runs until `shutdown` resolves, then drains: makes no more gets and gives back messages that
    /// have not started. Running handlers may end within the grace time; the rest are cancelled and
    /// their messages given back. No storage failure ends the run, only a handler that cannot run.
    pub async fn run_until(
        &self,
        shutdown: impl Future<Output = ()> + Send,
    ) -> Result<Report, ListenerError> {
        self.start(Mode::Run, shutdown).await
    }

    /// Runs until the queue is empty and all received messages are settled. Does not wait for
    /// failed messages that are hidden until their retry.
    pub async fn once(&self) -> Result<Report, ListenerError> {
        self.once_until(std::future::pending()).await
    }

    /// Like [`once`](Self::once), but ends early when `shutdown` resolves.
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
            handler: self.observers.showing(Arc::clone(&self.handler)),
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
            rule: self.rule.clone(),
        };
        Controller::new(shared, wiring)
            .run(Box::pin(shutdown))
            .await
    }
}
