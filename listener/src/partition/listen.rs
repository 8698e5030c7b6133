//! Listens to all queues of a set, with one listener per queue and one handler.

use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::{Id, JoinError, JoinSet};

use super::set::{PartitionError, Partitions};
use crate::config::{ConfigError, ListenerConfig};
use crate::handler::Handler;
use crate::listener::QueueListener;
use crate::observers::Observer;
use crate::report::{ListenerError, Report};

/// A listener to all queues of a set.
pub struct PartitionedListener {
    partitions: Arc<Partitions>,
    config: ListenerConfig,
    handler: Arc<dyn Handler>,
    seed: u64,
    observers: Vec<Arc<dyn Observer>>,
    change: Arc<Change>,
}

/// A change to the listener of each queue before it starts.
type Change = dyn Fn(QueueListener) -> QueueListener + Send + Sync;

/// Pause between attempts to read the map at the start.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// Invalid maps at the start that are read again; the next invalid one is an error.
const SENSELESS_MAX: u32 = 3;

type QueueEnd = (String, Result<Report, ListenerError>);

impl PartitionedListener {
    /// Creates a listener to the set. `config` applies to each queue; its name is replaced by the
    /// set's, and all queues share its poison queue.
    ///
    /// # Errors
    /// The configuration is invalid.
    pub fn new(
        partitions: Arc<Partitions>,
        mut config: ListenerConfig,
        handler: Arc<dyn Handler>,
        seed: u64,
    ) -> Result<Self, ConfigError> {
        partitions.settings().name.clone_into(&mut config.queue);
        config.poison_queue = Some(config.poison_queue());
        config.validate()?;
        Ok(PartitionedListener {
            partitions,
            config,
            handler,
            seed,
            observers: Vec::new(),
            change: Arc::new(|listener| listener),
        })
    }

    /// Changes the listener of each queue before it starts, for example adds its own observer or
    /// the account's limit. Take [`QueueListener::status`] and [`QueueListener::waker`] here as
    /// well.
    #[must_use]
    pub fn with_each(
        mut self,
        change: impl Fn(QueueListener) -> QueueListener + Send + Sync + 'static,
    ) -> Self {
        self.change = Arc::new(change);
        self
    }

    /// Adds an observer of every queue's listener; there may be several.
    #[must_use]
    pub fn observed_by(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observers.push(observer);
        self
    }

    /// Runs until `shutdown` resolves, then drains every queue's listener. Reads the map twice
    /// within the time that senders trust it: starts listeners for new queues, stops those of
    /// retired queues, and retires drained queues. Returns the reports by queue; a queue that was
    /// stopped and started again has several.
    ///
    /// # Errors
    /// The map cannot be followed, the settings are invalid, or the handler cannot run. Storage
    /// failures do not end the run.
    pub async fn run_until(
        &self,
        shutdown: impl Future<Output = ()> + Send,
    ) -> Result<Vec<(String, Report)>, PartitionError> {
        let mut shutdown = std::pin::pin!(shutdown);
        let mut map = tokio::select! {
            biased;
            () = &mut shutdown => return Ok(Vec::new()),
            map = self.first_map() => map?,
        };
        let mut crew = Crew::default();
        loop {
            let mut fresh = std::pin::pin!(self.fresh(map.max_age()));
            let fresh = loop {
                self.follow(&map.read(), &mut crew)?;
                tokio::select! {
                    biased;
                    () = &mut shutdown => break None,
                    Some(ended) = crew.tasks.join_next(), if !crew.tasks.is_empty() => {
                        crew.ended(ended);
                        if crew.failed.is_some() {
                            break None;
                        }
                    }
                    fresh = &mut fresh => break Some(fresh),
                }
            };
            match fresh {
                None => break,
                Some(Ok(fresh)) => map = fresh,
                Some(Err(error)) => tracing::warn!(
                    worker = %self.config.worker,
                    op = "partitions",
                    queue = %self.config.queue,
                    reason = %error,
                    "cannot read the map; the queues stay unchanged"
                ),
            }
        }
        for stop in crew.stops.values() {
            let _ = stop.send(true);
        }
        while let Some(ended) = crew.tasks.join_next().await {
            crew.ended(ended);
        }
        match crew.failed {
            None => Ok(crew.reports),
            Some(error) => Err(error.into()),
        }
    }

    /// Runs until all queues of the current map are empty, or `shutdown` resolves, each as
    /// [`QueueListener::once_until`] does. A queue whose listener fails has that error as its
    /// result.
    ///
    /// # Errors
    /// The map cannot be read or followed, or the settings are invalid.
    pub async fn once_until(
        &self,
        shutdown: impl Future<Output = ()> + Send,
    ) -> Result<Vec<(String, Result<Report, ListenerError>)>, PartitionError> {
        let queues = self.partitions.map().await?.read();
        let (stop, stopped) = watch::channel(false);
        let mut runs = Vec::new();
        for (number, queue) in (0_u64..).zip(&queues) {
            let listener = self.listener(queue, self.seed.wrapping_add(number))?;
            let mut stopped = stopped.clone();
            runs.push(async move {
                let stop = async move {
                    if stopped.wait_for(|stop| *stop).await.is_err() {
                        std::future::pending::<()>().await;
                    }
                };
                (queue.clone(), listener.once_until(stop).await)
            });
        }
        let mut all = std::pin::pin!(futures_util::future::join_all(runs));
        tokio::select! {
            biased;
            ended = &mut all => return Ok(ended),
            () = shutdown => {}
        }
        let _ = stop.send(true);
        Ok(all.await)
    }

