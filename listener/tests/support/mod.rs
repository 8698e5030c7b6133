//! Shared parts of the tests: an in-memory queue behind the port, faults, handlers, observers.

#![allow(
    dead_code,
    unused_imports,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::panic,
    reason = "shared by several test binaries, each of which uses a part; a panic is a failing test"
)]

pub mod fake;
pub mod faults;
pub mod handlers;
pub mod model;
mod port;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use smalt_listener::handler::Handler;
use smalt_listener::{Decision, ListenerConfig, Observer, Outcome, QueueListener};

pub use fake::FakeStorage;
pub use faults::{Fault, Op};

/// The queue of every test.
pub const QUEUE: &str = "orders";
/// The poison queue of [`QUEUE`].
pub const POISON: &str = "orders-poison";

pub const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Keeps every decision.
#[derive(Default)]
pub struct Log(Mutex<Vec<Decision>>);

impl Observer for Log {
    fn decided(&self, decision: &Decision) {
        self.0.lock().unwrap().push(decision.clone());
    }
}

impl Log {
    pub fn all(&self) -> Vec<Decision> {
        self.0.lock().unwrap().clone()
    }

    pub fn outcomes(&self) -> Vec<Outcome> {
        self.all().iter().map(|d| d.outcome).collect()
    }

    pub fn count(&self, outcome: Outcome) -> usize {
        self.outcomes().iter().filter(|o| **o == outcome).count()
    }
}

/// Returns settings that keep tests short: 10 s visibility, 4 slots.
pub fn config() -> ListenerConfig {
    ListenerConfig {
        visibility: s(10),
        slots: 4,
        retry: vec![s(1), s(5)],
        max_dequeue: 3,
        handler_timeout: s(60),
        grace: s(20),
        rate_per_s: 2000,
        call_timeout: s(5),
        ..ListenerConfig::new(QUEUE)
    }
}

/// Returns [`config`] with a change.
pub fn with(change: impl FnOnce(&mut ListenerConfig)) -> ListenerConfig {
    let mut config = config();
    change(&mut config);
    config
}

/// Returns an account whose [`QUEUE`] holds these messages.
pub fn holding(texts: &[&str]) -> Arc<FakeStorage> {
    let storage = Arc::new(FakeStorage::new(&[QUEUE]));
    for text in texts {
        storage.put(QUEUE, text);
    }
    storage
}

/// Creates a listener and its log.
pub fn listener(
    config: ListenerConfig,
    storage: &Arc<FakeStorage>,
    handler: impl Handler,
) -> (Arc<QueueListener>, Arc<Log>) {
    let log = Arc::new(Log::default());
    let storage = Arc::clone(storage) as Arc<dyn smalt_sleeve::port::Storage>;
    let listener = QueueListener::new(config, storage, Arc::new(handler), 7).unwrap();
    let observer = Arc::clone(&log) as Arc<dyn Observer>;
    (Arc::new(listener.observed_by(observer)), log)
}

/// Runs a listener for `time`, then lets it drain.
pub async fn run_for(listener: &QueueListener, time: Duration) -> smalt_listener::Report {
    listener.run_until(tokio::time::sleep(time)).await.unwrap()
}
