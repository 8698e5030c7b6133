//! Visibility and answers only after durability; groups; failures; time; closing.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Waker};
use std::time::Duration;

use smalt_protocol::{StorageError, Timestamp};

use super::fault_disk::Faults;
use super::{config, dump, durable, durable_on, get, memory, pattern, put, put_payload};
use crate::clock::Clock;
use crate::store::{
    Mode, Stamp, Store, StoreConfig, StoreError, StoreResult, Transaction, Trouble, View,
};

async fn stamp(store: &Store) -> Stamp {
    let job = |tx: &mut Transaction<'_>, stamp: &Stamp| {
        tx.put(b"\x20stamped".to_vec(), "");
        Ok(*stamp)
    };
    store.commit(job).await.unwrap()
}

/// Readers see a group when it is durable, not when the engine has it.
#[tokio::test]
async fn commit_is_not_visible_or_answered_before_it_is_durable() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Arc::new(Faults::default());
    let store = durable_on(dir.path(), &disk);
    put(&store, b"\x20changed", b"old").await.unwrap();
    put(&store, b"\x20deleted", b"old").await.unwrap();
    let before = dump(&store);

    disk.close_gate("log.0");
    let writer = store.clone();
    let pending = tokio::spawn(async move {
        let job = |tx: &mut Transaction<'_>, _: &Stamp| {
            tx.put(b"\x20changed".to_vec(), "new");
            tx.put(b"\x20created".to_vec(), "new");
            tx.delete(b"\x20deleted".to_vec());
            Ok(())
        };
        writer.commit(job).await
    });
    tokio::task::yield_now().await;
    disk.wait_at_gate();
    assert_eq!(dump(&store), before);
    assert_eq!(get(&store, b"\x20created"), None);
    assert_eq!(get(&store, b"\x20deleted"), Some(b"old".to_vec()));
    assert!(!pending.is_finished());

    disk.open_gate();
    pending.await.unwrap().unwrap();
    assert_eq!(get(&store, b"\x20changed"), Some(b"new".to_vec()));
    assert_eq!(get(&store, b"\x20created"), Some(b"new".to_vec()));
    assert_eq!(get(&store, b"\x20deleted"), None);
}

/// A refusing and a panicking commit change nothing and do not affect the others of their group.
#[tokio::test]
async fn failing_commits_do_not_affect_their_group() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Arc::new(Faults::default());
    let store = durable_on(dir.path(), &disk);
    disk.close_gate("log.0");
    let spawn = |n: u8| {
        let store = store.clone();
        tokio::spawn(async move {
            let job = move |tx: &mut Transaction<'_>, _: &Stamp| {
                let seen = tx.get(b"\x20last")?;
                tx.put(b"\x20last".to_vec(), vec![n]);
                match n {
                    2 => Err(StorageError::internal("refused")),
                    3 => panic!("on purpose"),
                    _ => Ok(seen.map(|seen| seen[0])),
                }
            };
            store.commit(job).await.ok()
        })
    };
    let first = spawn(0);
    tokio::task::yield_now().await;
    disk.wait_at_gate();
    let rest: Vec<_> = (1..5).map(spawn).collect();
    tokio::task::yield_now().await;
    disk.open_gate();
    assert_eq!(first.await.unwrap(), Some(None));
    let mut answers = Vec::new();
    for answer in rest {
        answers.push(answer.await.unwrap());
    }
    // Each sees the earlier writes of its group, and nothing of the two that failed.
    assert_eq!(answers, [Some(Some(0)), None, None, Some(Some(1))]);
    assert_eq!(get(&store, b"\x20last"), Some(vec![4]));
    assert_few_groups(&store);
}

/// Commits that wait behind a held one are in one group, or in two when the committer's other
/// thread takes the first of them before the rest come.
fn assert_few_groups(store: &Store) {
    assert!((2..=3).contains(&store.stats().groups));
}

