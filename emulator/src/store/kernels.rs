//! The store's concurrent parts under the model checker shuttle: the queue of commits and the
//! committer's two threads, the overlay between readers, committer and engine, the close, the
//! segments of payloads. It is the production code with other locks.
//!
//! Each property has a wrong variant, made of the same parts in another order, which the checker
//! must find: a test that cannot fail proves nothing. Run them with `cargo test -p smalt --features
//! shuttle --lib kernels`.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod segments;

use std::panic::catch_unwind;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt as _;
use shuttle::future::block_on;
use shuttle::{check_pct, check_random, thread};
use smalt_protocol::StorageError;

use super::commit::{Commit, Work, answer_all};
use super::committer::{Committer, Line, Request};
use super::engine::{Engine, MemoryEngine};
use super::extents::Extents;
use super::home::Home;
use super::shared::Shared;
use super::sync::mpsc;
use super::testing::clock;
use super::{Mode, Stamp, Store, StoreConfig, StoreError, StoreResult, Transaction, View, Visit};
use super::{Writes, keys};

/// Schedules of each kind for a property; a wrong variant is found within some tens.
const SCHEDULES: usize = 1_000;
/// Priority changes in a schedule of the kind that searches for rare orders.
const PCT_DEPTH: usize = 3;
const KEY: &[u8] = &[0x20, 1];
const OTHER: &[u8] = &[0x20, 2];

/// Checks that the property holds in all tried schedules.
fn holds(property: fn()) {
    check_random(property, SCHEDULES);
    check_pct(property, SCHEDULES, PCT_DEPTH);
}

/// Checks that the checker finds a schedule in which the wrong variant fails.
fn is_found(wrong: fn()) {
    let told = catch_unwind(|| holds(wrong));
    assert!(told.is_err(), "the wrong variant was not found");
}

fn store() -> Store {
    Store::open(StoreConfig::memory(clock())).unwrap()
}

fn number(view: &dyn View, key: &[u8]) -> StoreResult<u8> {
    Ok(view.get(key)?.map_or(0, |value| value[0]))
}

fn get(store: &Store, key: &[u8]) -> StoreResult<u8> {
    store.read(|view| number(view, key))
}

type Job = fn(&mut Transaction<'_>, &Stamp) -> Result<u8, StorageError>;

fn add(tx: &mut Transaction<'_>, _: &Stamp) -> Result<u8, StorageError> {
    let next = number(tx, KEY)? + 1;
    tx.put(KEY.to_vec(), vec![next]);
    tx.put(OTHER.to_vec(), vec![next]);
    Ok(next)
}

mod queue {
    use super::*;

    const THREADS: usize = 3;

    /// Every commit is answered, in its group or the next, and none is lost.
    fn all_are_served(commit: fn(&Store) -> u8) {
        let store = store();
        let clients: Vec<_> = (0..THREADS)
            .map(|_| {
                let store = store.clone();
                thread::spawn(move || commit(&store))
            })
            .collect();
        let mut given: Vec<u8> = clients.into_iter().map(|c| c.join().unwrap()).collect();
        given.sort_unstable();
        assert_eq!(given, [1, 2, 3], "each commit sees those before it");
        assert_eq!(get(&store, KEY).ok(), Some(3));
        store.close().unwrap();
    }

    #[test]
    fn no_commit_is_lost_or_sees_an_older_state() {
        holds(|| all_are_served(|store| block_on(store.commit(add as Job)).unwrap()));
    }

    #[test]
    fn wrong_check_outside_the_commit_is_found() {
        is_found(|| {
            all_are_served(|store| {
                let next = get(store, KEY).unwrap() + 1;
                let put = move |tx: &mut Transaction<'_>, _: &Stamp| {
                    tx.put(KEY.to_vec(), vec![next]);
                    Ok(next)
                };
                block_on(store.commit(put)).unwrap()
            });
        });
    }

    /// A commit during a close succeeds or is refused, and never hangs.
    fn close_answers(close: fn(&Store)) {
        let store = store();
        let client = {
            let store = store.clone();
            thread::spawn(move || block_on(store.commit(add as Job)).map_err(|e| e.to_string()))
        };
        close(&store);
        let refused = StorageError::from(StoreError::Closed).to_string();
        match client.join().unwrap() {
            Ok(count) => assert_eq!(count, 1),
            Err(reason) => assert_eq!(reason, refused),
        }
        assert!(matches!(get(&store, KEY), Err(StoreError::Closed)));
    }

    #[test]
    fn commit_during_a_close_succeeds_or_is_refused() {
        holds(|| close_answers(|store| store.close().unwrap()));
    }

    /// A commit that waits when the close begins is completed.
    #[test]
    fn close_completes_waiting_commits() {
        holds(|| {
            let store = store();
            let mut waits = Box::pin(store.commit(add as Job));
            let context = &mut std::task::Context::from_waker(std::task::Waker::noop());
            let submitted = waits.as_mut().poll(context);
            store.close().unwrap();
            let done = match submitted {
                std::task::Poll::Ready(done) => done,
                std::task::Poll::Pending => block_on(waits),
            };
            assert_eq!(done.ok(), Some(1));
        });
    }

    #[test]
    fn concurrent_closes_both_succeed() {
        holds(|| {
            close_answers(|store| {
                let other = {
                    let store = store.clone();
                    thread::spawn(move || store.close().unwrap())
                };
                store.close().unwrap();
                // One of the two may return while the other is still closing.
                other.join().unwrap();
            });
        });
    }

    /// Wrong: a close that stops the committer but not the queue before it.
    #[test]
    fn wrong_request_after_the_close_is_found() {
        is_found(|| {
            let (requests, waiting) = mpsc::channel();
            let serving = thread::spawn(move || {
                let extents = Extents::in_memory(u64::MAX);
                let engine = Box::new(MemoryEngine::default());
                let home = Home::Memory;
                let shared = Shared::new(Mode::Memory, clock(), home, engine, extents);
                let committer = Committer::new(Arc::new(shared)).unwrap();
                Line::new(committer, waiting).serve();
            });
            let client = {
                let requests = requests.clone();
                thread::spawn(move || {
                    let (sender, answer) = tokio::sync::oneshot::channel();
                    let work = Commit::new(None, add as Job, move |result| {
                        let _ = sender.send(result);
                    });
                    let _ = requests.send(Request::Commit(Box::new(work)));
                    block_on(answer).unwrap().unwrap()
                })
            };
            let (sender, closed) = mpsc::sync_channel(1);
            requests.send(Request::Close(sender)).unwrap();
            closed.recv().unwrap().unwrap();
            serving.join().unwrap();
            assert_eq!(client.join().unwrap(), 1);
        });
    }
}

