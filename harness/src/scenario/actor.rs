//! The sender of a request: one life of a worker, or the owner of the data.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use smalt_protocol::Timestamp;
use tokio::sync::Notify;
use tokio::time::Instant;

/// The sender of a request: one life of a worker, or the owner of the data.
#[derive(Debug)]
pub struct Actor {
    /// Name; `sweeper-0.1` is the second life of the first sweeper.
    pub name: String,
    /// Whether faults may be planned for its requests; requests of the owner always go through.
    pub is_worker: bool,
    /// Seconds by which its clock is ahead of the service's; negative when it is behind.
    pub skew_s: i32,
    /// When its clock begins to drift, and how long it takes until the error is the opposite;
    /// `None` for a constant error.
    pub drift: Option<(Timestamp, Duration)>,
    crash: Notify,
    stop: Notify,
    dead: AtomicBool,
    asleep_until: Mutex<Option<Instant>>,
}

impl Actor {
    /// Creates one life of a worker whose clock agrees with the service's.
    pub fn worker(name: impl Into<String>) -> Arc<Self> {
        Self::new(name.into(), true, 0, None)
    }

    /// Creates one life of a worker whose clock is `skew_s` seconds ahead and then drifts, if
    /// `drift` says so.
    pub fn drifting(
        name: impl Into<String>,
        skew_s: i32,
        drift: Option<(Timestamp, Duration)>,
    ) -> Arc<Self> {
        Self::new(name.into(), true, skew_s, drift)
    }

    /// Creates the owner of the data, whose requests never meet a fault.
    pub fn owner() -> Arc<Self> {
        Self::new("owner".to_owned(), false, 0, None)
    }

    /// Creates a client that takes messages and never returns to them.
    pub fn stranger() -> Arc<Self> {
        Self::new("stranger".to_owned(), false, 0, None)
    }

    /// Creates a worker whose requests never meet a fault.
    pub fn bystander(name: &str) -> Arc<Self> {
        Self::new(name.to_owned(), false, 0, None)
    }

    fn new(
        name: String,
        is_worker: bool,
        skew_s: i32,
        drift: Option<(Timestamp, Duration)>,
    ) -> Arc<Self> {
        Arc::new(Actor {
            name,
            is_worker,
            skew_s,
            drift,
            crash: Notify::new(),
            stop: Notify::new(),
            dead: AtomicBool::new(false),
            asleep_until: Mutex::default(),
        })
    }

    /// Waits until a planned crash ends this life.
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

    /// Waits until a planned fault asks this life to stop.
    pub async fn told_to_stop(&self) {
        self.stop.notified().await;
    }

    /// Marks this life as over: none of its planned faults happens from here on.
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

    /// Returns when it resumes, if it is paused.
    fn asleep_until(&self) -> Option<Instant> {
        (*self.asleep()).filter(|until| *until > Instant::now())
    }

    /// Whether it is paused, so that nothing reaches it.
    pub(super) fn is_asleep(&self) -> bool {
        self.asleep_until().is_some()
    }

    /// Waits until it is no longer paused. Returns whether it was paused.
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
