//! Who sends requests: one life of a worker, or the owner of the data.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

/// Who sends: one life of a worker, or the owner of the data.
#[derive(Debug)]
pub struct Actor {
    /// `sweeper-0.1` is the second life of the first sweeper.
    pub name: String,
    /// Faults are planned for workers; the owner's own requests always go through.
    pub is_worker: bool,
    /// How much its clock is ahead of the service's, in seconds; behind where negative.
    pub skew_s: i32,
    crash: Notify,
    stop: Notify,
    dead: AtomicBool,
    asleep_until: Mutex<Option<Instant>>,
}

impl Actor {
    /// A worker's life.
    pub fn worker(name: impl Into<String>) -> Arc<Self> {
        Self::new(name.into(), true, 0)
    }

    /// A worker's life with a clock that is so many seconds ahead.
    pub fn skewed(name: impl Into<String>, skew_s: i32) -> Arc<Self> {
        Self::new(name.into(), true, skew_s)
    }

    /// The owner of the data, whose requests nothing happens to.
    pub fn owner() -> Arc<Self> {
        Self::new("owner".to_owned(), false, 0)
    }

    /// Somebody else who takes messages, and forgets them.
    pub fn stranger() -> Arc<Self> {
        Self::new("stranger".to_owned(), false, 0)
    }

    fn new(name: String, is_worker: bool, skew_s: i32) -> Arc<Self> {
        Arc::new(Actor {
            name,
            is_worker,
            skew_s,
            crash: Notify::new(),
            stop: Notify::new(),
            dead: AtomicBool::new(false),
            asleep_until: Mutex::default(),
        })
    }

    /// Waits for the planned death of this life.
    pub async fn crashed(&self) {
        self.crash.notified().await;
    }

    pub(super) fn dies(&self) {
        self.ended();
        self.crash.notify_one();
    }

    pub(super) fn is_told_to_stop(&self) {
        self.stop.notify_one();
    }

    /// Waits until it is planned that this life is asked to stop.
    pub async fn told_to_stop(&self) {
        self.stop.notified().await;
    }

    /// This life is over: nothing that is planned for it happens any more.
    pub fn ended(&self) {
        self.dead.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_dead(&self) -> bool {
        self.dead.load(Ordering::Relaxed)
    }

    pub(super) fn sleeps_for(&self, seconds: u16) {
        let until = Instant::now() + Duration::from_secs(u64::from(seconds));
        *self.asleep() = Some(until);
    }

    fn asleep(&self) -> MutexGuard<'_, Option<Instant>> {
        self.asleep_until
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Until when it is asleep, if it is.
    fn asleep_until(&self) -> Option<Instant> {
        (*self.asleep()).filter(|until| *until > Instant::now())
    }

    /// Whether nothing reaches it now.
    pub(super) fn is_asleep(&self) -> bool {
        self.asleep_until().is_some()
    }

    /// Waits until it is awake; whether it was not.
    pub(super) async fn awake(&self) -> bool {
        let mut waited = false;
        loop {
            let Some(until) = self.asleep_until() else {
                return waited;
            };
            waited = true;
            tokio::time::sleep_until(until).await;
        }
    }
}
