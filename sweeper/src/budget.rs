//! The money budget: when the day's charged calls would cost more, a sweep starts nothing more
//! until the next day. Pure.
//!
//! The day is the service's, in UTC. The fleet has one budget: the calls of all workers are summed
//! up in the state document, and each adds its own with every write of it. What a worker has called
//! since its last write only that worker knows, so a fleet may go beyond by what its workers have
//! in hand at that moment; each of them stops within its page.

use smalt_protocol::Timestamp;
use smalt_worker::budget::day;

/// Charged calls of all workers on one day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spent {
    /// The beginning of the day.
    pub day: Timestamp,
    /// The calls.
    pub calls: u64,
}

/// What one worker knows of the day's calls. `own` are always its charged calls since its start.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spending {
    /// As the state document said, or was told, last.
    known: Option<Spent>,
    /// Own calls that are in that already.
    included: u64,
}

impl Spending {
    /// Takes what the document says.
    pub fn read(&mut self, spent: Option<Spent>) {
        self.known = spent;
    }

    /// The day's calls of all workers, as far as they are known.
    pub fn today(&self, now: Timestamp, own: u64) -> Spent {
        let day = day(now);
        let known = self.known.filter(|spent| spent.day == day);
        let calls = known.map_or(0, |spent| spent.calls);
        Spent {
            day,
            calls: calls.saturating_add(own.saturating_sub(self.included)),
        }
    }

    /// Notes that the document says `spent` now, with so many own calls in it.
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
    fn yesterday_does_not_count() {
        let mut spending = Spending::default();
        spending.read(Some(Spent {
            day: at("2026-11-21T00:00:00Z"),
            calls: 700,
        }));
        assert_eq!(spending.today(at("2026-11-21T12:00:00Z"), 3).calls, 703);
        assert_eq!(spending.today(at("2026-11-22T00:00:00Z"), 3).calls, 3);
    }

    proptest! {
        /// Two workers that write in turns: each call is counted once.
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
                // Of the other one only what it has not written yet is missing.
                prop_assert_eq!(others, workers[1 - at].1 - workers[1 - at].0.included);
            }
        }
    }
}
