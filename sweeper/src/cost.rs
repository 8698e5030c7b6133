//! What sweeping costs: the calls of a cycle and of a day, from counts. Pure.
//!
//! A page costs five charged calls (lease, read, list, write, release), a move two (copy, one
//! look); deletes are free. At each mark every worker looks at the state document once more, to
//! find that nothing is left to do.

use std::time::Duration;

use serde::Serialize;

use crate::plan::{CALLS_PER_MOVE, CALLS_PER_PAGE, Plan, Prices};

/// Charged calls of a look at the state document: lease, read, release.
pub const CALLS_PER_LOOK: u64 = 3;

/// What there is to sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Blobs that are listed in each cycle.
    pub blobs: u64,
    /// Containers that they lie in: each has one page at least.
    pub containers: u64,
    /// Blobs per page.
    pub page_size: u64,
    /// Blobs that a cycle moves; what it deletes costs nothing.
    pub moves: u64,
    /// Workers.
    pub workers: u64,
}

impl Counts {
    /// Those of a plan.
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

/// What it costs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Cost {
    /// Pages of a cycle.
    pub pages: u64,
    /// Charged calls of a cycle.
    pub transactions: u64,
    /// Money of a cycle.
    pub per_cycle: f64,
    /// Cycles of a day.
    pub cycles_per_day: f64,
    /// Charged calls of a day, when moves come only once.
    pub transactions_per_day: f64,
    /// Money of a day.
    pub per_day: f64,
    /// Money of thirty days.
    pub per_month: f64,
}

/// The cost of sweeping so much every so often. Moves are counted in one cycle of the day: a blob
/// that was moved is not there in the next.
pub fn cost(counts: &Counts, every: Duration, prices: &Prices) -> Cost {
    let page_size = counts.page_size.max(1);
    // At least: pages that are partly filled, one for each container, come on top.
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

    /// Calculated by hand, at one cent per 10,000 calls.
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