mod overlay {
    use super::*;

    /// An engine that shows writes at once, and whose log may fail to make them durable.
    struct Unsynced {
        map: MemoryEngine,
        fails: bool,
    }

    impl Engine for Unsynced {
        fn get(&self, key: &[u8]) -> StoreResult<Option<Bytes>> {
            thread::yield_now();
            self.map.get(key)
        }

        fn scan(&self, from: &[u8], to: &[u8], visit: &mut Visit<'_>) -> StoreResult<()> {
            self.map.scan(from, to, visit)
        }

        /// Applies one key after the other, which concurrent readers can see.
        fn apply(&self, writes: &Writes) -> StoreResult<()> {
            for (key, value) in writes {
                thread::yield_now();
                self.map.apply(&[(key.clone(), value.clone())].into())?;
            }
            Ok(())
        }

        fn sync(&self) -> StoreResult<()> {
            thread::yield_now();
            Ok(())
        }

        fn disk_bytes(&self) -> u64 {
            0
        }

        fn sync_log(&self) -> StoreResult<()> {
            thread::yield_now();
            match self.fails {
                true => Err(StoreError::Io("the disk is gone".to_owned())),
                false => Ok(()),
            }
        }
    }

    fn shared(fails: bool) -> Arc<Shared> {
        let map = MemoryEngine::default();
        let engine = Box::new(Unsynced { map, fails });
        let extents = Extents::in_memory(u64::MAX);
        Arc::new(Shared::new(
            Mode::Durable,
            clock(),
            Home::Memory,
            engine,
            extents,
        ))
    }

    /// Returns a commit that sets a flag when it is answered.
    fn work(answered: &Arc<shuttle::sync::atomic::AtomicBool>) -> Box<dyn Work> {
        let answered = Arc::clone(answered);
        Box::new(Commit::new(
            None,
            add as Job,
            move |result: Result<u8, _>| {
                answered.store(result.is_ok(), shuttle::sync::atomic::Ordering::SeqCst);
            },
        ))
    }

    /// How a group runs, and how readers read.
    #[derive(Clone, Copy)]
    struct Variant {
        run: fn(&mut Committer, Vec<Box<dyn Work>>),
        read: fn(&Shared) -> (u8, u8),
    }

    const REAL: Variant = Variant {
        run: Committer::run,
        read: |shared| shared.read(|view| both(view)),
    };

    fn both(view: &dyn View) -> (u8, u8) {
        (number(view, KEY).unwrap(), number(view, OTHER).unwrap())
    }

    /// Readers see all or nothing of a group, nothing of a failed one, and everything of an
    /// answered one.
    fn readers_see_what_is_durable(variant: Variant, fails: bool) {
        let shared = shared(fails);
        let mut committer = Committer::new(Arc::clone(&shared)).unwrap();
        let answered = Arc::new(shuttle::sync::atomic::AtomicBool::new(false));
        let group = vec![work(&answered)];
        let commits = thread::spawn(move || (variant.run)(&mut committer, group));
        let was_answered = answered.load(shuttle::sync::atomic::Ordering::SeqCst);
        let first = (variant.read)(&shared);
        let second = (variant.read)(&shared);
        assert!(
            first.0 == first.1 && second.0 == second.1,
            "half a group: {first:?} {second:?}"
        );
        assert!(first <= second, "{second:?} after {first:?}");
        assert!(
            !was_answered || first == (1, 1),
            "answered, but not visible"
        );
        assert!(!fails || second == (0, 0), "visible, but never durable");
        commits.join().unwrap();
        let last = (variant.read)(&shared);
        assert_eq!(last, if fails { (0, 0) } else { (1, 1) });
        assert_eq!(shared.writable().is_err(), fails);
    }

