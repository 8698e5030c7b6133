//! Estimates the calls and the cost of a cycle and of a day from counts. Pure.
//!
//! A page costs five charged calls (lease, read, list, write, release), a move two (copy, one
//! HEAD); deletes are free. At each mark, every worker also reads the state document once more to
//! find that nothing is left to do.

use std::time::Duration;

use serde::Serialize;

use crate::plan::{CALLS_PER_MOVE, CALLS_PER_PAGE, Plan, Prices};

/// Charged calls to check the state document: lease, read, release.
pub const CALLS_PER_LOOK: u64 = 3;

/// The amount of work to estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Blobs listed per cycle.
    pub blobs: u64,
    /// Containers that hold these blobs; each has at least one page.
    pub containers: u64,
    /// Blobs per page.
    pub page_size: u64,
    /// Blobs moved per cycle. Deletes are free.
    pub moves: u64,
    /// Number of workers.
    pub workers: u64,
}

impl Counts {
    /// Returns the counts of a plan.
    pub fn of_plan(plan: &Plan, page_size: u64, workers: u64) -> Self {
        Counts {
            blobs: plan.total.seen,
            containers: plan.containers.len() as u64,
            page_size,
            moves: plan.total.r#move,
            workers,
        }
    }
}

/// Estimated calls, and their cost in the currency of the prices.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Cost {
    /// Pages per cycle.
    pub pages: u64,
    /// Charged calls per cycle.
    pub transactions: u64,
    /// Cost per cycle.
    pub per_cycle: f64,
    /// Cycles per day.
    pub cycles_per_day: f64,
    /// Charged calls per day, with the moves in only one cycle.
    pub transactions_per_day: f64,
    /// Cost per day.
    pub per_day: f64,
    /// Cost per 30 days.
    pub per_month: f64,
}

/// Estimates the cost of sweeping at this interval. Moves are counted in one cycle of the day,
/// because a moved blob is not there in the next.
pub fn cost(counts: &Counts, every: Duration, prices: &Prices) -> Cost {
    let page_size = counts.page_size.max(1);
    // A lower bound: each container may add one partly filled page.
    let full = counts.blobs.div_ceil(page_size);
    let pages = full.max(counts.containers);
    let looks = counts.workers.saturating_mul(CALLS_PER_LOOK);
    let listing = pages.saturating_mul(CALLS_PER_PAGE).saturating_add(looks);
    let moves = counts.moves.saturating_mul(CALLS_PER_MOVE);
    let transactions = listing.saturating_add(moves);
    let price = prices.per_10k_transactions / 10_000.0;
    let cycles_per_day = 86_400.0 / every.as_secs_f64().max(1.0);
    let per_day_calls = listing as f64 * cycles_per_day + moves as f64;
    Cost {
        pages,
        transactions,
        per_cycle: transactions as f64 * price,
        cycles_per_day,
        transactions_per_day: per_day_calls,
        per_day: per_day_calls * price,
        per_month: per_day_calls * price * 30.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn counts(blobs: u64, containers: u64, moves: u64, workers: u64) -> Counts {
        Counts {
            blobs,
            containers,
            page_size: 1_000,
            moves,
            workers,
        }
    }

    /// Values calculated by hand, at 0.01 per 10,000 calls.
    #[test]
    fn calls_and_money() {
        let ten_minutes = Duration::from_secs(600);
        for (counts, pages, calls, day_calls) in [
            (counts(0, 1, 0, 1), 1, 8, 8.0 * 144.0),
            (counts(1_000_000, 100, 0, 4), 1_000, 5_012, 5_012.0 * 144.0),
            (counts(1_000, 100, 0, 0), 100, 500, 500.0 * 144.0),
            (counts(1_000, 1, 100, 0), 1, 205, 5.0 * 144.0 + 200.0),
        ] {
            let cost = cost(&counts, ten_minutes, &Prices::default());
            assert_eq!(
                (cost.pages, cost.transactions),
                (pages, calls),
                "{counts:?}"
            );
            assert!(
                (cost.transactions_per_day - day_calls).abs() < 1e-6,
                "{cost:?}"
            );
            assert!(
                (cost.per_day - day_calls * 0.000_001).abs() < 1e-9,
                "{cost:?}"
            );
        }
    }

    proptest! {
        #[test]
        fn any_counts_have_a_cost(
            blobs: u64, containers: u64, page_size: u64, moves: u64, workers: u64, every_s: u32,
        ) {
            let counts = Counts { blobs, containers, page_size, moves, workers };
            let every = Duration::from_secs(u64::from(every_s));
            let cost = cost(&counts, every, &Prices::default());
            prop_assert!(cost.per_day.is_finite() && cost.per_day >= 0.0);
        }
    }
}
