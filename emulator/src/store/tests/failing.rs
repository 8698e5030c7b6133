//! Failing disks and engines: every commit is answered, reads continue, a restart finds everything.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

use bytes::Bytes;
use smalt_protocol::StorageError;

use super::fault_disk::{Call, Faults};
use super::{clock, dump, durable_on, get, get_payload, pattern, put, put_payload};
use crate::store::commit::Commit;
use crate::store::committer::{Committer, Line, Next, Request};
use crate::store::config::Mode;
use crate::store::engine::{Engine, MemoryEngine};
use crate::store::extents::Extents;
use crate::store::home::Home;
use crate::store::shared::Shared;
use crate::store::view::{Visit, Writes};
use crate::store::{Stamp, StoreError, StoreResult, Transaction, View, release};

/// An engine that panics while it writes, as sled does when its own invariants break.
#[derive(Default)]
struct Panicking {
    map: MemoryEngine,
    panics: Arc<AtomicBool>,
}

impl Panicking {
    fn perhaps(&self) {
        assert!(!self.panics.load(Ordering::Acquire), "on purpose");
    }
}

impl Engine for Panicking {
    fn get(&self, key: &[u8]) -> StoreResult<Option<Bytes>> {
        self.map.get(key)
    }

    fn scan(&self, from: &[u8], to: &[u8], visit: &mut Visit<'_>) -> StoreResult<()> {
        self.map.scan(from, to, visit)
    }

    fn apply(&self, writes: &Writes) -> StoreResult<()> {
        self.perhaps();
        self.map.apply(writes)
    }

    fn sync(&self) -> StoreResult<()> {
        self.perhaps();
        self.map.sync()
    }

    fn disk_bytes(&self) -> u64 {
        0
    }

    fn record(&self, _: &Writes) -> StoreResult<()> {
        self.perhaps();
        Ok(())
    }
}

/// Returns the state of a store on such an engine, and what makes it panic.
fn panicking() -> (Arc<AtomicBool>, Arc<Shared>) {
    let engine = Panicking::default();
    let panics = Arc::clone(&engine.panics);
    let extents = Extents::in_memory(u64::MAX);
    let (home, engine) = (Home::Memory, Box::new(engine));
    let shared = Shared::new(Mode::Durable, clock(), home, engine, extents);
    (panics, Arc::new(shared))
}

/// Sends a commit to the committer's thread and waits for its answer, which must come.
fn commit(requests: &mpsc::Sender<Request>, value: &'static str) -> Result<(), StorageError> {
    let (sender, answer) = mpsc::sync_channel(1);
    let job = move |tx: &mut Transaction<'_>, _: &Stamp| {
        tx.put(b"\x20key".to_vec(), value);
        Ok(())
    };
    let work = Commit::new(None, job, move |result| sender.send(result).unwrap());
    requests.send(Request::Commit(Box::new(work))).unwrap();
    answer.recv().unwrap()
}

/// The committer's thread survives a panicking engine: every caller gets an answer instead of a
/// closed channel.
#[test]
fn panicking_engine_fails_its_commits_only() {
    let (panics, shared) = panicking();
    let committer = Committer::new(Arc::clone(&shared)).unwrap();
    let (requests, waiting) = mpsc::channel();
    let thread = std::thread::spawn(move || Line::new(committer, waiting).serve());
    commit(&requests, "old").unwrap();
    panics.store(true, Ordering::Release);
    // The outcome of the first is unknown; the others have not started.
    for status in [500, 503, 503] {
        assert_eq!(commit(&requests, "new").unwrap_err().status(), status);
    }
    panics.store(false, Ordering::Release);
    // The state on disk is unknown, so the store refuses writes, even if they could succeed.
    commit(&requests, "newer").unwrap_err();
    assert!(matches!(shared.writable(), Err(StoreError::ReadOnly(_))));
    let seen = shared.read(|view| view.get(b"\x20key")).unwrap();
    assert_eq!(seen.as_deref(), Some(&b"old"[..]));
    let ask = |request: fn(mpsc::SyncSender<StoreResult<()>>) -> Request| {
        let (sender, answer) = mpsc::sync_channel(1);
        requests.send(request(sender)).unwrap();
        answer.recv().unwrap()
    };
    ask(|answer| Request::Replace(Box::new(Next::Empty), answer)).unwrap_err();
    ask(Request::Close).unwrap_err();
    thread.join().unwrap();
}

/// The same for the last sync, during the close.
#[test]
fn engine_panic_during_close_is_returned_as_an_error() {
    let (panics, shared) = panicking();
    let committer = Committer::new(shared).unwrap();
    let (requests, waiting) = mpsc::channel();
    let thread = std::thread::spawn(move || Line::new(committer, waiting).serve());
    commit(&requests, "old").unwrap();
    panics.store(true, Ordering::Release);
    let (sender, answer) = mpsc::sync_channel(1);
    requests.send(Request::Close(sender)).unwrap();
    answer.recv().unwrap().unwrap_err();
    thread.join().unwrap();
}

/// A payload that cannot be written, or whose file cannot be created, refuses its upload; one that
/// cannot be read or removed affects no other.
#[tokio::test]
async fn failing_disk_calls_fail_their_own_operation_only() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Arc::new(Faults::default());
    let store = durable_on(dir.path(), &disk);
    let first = put_payload(&store, &pattern(1, 200_000)).await.unwrap();
    for (call, ending) in [(Call::Write, ".seg"), (Call::Open, "00000003.seg")] {
        disk.fail_calls(Some((call, ending)));
        put_payload(&store, &pattern(2, 200_000)).await.unwrap_err();
        put(&store, b"\x20key", b"value").await.unwrap();
        assert_eq!(get_payload(&store, first).unwrap(), pattern(1, 200_000));
        disk.fail_calls(None);
    }
    disk.fail_calls(Some((Call::Read, ".seg")));
    assert!(matches!(get_payload(&store, first), Err(StoreError::Io(_))));
    put(&store, b"\x20key", b"newer").await.unwrap();
    disk.fail_calls(None);
    assert_eq!(get_payload(&store, first).unwrap(), pattern(1, 200_000));

    store
        .commit(move |tx, _| Ok(release(tx, first)?))
        .await
        .unwrap();
    disk.fail_calls(Some((Call::Remove, ".seg")));
    store.maintain(10).unwrap_err();
    disk.fail_calls(None);
    let second = put_payload(&store, &pattern(3, 200_000)).await.unwrap();
    store.close().unwrap();
    // A later start finds the segment that could not be removed.
    let store = durable_on(dir.path(), &disk);
    while store.maintain(3).unwrap().more {}
    assert_eq!(store.stats().segments, 1);
    assert_eq!(get_payload(&store, second).unwrap(), pattern(3, 200_000));
    assert_eq!(get(&store, b"\x20key"), Some(b"newer".to_vec()));
}

/// A new segment needs a durable name as well as durable bytes.
#[tokio::test]
async fn directory_sync_failure_makes_the_store_read_only() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Arc::new(Faults::default());
    let store = durable_on(dir.path(), &disk);
    put(&store, b"\x20key", b"old").await.unwrap();
    let before = dump(&store);
    disk.fail_syncs_of(Some("extents"));
    put_payload(&store, &pattern(1, 20_000)).await.unwrap_err();
    disk.fail_syncs_of(None);
    put(&store, b"\x20key", b"new").await.unwrap_err();
    assert_eq!(dump(&store), before);
    drop(store);
    let store = durable_on(dir.path(), &disk);
    put(&store, b"\x20key", b"new").await.unwrap();
}