/// A task on the callers' runtime sends many answers: a runtime that has ended still sends them,
/// and callers on another runtime do not wait for it.
#[test]
fn group_with_callers_on_several_runtimes_is_answered() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Arc::new(Faults::default());
    let store = durable_on(dir.path(), &disk);
    let runtime = || {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(1).build().unwrap()
    };
    let (ending, staying, still) = (runtime(), runtime(), runtime());
    let submit = |on: &tokio::runtime::Runtime| {
        let _inside = on.enter();
        let store = store.clone();
        let mut commit = Box::pin(async move { put(&store, b"\x20key", b"value").await });
        let polled = commit
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_pending());
        commit
    };
    disk.close_gate("log.0");
    let first = submit(&staying);
    disk.wait_at_gate();
    let group: Vec<_> = [&ending, &staying, &still]
        .into_iter()
        .flat_map(|on| (0..6).map(|_| submit(on)).collect::<Vec<_>>())
        .collect();
    ending.shutdown_background();
    disk.open_gate();
    staying.block_on(async {
        first.await.unwrap();
        for commit in group {
            commit.await.unwrap();
        }
    });
    assert_few_groups(&store);
}

/// After a failed sync the state on disk is unknown: readers keep the old state, writes are
/// refused.
#[tokio::test]
async fn failed_sync_makes_the_store_read_only() {
    for name in ["log.0", "00000001.seg"] {
        let dir = tempfile::tempdir().unwrap();
        let disk = Arc::new(Faults::default());
        let store = durable_on(dir.path(), &disk);
        put(&store, b"\x20key", b"old").await.unwrap();
        let before = dump(&store);
        disk.fail_syncs_of(Some(name));
        put_payload(&store, &pattern(1, 20_000)).await.unwrap_err();
        disk.fail_syncs_of(None);
        put(&store, b"\x20key", b"new").await.unwrap_err();
        assert_eq!(dump(&store), before);
        assert!(matches!(store.stage(1), Err(StoreError::ReadOnly(_))));
        assert!(matches!(store.maintain(1), Err(StoreError::ReadOnly(_))));
        assert!(store.close().is_err());
        drop(store);
        let store = durable_on(dir.path(), &disk);
        put(&store, b"\x20key", b"new").await.unwrap();
    }
}

/// fsyncgate: the sync of a large upload fails; a later successful sync of the same file does not
/// show that earlier writes of another upload are durable.
#[tokio::test]
async fn segment_with_a_failed_sync_is_never_trusted_again() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Faults::default();
    let roomy = StoreConfig {
        segment_bytes: 64 << 20,
        ..config(dir.path())
    };
    let store = Store::open_on(roomy, Arc::new(disk.clone())).unwrap();
    let mut small = store.stage(20_000).unwrap();
    small.write(&[1; 20_000]).unwrap();
    let small = small.finish().await.unwrap();
    disk.fail_syncs_of(Some("00000001.seg"));
    put_payload(&store, &vec![2; 1 << 20]).await.unwrap_err();
    disk.fail_syncs_of(None);
    let adopted = store.commit(move |tx, _| Ok(crate::store::adopt(tx, small)?));
    adopted.await.unwrap_err();
}

/// A full disk refuses uploads; writes that fit continue.
#[tokio::test]
async fn full_disk_refuses_a_staging_only() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Arc::new(Faults::default());
    let store = durable_on(dir.path(), &disk);
    disk.limit_room(Some(100_000));
    put_payload(&store, &pattern(1, 200_000)).await.unwrap_err();
    put(&store, b"\x20key", b"value").await.unwrap();
    disk.limit_room(None);
    let id = put_payload(&store, &pattern(2, 200_000)).await.unwrap();
    assert_eq!(super::get_payload(&store, id).unwrap(), pattern(2, 200_000));
}

