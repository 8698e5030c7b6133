//! Limits the cost of a day's calls. Days are UTC by the service's clock. Pure.

use std::time::Duration;

use smalt_protocol::Timestamp;

/// Length of a day.
pub const DAY: Duration = Duration::from_secs(24 * 3_600);

/// Number of calls that a price refers to.
pub const PRICED_CALLS: f64 = 10_000.0;

/// Returns the cost of this many charged calls, in the currency of the price.
#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
pub fn cost(calls: u64, price_per_10k: f64) -> f64 {
    calls as f64 / PRICED_CALLS * price_per_10k
}

/// Limit on the cost of a day.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Budget {
    /// Maximum cost of a day's calls, in the currency of the price.
    pub max_cost_per_day: f64,
    /// Price of 10,000 calls.
    pub price_per_10k: f64,
}

impl Budget {
    /// Returns the cost of this many charged calls.
    pub fn cost(&self, calls: u64) -> f64 {
        cost(calls, self.price_per_10k)
    }

    /// Returns whether `next` calls in addition to today's would exceed the budget.
    pub fn is_exceeded(&self, today: u64, next: u64) -> bool {
        // Floating-point prices are slightly off; a call that fits exactly must be allowed.
        self.cost(today.saturating_add(next)) > self.max_cost_per_day * (1.0 + 1e-9)
    }
}

/// Returns the start of the day.
pub fn day(now: Timestamp) -> Timestamp {
    let since_s = now.since(Timestamp::UNIX_EPOCH).as_secs();
    Timestamp::from_unix_s(since_s - since_s % DAY.as_secs())
}

/// Returns the start of the next day, strictly later than `now`.
pub fn next_day(now: Timestamp) -> Timestamp {
    day(now).plus(DAY)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse_iso(text).unwrap()
    }

    #[test]
    fn calls_count_against_the_budget() {
        let budget = |max_cost_per_day| Budget {
            max_cost_per_day,
            price_per_10k: 0.01,
        };
        for (max, today, next, expected) in [
            (0.001, 995, 5, false),
            (0.001, 996, 5, true),
            (0.001, 1_000, 0, false),
            (0.0, 0, 1, true),
            (1.0, u64::MAX, 5, true),
            (1e9, u64::MAX, 5, true),
        ] {
            let found = budget(max).is_exceeded(today, next);
            assert_eq!(found, expected, "{max} {today} {next}");
        }
        let free = Budget {
            max_cost_per_day: 0.0,
            price_per_10k: 0.0,
        };
        assert!(!free.is_exceeded(u64::MAX, 5));
    }

    #[test]
    fn a_day_begins_at_midnight() {
        for now in ["2026-11-21T00:00:00Z", "2026-11-21T23:59:59.9Z"] {
            assert_eq!(day(at(now)), at("2026-11-21T00:00:00Z"));
            assert_eq!(next_day(at(now)), at("2026-11-22T00:00:00Z"));
        }
    }
}