    #[test]
    fn readers_see_groups_whole_and_durable() {
        holds(|| readers_see_what_is_durable(REAL, false));
    }

    #[test]
    fn readers_never_see_unsynced_writes() {
        holds(|| readers_see_what_is_durable(REAL, true));
    }

    /// Wrong: the group is published before it is durable.
    const UNSYNCED: Variant = Variant {
        run: |committer, mut group| {
            let collected = committer.collect(&mut group).unwrap();
            committer.shared().publish(&collected.ran.writes);
            let published = Committer::publish(&committer.shared(), &collected).now_or_never();
            answer_all(group, published.unwrap());
        },
        ..REAL
    };

    #[test]
    fn wrong_publication_before_the_sync_is_found() {
        is_found(|| readers_see_what_is_durable(UNSYNCED, true));
    }

    /// Wrong: the group is answered before it is durable.
    const TOO_EARLY: Variant = Variant {
        run: |committer, mut group| {
            let collected = committer.collect(&mut group).unwrap();
            group.into_iter().for_each(|work| work.answer(Ok(())));
            let _ = Committer::publish(&committer.shared(), &collected).now_or_never();
        },
        ..REAL
    };

    #[test]
    fn wrong_answer_before_the_sync_is_found() {
        is_found(|| readers_see_what_is_durable(TOO_EARLY, false));
    }

    /// Wrong: two reads instead of one that locks the state throughout.
    const TORN: Variant = Variant {
        read: |shared| {
            let first = shared.read(|view| number(view, KEY)).unwrap();
            (first, shared.read(|view| number(view, OTHER)).unwrap())
        },
        ..REAL
    };

    #[test]
    fn wrong_read_of_two_moments_is_found() {
        is_found(|| readers_see_what_is_durable(TORN, false));
    }

    /// While the engine takes sealed writes, and a further group is published, every read sees one
    /// state.
    fn readers_see_one_state_during_a_drain(read: fn(&Shared) -> (u8, u8)) {
        let shared = shared(false);
        let mut committer = Committer::new(Arc::clone(&shared)).unwrap();
        let answered = Arc::new(shuttle::sync::atomic::AtomicBool::new(false));
        committer.run(vec![work(&answered)]);
        shared.turn().unwrap();
        let drained = Arc::clone(&shared);
        let drain = thread::spawn(move || drained.drain().unwrap());
        let group = vec![work(&answered)];
        let commits = thread::spawn(move || committer.run(group));
        let (first, second) = (read(&shared), read(&shared));
        assert!(
            first.0 == first.1 && second.0 == second.1,
            "{first:?} {second:?}"
        );
        assert!(
            (1..=2).contains(&first.0) && first <= second,
            "{first:?} {second:?}"
        );
        drain.join().unwrap();
        commits.join().unwrap();
        assert_eq!(read(&shared), (2, 2));
        shared.turn().unwrap();
        shared.drain().unwrap();
        let applied = shared.published.read();
        assert!(applied.active.is_empty() && applied.sealed.is_empty());
        assert_eq!(applied.engine.get(KEY).unwrap().unwrap()[0], 2);
    }

    #[test]
    fn drain_changes_no_read() {
        holds(|| readers_see_one_state_during_a_drain(REAL.read));
    }

    #[test]
    fn wrong_reader_of_the_engine_alone_is_found() {
        is_found(|| {
            readers_see_one_state_during_a_drain(|shared| {
                let engine = Arc::clone(&shared.published.read().engine);
                let number = |key| engine.get(key).unwrap().map_or(0, |value: Bytes| value[0]);
                (number(KEY), number(OTHER))
            });
        });
    }
}

/// Each stamp is later than that of the last group, whichever thread commits it.
#[test]
fn stamps_rise_in_the_order_of_commits() {
    holds(|| {
        let store = store();
        let commit = |store: Store| {
            thread::spawn(move || {
                let job = |tx: &mut Transaction<'_>, stamp: &Stamp| {
                    let before = tx.get(&keys::STAMP)?;
                    Ok((add(tx, stamp)?, stamp.tick, before.is_some()))
                };
                block_on(store.commit(job)).unwrap()
            })
        };
        let threads = [commit(store.clone()), commit(store.clone())];
        let mut done: Vec<_> = threads.into_iter().map(|t| t.join().unwrap()).collect();
        done.sort_unstable();
        assert!(done[0].1 < done[1].1, "{done:?}");
        assert!(!done[0].2 && done[1].2, "{done:?}");
    });
}