#[tokio::test]
async fn stamps_rise_across_restarts_and_backward_clock_changes() {
    let dir = tempfile::tempdir().unwrap();
    let clock = super::clock();
    let open = || {
        let config = StoreConfig {
            clock: clock.clone(),
            ..config(dir.path())
        };
        Store::open(config).unwrap()
    };
    let store = open();
    let mut last = stamp(&store).await;
    for step in 0..6 {
        match step {
            0 => clock.advance(Duration::from_secs(3_600)),
            2 | 4 => clock.set(Timestamp::from_unix_s(5)),
            _ => {}
        }
        let store = open_again(&open, &store, step);
        let next = stamp(&store).await;
        assert!(next.tick > last.tick && next.now >= last.now);
        assert!(next.tick >= next.now && store.now() >= next.now);
        last = next;
        store.close().unwrap();
    }
}

/// A store whose last commit is ahead of the clock reports it. After a rebase its time is the
/// clock's again, and ticks still rise, also after the next opening.
#[tokio::test]
async fn clock_behind_the_store_is_reported_and_can_be_rebased() {
    for mode in [Mode::Durable, Mode::Fast] {
        let dir = tempfile::tempdir().unwrap();
        let clock = super::clock();
        let open = || {
            let config = StoreConfig {
                mode,
                clock: clock.clone(),
                ..config(dir.path())
            };
            Store::open(config).unwrap()
        };
        let start = clock.now();
        let store = open();
        clock.advance(Duration::from_secs(30 * 86_400));
        let ahead = stamp(&store).await;
        assert_eq!(store.troubles(), []);
        store.close().unwrap();
        clock.set(start);
        let store = open();
        assert_eq!(store.now(), ahead.now);
        let behind = Trouble::ClockBehind(Duration::from_secs(30 * 86_400));
        assert_eq!(store.troubles(), [behind]);
        store.rebase().unwrap();
        assert_eq!((store.now(), store.troubles()), (start, vec![]));
        let rebased = stamp(&store).await;
        assert!(rebased.now == start && rebased.tick > ahead.tick);
        store.close().unwrap();
        let store = open();
        assert_eq!(store.now(), start);
        let next = stamp(&store).await;
        assert!(next.now == start && next.tick > rebased.tick);
    }
}

fn open_again(open: &impl Fn() -> Store, old: &Store, step: u32) -> Store {
    if step == 0 {
        old.close().unwrap();
    }
    open()
}

/// Refuses a value that the engine would leak; the store continues.
#[tokio::test]
async fn value_beyond_the_limit_is_refused() {
    let store = memory();
    put(&store, b"\x20big", &[0; 17 * 1024 + 1])
        .await
        .unwrap_err();
    put(&store, b"\x20big", &[0; 17 * 1024]).await.unwrap();
}

#[tokio::test]
async fn closed_store_returns_closed_errors() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Arc::new(Faults::default());
    for store in [memory(), durable_on(dir.path(), &disk)] {
        put(&store, b"\x20key", b"value").await.unwrap();
        store.close().unwrap();
        store.close().unwrap();
        put(&store, b"\x20key", b"value").await.unwrap_err();
        assert!(matches!(store.stage(1), Err(StoreError::Closed)));
        let read = store.read(|view| view.get(b"\x20key"));
        assert!(matches!(read, Err(StoreError::Closed)));
    }
    // A remaining handle does not keep the directory locked.
    let store = durable_on(dir.path(), &disk);
    // The close has turned the log.
    disk.close_gate("log.1");
    let waiting = {
        let store = store.clone();
        tokio::spawn(async move { put(&store, b"\x20key", b"new").await })
    };
    tokio::task::yield_now().await;
    disk.wait_at_gate();
    let closing = std::thread::spawn(move || store.close());
    disk.open_gate();
    closing.join().unwrap().unwrap();
    waiting.await.unwrap().unwrap();
    assert_eq!(
        get(&durable_on(dir.path(), &disk), b"\x20key"),
        Some(b"new".to_vec())
    );
}

/// Dropping the store without a close loses nothing, and frees the directory at once.
#[tokio::test]
async fn dropped_store_can_be_reopened() {
    let dir = tempfile::tempdir().unwrap();
    for n in 0..3 {
        let store = durable(dir.path());
        let last = get(&store, b"\x20n");
        assert_eq!(last, (n > 0).then(|| vec![n - 1]));
        put(&store, b"\x20n", &[n]).await.unwrap();
    }
}

