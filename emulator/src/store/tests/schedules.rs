//! A stepped store: the points between a commit and its answer, one at a time, in orders that a
//! seed chooses.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore as _, SeedableRng as _};

use super::*;
use crate::store::{Point, StoreResult, View};

/// Number of tasks that add one to the same number.
const TASKS: usize = 3;
/// Number of schedules; the race below shows in about a third of them.
const SEEDS: u64 = 40;
const KEY: &[u8] = &[0x20, 1];

type Task = Pin<Box<dyn Future<Output = ()>>>;

fn stepped() -> Store {
    let config = StoreConfig {
        stepped: true,
        ..StoreConfig::memory(clock())
    };
    Store::open(config).unwrap()
}

fn number(view: &dyn View) -> StoreResult<u8> {
    Ok(view.get(KEY)?.map_or(0, |value| value[0]))
}

/// Runs the whole operation in its commit.
async fn add(store: Store) {
    let job = |tx: &mut Transaction<'_>, _: &_| {
        let seen = number(tx)?;
        tx.put(KEY.to_vec(), vec![seen + 1]);
        Ok(())
    };
    store.commit(job).await.unwrap();
}

/// A deliberate race: reads before its commit, and writes a value derived from that.
async fn add_with_the_check_outside(store: Store) {
    let seen = store.read(number).unwrap();
    let job = move |tx: &mut Transaction<'_>, _: &_| {
        tx.put(KEY.to_vec(), vec![seen + 1]);
        Ok(())
    };
    store.commit(job).await.unwrap();
}

/// Runs tasks one step at a time. `next` chooses one of the given number of choices: the tasks in
/// order, then the store.
fn run(store: &Store, mut tasks: Vec<Task>, next: &mut dyn FnMut(usize) -> usize) {
    while !tasks.is_empty() {
        let chosen = next(tasks.len() + 1);
        if chosen == tasks.len() {
            store.step(usize::MAX);
            continue;
        }
        let polled = tasks[chosen]
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()));
        if polled.is_ready() {
            drop(tasks.remove(chosen));
        }
    }
}

/// Returns the number after all tasks have added one, in the order of a seed, or else in plain
/// order.
fn sum(store: &Store, add: impl Fn(Store) -> Task, seed: Option<u64>) -> u8 {
    let tasks = (0..TASKS).map(|_| add(store.clone())).collect();
    match seed {
        Some(seed) => {
            let mut random = ChaCha8Rng::seed_from_u64(seed);
            run(store, tasks, &mut |choices| {
                random.next_u32() as usize % choices
            });
        }
        None => {
            // One task at a time, to its end: it requests a commit, then the store takes all its
            // steps.
            let mut turn = 0;
            run(store, tasks, &mut |choices| {
                turn += 1;
                if turn % 10 == 1 { 0 } else { choices - 1 }
            });
        }
    }
    store.read(number).unwrap()
}

/// A check outside the commit passes in plain order, but schedules find it.
#[test]
fn schedules_find_a_race_that_plain_order_does_not() {
    let racy = |store| Box::pin(add_with_the_check_outside(store)) as Task;
    assert_eq!(usize::from(sum(&stepped(), racy, None)), TASKS);
    let lost = |seed: &u64| usize::from(sum(&stepped(), racy, Some(*seed))) < TASKS;
    let found = (0..SEEDS).filter(lost).count();
    assert!(found > 5, "found by {found} schedules of {SEEDS}");
}

#[test]
fn no_schedule_loses_an_update_checked_inside_the_commit() {
    let whole = |store| Box::pin(add(store)) as Task;
    for seed in 0..SEEDS {
        assert_eq!(
            usize::from(sum(&stepped(), whole, Some(seed))),
            TASKS,
            "{seed}"
        );
    }
}

#[test]
fn same_seed_gives_the_same_schedule() {
    let race = |seed| {
        let store = stepped();
        let add = |store| Box::pin(add_with_the_check_outside(store)) as Task;
        (sum(&store, add, Some(seed)), store.stats())
    };
    for seed in 0..SEEDS {
        assert_eq!(race(seed), race(seed));
    }
}

/// Readers see a group at one point, and its members are answered after that point.
#[test]
fn group_is_visible_after_the_sync_and_answered_later() {
    let store = stepped();
    let mut tasks = [add(store.clone()), add(store.clone())].map(Box::pin);
    let context = &mut Context::from_waker(Waker::noop());
    for task in &mut tasks {
        assert!(task.as_mut().poll(context).is_pending());
    }
    let mut passed = Vec::new();
    while let Some(point) = store.step(usize::MAX) {
        passed.push(point);
        let seen = store.read(number).unwrap();
        assert_eq!(
            seen,
            if point < Point::Published { 0 } else { 2 },
            "{point:?}"
        );
        let answered = tasks[0].as_mut().poll(context) == Poll::Ready(());
        assert_eq!(answered, point == Point::Answered, "{point:?}");
        if answered {
            break;
        }
    }
    assert_eq!(passed, Point::ALL);
    assert_eq!(store.stats().groups, 1);
}

#[test]
fn step_limits_the_size_of_a_group() {
    let store = stepped();
    let mut tasks = [add(store.clone()), add(store.clone()), add(store.clone())].map(Box::pin);
    let context = &mut Context::from_waker(Waker::noop());
    for task in &mut tasks {
        assert!(task.as_mut().poll(context).is_pending());
    }
    while store.step(1).is_some() {}
    assert_eq!(store.stats().groups, 3);
    assert_eq!(store.step(1), None);
}

/// A close serves waiting commits; so does blocking work.
#[test]
fn stepped_store_completes_waiting_commits_on_close() {
    let store = stepped();
    let mut task = Box::pin(add(store.clone()));
    let context = &mut Context::from_waker(Waker::noop());
    assert!(task.as_mut().poll(context).is_pending());
    store.step(1);
    let value = store.commit_blocking(|tx| number(tx)).unwrap();
    assert_eq!(value, 1);
    assert!(task.as_mut().poll(context).is_ready());
    store.reset().unwrap();
    assert_eq!(store.read(number).unwrap(), 0);
    store.close().unwrap();
}
