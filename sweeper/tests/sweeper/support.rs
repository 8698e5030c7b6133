//! Worlds and workers for the tests.

use std::cell::RefCell;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use smalt_sweeper::decide::Policy;
use smalt_sweeper::{
    Accounts, DeadConfig, Finished, StateBackend, Sweeper, SweeperConfig, SweptContainer,
};

use crate::fake::{Account, Fault, World};

/// Times before and after the start of the worlds (10:00).
pub(crate) const PAST: &str = "2026-11-21T09:00:00Z";
pub(crate) const SOON: &str = "2026-11-21T10:05:00Z";
pub(crate) const FUTURE: &str = "2027-01-01T00:00:00Z";

pub(crate) const DUE: (&str, &str) = ("TimeToLive", PAST);

/// Returns a worker's configuration: containers `events` and `logs`, dead blobs to account
/// `archive`.
pub(crate) fn config(worker: &str) -> SweeperConfig {
    let swept = |container: &str| SweptContainer {
        account: "default".into(),
        container: container.into(),
        prefix: String::new(),
    };
    SweeperConfig {
        worker_id: Some(worker.into()),
        containers: vec![swept("events"), swept("logs")],
        page_size: 3,
        dead: DeadConfig {
            account: Some("archive".into()),
            ..DeadConfig::default()
        },
        policy: Policy {
            allow: vec!["dbc".into()],
            ..Policy::default()
        },
        ..SweeperConfig::default()
    }
}

pub(crate) fn etag_config(worker: &str) -> SweeperConfig {
    SweeperConfig {
        backend: StateBackend::Etag,
        ..config(worker)
    }
}

/// Returns the configuration of the worker `one` with a change.
pub(crate) fn changed(change: impl FnOnce(&mut SweeperConfig)) -> SweeperConfig {
    let mut config = config("one");
    change(&mut config);
    config
}

/// Returns the configuration of a worker that sweeps the document's containers.
pub(crate) fn by_document(worker: &str) -> SweeperConfig {
    SweeperConfig {
        containers: Vec::new(),
        ..config(worker)
    }
}

pub(crate) fn worker(
    world: &Arc<World>,
    config: SweeperConfig,
    faults: Vec<Fault>,
    seed: u64,
) -> Sweeper {
    let (source, archive) = Account::pair(world, faults, seed);
    let accounts = Accounts::new()
        .with("default", source)
        .with("archive", archive);
    Sweeper::new(config, accounts, seed).expect("the configuration works")
}

pub(crate) async fn sweep(world: &Arc<World>) -> Finished {
    once(world, Vec::new()).await
}

pub(crate) async fn once(world: &Arc<World>, faults: Vec<Fault>) -> Finished {
    once_with(world, config("one"), faults).await
}

pub(crate) async fn once_with(
    world: &Arc<World>,
    config: SweeperConfig,
    faults: Vec<Fault>,
) -> Finished {
    let finished = worker(world, config, faults, 1).once().await;
    world.assert_safe();
    finished
}

/// Runs a worker until one of its calls never returns, then drops it.
pub(crate) async fn until_death(
    world: &Arc<World>,
    config: SweeperConfig,
    faults: Vec<Fault>,
    seed: u64,
) {
    let sweeper = worker(world, config, faults, seed);
    tokio::select! {
        biased;
        () = world.died.notified() => {}
        _ = sweeper.once() => {}
    }
}

/// Runs a worker that dies at a fault.
pub(crate) async fn dead(world: &Arc<World>, fault: Fault) {
    until_death(world, config("dead"), vec![fault], 3).await;
}

pub(crate) fn paused<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime")
        .block_on(future)
}

pub(crate) async fn sleep(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

thread_local! {
    static LOG: RefCell<Option<Vec<u8>>> = const { RefCell::new(None) };
}

/// A writer for the log of a test's own thread.
struct Lines;

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        LOG.with_borrow_mut(|log| log.iter_mut().for_each(|log| log.extend_from_slice(bytes)));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Returns what `work` logs at info, as JSON lines. The subscriber is global, because a subscriber
/// of one thread misses events that another thread reaches first.
pub(crate) fn logged<T>(work: impl FnOnce() -> T) -> (T, String) {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let subscriber = tracing_subscriber::fmt().json().flatten_event(true);
        let subscriber = subscriber.with_max_level(tracing::Level::INFO);
        let subscriber = subscriber.with_writer(|| Lines).finish();
        tracing::subscriber::set_global_default(subscriber).expect("it is the only one");
        tracing::callsite::rebuild_interest_cache();
    });
    LOG.set(Some(Vec::new()));
    let done = work();
    let text = LOG.take().unwrap_or_default();
    (done, String::from_utf8(text).expect("lines are text"))
}