/// Fast mode keeps everything when it is closed, and tokio's clock stands still during a commit.
#[tokio::test(start_paused = true)]
async fn tokios_clock_stands_still_while_a_commit_waits() {
    let dir = tempfile::tempdir().unwrap();
    let start = Timestamp::from_unix_s(1_000);
    let clock = Clock::tokio(start);
    let store = Store::open(StoreConfig::durable(dir.path(), clock.clone())).unwrap();
    // A timer to which tokio's clock could jump.
    let alarm = tokio::spawn(tokio::time::sleep(Duration::from_secs(3_600)));
    for _ in 0..20 {
        put(&store, b"\x20key", b"value").await.unwrap();
    }
    assert_eq!(clock.now(), start);
    alarm.await.unwrap();
    assert_eq!(clock.now(), start.plus_s(3_600));
}

/// The committer's thread is not one of tokio's, but the time of a commit on disk is tokio's.
#[tokio::test(start_paused = true)]
async fn commit_on_disk_uses_tokios_clock() {
    let dir = tempfile::tempdir().unwrap();
    let start = Timestamp::from_unix_s(1_000);
    let clock = Clock::tokio(start);
    let store = Store::open(StoreConfig::durable(dir.path(), clock)).unwrap();
    assert_eq!(stamp(&store).await.now, start);
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    assert_eq!(stamp(&store).await.now, start.plus_s(3_600));
}

/// Sums over a scan stay constant while writers move amounts: a read sees one moment.
#[tokio::test]
async fn a_read_sees_one_moment() {
    const ACCOUNTS: u8 = 40;
    const TOTAL: u64 = 1_000 * ACCOUNTS as u64;
    let dir = tempfile::tempdir().unwrap();
    for store in [memory(), durable(dir.path())] {
        for n in 0..ACCOUNTS {
            put(&store, &[0x20, n], &1_000_u64.to_be_bytes())
                .await
                .unwrap();
        }
        let done = Arc::new(AtomicBool::new(false));
        let readers: Vec<_> = (0..2)
            .map(|_| {
                let (store, done) = (store.clone(), Arc::clone(&done));
                std::thread::spawn(move || {
                    while !done.load(Ordering::Acquire) {
                        assert_eq!(total(&store), TOTAL);
                    }
                })
            })
            .collect();
        let movers: Vec<_> = (0..8_u8)
            .map(|n| {
                let store = store.clone();
                tokio::spawn(async move {
                    for step in 0..40_u8 {
                        let from = n.wrapping_mul(31).wrapping_add(step) % ACCOUNTS;
                        let to = step.wrapping_mul(17).wrapping_add(n) % ACCOUNTS;
                        store
                            .commit(move |tx, _| Ok(transfer(tx, from, to)?))
                            .await
                            .unwrap();
                    }
                })
            })
            .collect();
        for mover in movers {
            mover.await.unwrap();
        }
        done.store(true, Ordering::Release);
        for reader in readers {
            reader.join().unwrap();
        }
        assert_eq!(total(&store), TOTAL);
    }
}

fn amount(value: &[u8]) -> u64 {
    u64::from_be_bytes(value.try_into().unwrap())
}

fn total(store: &Store) -> u64 {
    let mut total = 0;
    let scanned = store.read(|view| {
        view.scan(&[0x20], &[0x21], &mut |_, value| {
            total += amount(value);
            ControlFlow::Continue(())
        })
    });
    scanned.unwrap();
    total
}

fn transfer(tx: &mut Transaction<'_>, from: u8, to: u8) -> StoreResult<()> {
    for (account, less, more) in [(from, 7, 0), (to, 0, 7)] {
        let balance = amount(&tx.get(&[0x20, account])?.unwrap());
        let balance = balance - less + more;
        tx.put(vec![0x20, account], balance.to_be_bytes().to_vec());
    }
    Ok(())
}
