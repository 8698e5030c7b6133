//! The cost budget: once further charged calls would exceed the day's budget, a sweep starts no
//! more work until the next day. Pure.
//!
//! Days are UTC by the service's clock. The fleet shares one budget: the state document holds the
//! sum of all workers' calls, and each worker adds its own with every write. Calls since a worker's
//! last write are unknown to the others, so a fleet can exceed the budget by the work in progress
//! at that moment; each worker stops within its page.

use smalt_protocol::Timestamp;
use smalt_worker::budget::day;

/// Charged calls of all workers on one day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spent {
    /// Start of the day.
    pub day: Timestamp,
    /// Number of charged calls.
    pub calls: u64,
}

/// One worker's knowledge of the day's calls. `own` always means its charged calls since its start.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spending {
    /// The value last read from or written to the state document.
    known: Option<Spent>,
    /// Own calls already included in `known`.
    included: u64,
}

impl Spending {
    /// Records the value read from the document.
    pub fn read(&mut self, spent: Option<Spent>) {
        self.known = spent;
    }

    /// Returns the day's calls of all workers, as far as this worker knows them.
    pub fn today(&self, now: Timestamp, own: u64) -> Spent {
        let day = day(now);
        let known = self.known.filter(|spent| spent.day == day);
        let calls = known.map_or(0, |spent| spent.calls);
        Spent {
            day,
            calls: calls.saturating_add(own.saturating_sub(self.included)),
        }
    }

    /// Records that the document now holds `spent`, including `own` calls of this worker.
    pub fn written(&mut self, spent: Spent, own: u64) {
        self.known = Some(spent);
        self.included = own;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse_iso(text).unwrap()
    }

    #[test]
    fn yesterdays_calls_do_not_count() {
        let mut spending = Spending::default();
        spending.read(Some(Spent {
            day: at("2026-11-21T00:00:00Z"),
            calls: 700,
        }));
        assert_eq!(spending.today(at("2026-11-21T12:00:00Z"), 3).calls, 703);
        assert_eq!(spending.today(at("2026-11-22T00:00:00Z"), 3).calls, 3);
    }

    proptest! {
        /// Two workers that write alternately count each call once.
        #[test]
        fn calls_are_counted_once(
            writes in proptest::collection::vec((0_usize..2, 0_u64..50), 0..40),
        ) {
            let now = at("2026-11-21T12:00:00Z");
            let mut workers = [(Spending::default(), 0_u64); 2];
            let mut document = None;
            let mut all = 0;
            for (at, calls) in writes {
                let (spending, own) = &mut workers[at];
                *own += calls;
                all += calls;
                spending.read(document);
                let spent = spending.today(now, *own);
                document = Some(spent);
                spending.written(spent, *own);
                let known: u64 = spent.calls;
                let others: u64 = all - known;
                // Only the other worker's unwritten calls are missing.
                prop_assert_eq!(others, workers[1 - at].1 - workers[1 - at].0.included);
            }
        }
    }
}
