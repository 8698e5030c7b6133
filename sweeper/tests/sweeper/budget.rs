//! Tests of the cost budget: the day's calls stay within it, and work continues the next day.

use std::sync::Arc;

use smalt_sweeper::{Finished, SweepError, Sweeper, SweeperConfig};
use smalt_worker::budget::Budget;
use smalt_worker::exit;

use crate::fake::World;
use crate::support::*;

/// Charged calls that the budget of these tests allows.
const CALLS: u64 = 100;
/// Calls that a worker may make beyond it: finish the page, settle it, check once more.
const BEYOND: u64 = 12;
/// Seconds from the start of the worlds (10:00) to midnight.
const TO_MIDNIGHT_S: u64 = 14 * 3_600;

fn thrifty(worker: &str) -> SweeperConfig {
    SweeperConfig {
        budget: Some(Budget {
            max_cost_per_day: 0.0001,
            price_per_10k: 0.01,
        }),
        ..config(worker)
    }
}

fn world(blobs: usize) -> Arc<World> {
    let world = World::new();
    for at in 0..blobs {
        let moved = ("DeadBlobContainer", "dbc/");
        let tags: &[_] = if at % 3 == 0 { &[DUE, moved] } else { &[DUE] };
        world.put(&format!("acct/events/due{at:03}"), tags);
    }
    world
}

fn charged(finished: &Finished) -> u64 {
    let calls = finished.report.transactions.iter();
    let charged = calls.filter(|(operation, _)| **operation != "delete_blob");
    charged.map(|(_, count)| count).sum()
}

/// A running worker stops for the day within its page and continues after midnight.
#[tokio::test(start_paused = true)]
async fn exhausted_budget_stops_only_until_the_next_day() {
    let world = world(90);
    let sweeper = worker(&world, thrifty("one"), Vec::new(), 1);
    let finished = sweeper.run_until(sleep(TO_MIDNIGHT_S - 60)).await;
    let left = world.names("acct", "events").len();
    assert!((1..90).contains(&left), "{left}");
    let calls = charged(&finished);
    assert!((CALLS - 10..=CALLS + BEYOND).contains(&calls), "{calls}");
    assert_eq!(finished.exit_code(), exit::OK);

    let sweeper = worker(&world, thrifty("two"), Vec::new(), 2);
    let finished = sweeper.run_until(sleep(24 * 3_600)).await;
    let fewer = world.names("acct", "events").len();
    assert!(fewer < left, "{fewer} of {left}");
    assert!(charged(&finished) <= CALLS + BEYOND + 5);
    world.assert_safe();
}

#[tokio::test(start_paused = true)]
async fn fleet_shares_one_budget() {
    let world = world(120);
    let workers: Vec<_> = (0..4)
        .map(|n| worker(&world, thrifty(&format!("w{n}")), Vec::new(), n))
        .collect();
    let day = workers
        .iter()
        .map(|w| w.run_until(sleep(TO_MIDNIGHT_S - 60)));
    let finished = futures_util::future::join_all(day).await;
    let calls: u64 = finished.iter().map(charged).sum();
    assert!(calls <= CALLS + 4 * BEYOND, "{calls}");
    assert!(!world.names("acct", "events").is_empty());
    world.assert_safe();
}

/// A single sweep ends with this reason; another on the same day starts nothing.
#[tokio::test(start_paused = true)]
async fn single_sweep_ends_with_the_budget_error() {
    let world = world(90);
    let first = worker(&world, thrifty("one"), Vec::new(), 1).once().await;
    let said = first.error.as_ref().expect("it says so").to_string();
    assert!(matches!(first.error, Some(SweepError::BudgetSpent { .. })));
    assert!(said.contains("budget of 0.0001") && said.contains("2026-11-22T00:00:00Z"));
    assert_eq!(first.exit_code(), exit::GUARD);
    let left = world.names("acct", "events").len();
    let second = worker(&world, thrifty("two"), Vec::new(), 2).once().await;
    assert_eq!(second.exit_code(), exit::GUARD);
    assert_eq!(world.names("acct", "events").len(), left);
    assert!(charged(&second) < 10);
}

/// Without a budget, no calls are counted and no worker stops.
#[tokio::test(start_paused = true)]
async fn without_a_budget_nothing_stops() {
    let world = world(90);
    let finished = worker(&world, config("one"), Vec::new(), 1).once().await;
    assert!(world.names("acct", "events").is_empty());
    assert!(charged(&finished) > CALLS);
    assert_eq!(world.state().spent, None);
}

/// A worker without a budget adds its calls if others count theirs.
#[tokio::test(start_paused = true)]
async fn worker_without_a_budget_adds_its_calls() {
    let world = world(90);
    let _ = worker(&world, thrifty("one"), Vec::new(), 1).once().await;
    let before = world.state().spent.expect("it was counted").calls;
    let free: Sweeper = worker(&world, config("two"), Vec::new(), 2);
    let finished = free.once().await;
    assert!(world.names("acct", "events").is_empty());
    let added = world.state().spent.expect("it was counted").calls - before;
    // Calls after the last write of the document are not included.
    assert!(charged(&finished) - added <= 3, "{added}");
}
