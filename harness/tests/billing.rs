//! Runs the listener's billing example in process: the same code as its processes, on a virtual
//! clock, with lost answers, duplicates and dying processes. The sums must be exact each time.

#![allow(dead_code, reason = "the command line uses more than the tests")]

#[path = "../../listener/examples/billing/app/mod.rs"]
mod app;

use std::time::Duration;

use app::batch::{Plan, compute};
use app::ledger::Ledger;
use app::site::Site;
use app::{controller, initiator, processor};
use proptest::prelude::*;
use smalt_harness::testing::TestAccount;
use tokio::task::JoinHandle;

use crate::{Outcome, storage};

fn plan() -> Plan {
    Plan {
        seed: 11,
        submissions: 6,
        transactions: 2_000,
        chunk: 300,
        accounts: 40,
    }
}

fn site(account: &TestAccount, seed: u64) -> Outcome<Site> {
    Ok(Site {
        storage: storage(account, seed)?,
        name: "billing".to_owned(),
        visibility: Duration::from_secs(20),
        seed,
    })
}

/// Starts a processor that runs until it is aborted; `abort` stands for kill -9.
fn start_processor(site: Site) -> JoinHandle<()> {
    tokio::spawn(async move {
        processor::run(&site, Duration::from_millis(50), std::future::pending())
            .await
            .unwrap();
    })
}

fn start_initiator(site: Site) -> JoinHandle<()> {
    tokio::spawn(async move {
        let pause = Duration::from_secs(2);
        initiator::run(&site, &plan(), pause).await.unwrap();
    })
}

fn assert_exact(ledger: &Ledger) {
    assert_eq!(ledger.transactions, plan().total());
    assert_eq!(ledger.cents, plan().expected());
    assert_eq!(ledger.complete.len(), plan().submissions as usize);
    assert!(ledger.open.is_empty());
}

/// Returns the longest time from a submission, of which there is one every two seconds, until the
/// ledger contains it.
async fn longest_delay(site: &Site) -> Outcome<Duration> {
    let (begun, mut longest) = (tokio::time::Instant::now(), Duration::ZERO);
    let mut complete = 0;
    while complete < plan().submissions as usize {
        tokio::time::sleep(Duration::from_millis(20)).await;
        let now = controller::ledger(site).await?.complete.len();
        if now > complete {
            let submitted = Duration::from_secs(2 * complete as u64);
            longest = longest.max(begun.elapsed().saturating_sub(submitted));
            complete = now;
        }
    }
    Ok(longest)
}

/// L2: without faults no result occurs twice, no payload is left, and each submission is in the
/// ledger before the next one arrives.
#[tokio::test(start_paused = true)]
async fn a_month_without_faults_is_exact() -> Outcome {
    let account = TestAccount::open()?;
    let workers = [
        start_processor(site(&account, 1)?),
        start_processor(site(&account, 2)?),
    ];
    let initiator = start_initiator(site(&account, 3)?);
    let (pending, controlling) = (std::future::pending(), site(&account, 4)?);
    let observing = site(&account, 6)?;
    let (ledger, delay) = tokio::join!(
        controller::run(&controlling, Some(6), pending),
        longest_delay(&observing)
    );
    let (ledger, delay) = (ledger?, delay?);
    assert_exact(&ledger);
    assert_eq!(ledger.duplicates, 0);
    println!("longest delay of a submission: {delay:?}");
    assert!(delay < Duration::from_secs(2), "{delay:?}");
    initiator.await?;
    let left = site(&account, 5)?;
    let all = smalt_sleeve::port::ListBlobs::default();
    let cx = smalt_sleeve::port::CallContext::default();
    let payloads = left
        .storage
        .list_blobs(&cx, "billing-payloads", &all)
        .await?;
    assert!(payloads.blobs.is_empty());
    workers.iter().for_each(JoinHandle::abort);
    Ok(())
}

/// Every role dies and restarts several times, while answers are lost.
#[tokio::test(start_paused = true)]
async fn sums_are_exact_although_processes_die() -> Outcome {
    for seed in 0..4 {
        let account = TestAccount::seeded(seed)?;
        for (operation, nth) in [
            ("Messages_Enqueue", 3),
            ("MessageId_Delete", 2),
            ("BlockBlob_Upload", 7),
            ("Blob_Delete", 1),
            ("Messages_Dequeue", 4),
        ] {
            account
                .fault(operation)
                .nth(nth + seed)
                .times(3)
                .answer_lost();
        }
        let mut fresh = 100 * seed;
        let mut next = || {
            fresh += 1;
            site(&account, fresh)
        };
        let mut initiator = start_initiator(next()?);
        let mut processors = [start_processor(next()?), start_processor(next()?)];
        // Each round ends a life of the controller early, and one of another role.
        for round in 0..6_u64 {
            let lives = Duration::from_millis(700 + 431 * (round + seed));
            let controller = next()?;
            let pending = std::future::pending();
            let run = controller::run(&controller, Some(6), pending);
            let _ = tokio::time::timeout(lives, run).await;
            match round % 3 {
                0 => {
                    initiator.abort();
                    initiator = start_initiator(next()?);
                }
                number => {
                    let processor = &mut processors[number as usize - 1];
                    processor.abort();
                    *processor = start_processor(next()?);
                }
            }
        }
        let last = next()?;
        let run = controller::run(&last, Some(6), std::future::pending());
        let ledger = tokio::time::timeout(Duration::from_secs(3600), run).await??;
        assert_exact(&ledger);
        processors.iter().for_each(JoinHandle::abort);
    }
    Ok(())
}

proptest! {
    /// Results in any order and any number: each counts once.
    #[test]
    fn the_ledger_counts_each_chunk_once(
        order in proptest::collection::vec(any::<prop::sample::Index>(), 0..200),
    ) {
        let sums: Vec<_> = (0..6).flat_map(|n| plan().chunks(n)).map(|c| compute(&c)).collect();
        let mut ledger = Ledger::default();
        for index in &order {
            ledger.add(index.get(&sums));
        }
        for sum in &sums {
            ledger.add(sum);
        }
        prop_assert_eq!(ledger.duplicates as usize, order.len());
        prop_assert_eq!(ledger.cents, plan().expected());
        prop_assert_eq!(ledger.transactions, plan().total());
        prop_assert!(ledger.open.is_empty());
    }
}

/// A chunk that is counted twice, or not at all, makes the sum wrong.
#[test]
fn a_wrong_sum_is_detected() {
    let sums: Vec<_> = (0..6)
        .flat_map(|n| plan().chunks(n))
        .map(|c| compute(&c))
        .collect();
    let mut ledger = Ledger::default();
    sums[1..].iter().for_each(|sum| assert!(ledger.add(sum)));
    assert_ne!(ledger.cents, plan().expected());
    for sum in [&sums[0], &sums[0]] {
        for (account, cents) in &sum.cents {
            *ledger.cents.entry(*account).or_default() += cents;
        }
    }
    assert_ne!(ledger.cents, plan().expected());
}