    /// Reads the map at the start. Retries storage failures, and invalid maps a few times, because
    /// they may have been damaged in transit.
    async fn first_map(&self) -> Result<super::Map, PartitionError> {
        let mut senseless = 0;
        loop {
            let error = match self.partitions.map().await {
                Err(error @ (PartitionError::Storage(_) | PartitionError::Contended)) => error,
                Err(error @ PartitionError::Map(_)) if senseless < SENSELESS_MAX => {
                    senseless += 1;
                    error
                }
                map => return map,
            };
            tracing::warn!(
                worker = %self.config.worker,
                op = "partitions",
                queue = %self.config.queue,
                reason = %error,
                "cannot read the map of the queues; retrying"
            );
            tokio::time::sleep(ASK_AGAIN).await;
        }
    }

    /// Reads the map after half of the time that senders trust it.
    async fn fresh(&self, max_age: Duration) -> Result<super::Map, PartitionError> {
        tokio::time::sleep(max_age / 2).await;
        // No messages are received while the budget is spent, so the map does not matter.
        while self.partitions.is_spent() {
            tokio::time::sleep(max_age / 2).await;
        }
        let within = max_age.max(self.config.call_timeout);
        let asked = tokio::time::timeout(within, self.refresh()).await;
        asked.unwrap_or(Err(PartitionError::Contended))
    }

    async fn refresh(&self) -> Result<super::Map, PartitionError> {
        for queue in self.partitions.retire().await? {
            tracing::info!(
                worker = %self.config.worker,
                op = "partitions",
                queue = %queue,
                "the queue is drained and no longer read"
            );
        }
        self.partitions.map().await
    }

    /// Starts and stops listeners so that exactly these queues are read.
    fn follow(&self, queues: &[String], crew: &mut Crew) -> Result<(), ConfigError> {
        for (queue, stop) in &crew.stops {
            if !queues.contains(queue) {
                let _ = stop.send(true);
            }
        }
        for queue in queues {
            // A listener that is stopping is started again after it has ended.
            if !crew.stops.contains_key(queue) {
                let seed = self.seed.wrapping_add(crew.started);
                crew.start(queue, self.listener(queue, seed)?);
            }
        }
        Ok(())
    }

    fn listener(&self, queue: &str, seed: u64) -> Result<QueueListener, ConfigError> {
        let config = ListenerConfig {
            queue: queue.to_owned(),
            ..self.config.clone()
        };
        let storage = Arc::clone(self.partitions.storage());
        let listener = QueueListener::new(config, storage, Arc::clone(&self.handler), seed)?;
        let observers = self.observers.iter().map(Arc::clone);
        Ok((self.change)(
            observers.fold(listener, QueueListener::observed_by),
        ))
    }
}

#[derive(Default)]
struct Crew {
    tasks: JoinSet<QueueEnd>,
    stops: BTreeMap<String, watch::Sender<bool>>,
    names: HashMap<Id, String>,
    reports: Vec<(String, Report)>,
    /// The error that ended a listener; the others share its handler.
    failed: Option<ListenerError>,
    started: u64,
}

impl Crew {
    fn start(&mut self, queue: &str, listener: QueueListener) {
        let (stop, mut stopped) = watch::channel(false);
        let name = queue.to_owned();
        self.stops.insert(name.clone(), stop);
        self.started += 1;
        let task = self.tasks.spawn(async move {
            let shutdown = async move {
                // A closed channel means that the set's listener was dropped.
                let _ = stopped.wait_for(|stopped| *stopped).await;
            };
            let ended = listener.run_until(shutdown).await;
            (name, ended)
        });
        self.names.insert(task.id(), queue.to_owned());
    }

    fn ended(&mut self, ended: Result<QueueEnd, JoinError>) {
        let (queue, ended) = match ended {
            Ok(ended) => ended,
            Err(error) => {
                // A listener catches panics in its tasks and does not panic itself; if it did, the
                // queue would be started again.
                if let Some(queue) = self.names.remove(&error.id()) {
                    self.stops.remove(&queue);
                }
                return;
            }
        };
        self.stops.remove(&queue);
        match ended {
            Ok(report) => self.reports.push((queue, report)),
            Err(error) => {
                tracing::error!(
                    op = "partitions",
                    queue = %queue,
                    reason = %error,
                    "the listener of a partition failed"
                );
                self.failed.get_or_insert(error);
            }
        }
    }
}
