//! The daily budget: when the day's requests would cost more, no message is received until the next
//! day. Without I/O or clock.
//!
//! The day is the service's, in UTC, known from the answers to gets. Before the first answer the
//! day is the process's own, from its start.
//!
//! Only gets, and the other requests that keep a pool polling, are refused. Messages in hand are
//! renewed, handled and settled whatever that costs. To keep this within the budget as well, a get
//! is allowed only if a delete for each message in hand, and for each that it may return, is
//! affordable.

use std::time::Duration;

use smalt_protocol::Timestamp;
use smalt_worker::budget::{Budget, DAY, day};

/// The requests of a day, as counted by one process. Times count from any fixed moment.
#[derive(Clone, Debug)]
pub struct Spending {
    budget: Option<Budget>,
    /// The service's time of the latest answer, and when it arrived.
    told: Option<(Timestamp, Duration)>,
    /// Beginning of the day.
    day: Timestamp,
    requests: u64,
    /// Whether a get was refused today.
    is_spent: bool,
    /// Whether a get was refused on the previous day and none was made since.
    was_spent: bool,
}

/// A get that the budget allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Afforded {
    /// The previous get was allowed as well.
    AsBefore,
    /// The first get after a day on which gets were refused.
    Again,
}

/// A get that the budget does not allow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Refused {
    /// Time until the next day.
    pub wait: Duration,
    /// Whether this is the first refusal of the day.
    pub is_first: bool,
}

/// The state of a day's budget.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Today {
    /// The configured budget.
    pub budget: Budget,
    /// Requests made today.
    pub requests: u64,
    /// Set once a get was refused: the beginning of the service's next day, or `Some(None)` if its
    /// time is unknown.
    pub spent_until: Option<Option<Timestamp>>,
}

impl Today {
    /// Returns the cost of the day's requests.
    pub fn cost(&self) -> f64 {
        self.budget.cost(self.requests)
    }

    /// Returns whether a get was refused, so that nothing more is received today.
    pub fn is_spent(&self) -> bool {
        self.spent_until.is_some()
    }

    /// Describes when gets resume; `None` unless the budget is spent.
    pub fn resumes(&self) -> Option<String> {
        let until = self.spent_until?;
        let words = || "a day after the start".to_owned();
        Some(until.map_or_else(words, Timestamp::iso_s))
    }

    /// Describes the spent budget; `None` unless it is spent.
    pub fn spent(&self) -> Option<String> {
        let until = self.resumes()?;
        let (max, requests, cost) = (self.budget.max_cost_per_day, self.requests, self.cost());
        Some(format!(
            "the day's budget of {max} is spent: {requests} requests cost {cost:.6}, and a get \
             with its deletes would cost more; messages are received again after {until} or with a \
             higher max_cost_per_day"
        ))
    }
}

impl Spending {
    /// Creates a day without requests.
    pub fn new(budget: Option<Budget>) -> Self {
        Spending {
            budget,
            told: None,
            day: Timestamp::UNIX_EPOCH,
            requests: 0,
            is_spent: false,
            was_spent: false,
        }
    }

    /// Records the service's time from an answer that just arrived.
    pub fn told(&mut self, server_time: Timestamp, now: Duration) {
        self.roll(now);
        if self.told.is_none() {
            // Requests sent before the first answer belong to this day.
            self.day = day(server_time);
        }
        self.told = Some((server_time, now));
        self.roll(now);
    }

    /// Counts a request of the current day.
    pub fn count(&mut self, now: Duration) {
        self.roll(now);
        self.requests = self.requests.saturating_add(1);
    }

    /// Counts a get if it is affordable together with the `in_hand` deletes that it can lead to.
    pub fn get(&mut self, in_hand: u64, now: Duration) -> Result<Afforded, Refused> {
        self.roll(now);
        let exceeds = |budget: Budget| budget.is_exceeded(self.requests, in_hand.saturating_add(1));
        if !self.budget.is_some_and(exceeds) {
            self.requests = self.requests.saturating_add(1);
            return Ok(match std::mem::take(&mut self.was_spent) {
                true => Afforded::Again,
                false => Afforded::AsBefore,
            });
        }
        let is_first = !std::mem::replace(&mut self.is_spent, true);
        let next = self.day.plus(DAY);
        Err(Refused {
            wait: next.since(self.now(now)),
            is_first,
        })
    }

    /// Returns the state of the budget; `None` without a budget.
    pub fn today(&mut self, now: Duration) -> Option<Today> {
        self.roll(now);
        let until = self.told.map(|_| self.day.plus(DAY));
        Some(Today {
            budget: self.budget?,
            requests: self.requests,
            spent_until: self.is_spent.then_some(until),
        })
    }

    fn now(&self, now: Duration) -> Timestamp {
        let (time, at) = self.told.unwrap_or((Timestamp::UNIX_EPOCH, Duration::ZERO));
        time.plus(now.saturating_sub(at))
    }

    /// Starts a new day with nothing spent. A clock that is set back does not return to an earlier
    /// day.
    fn roll(&mut self, now: Duration) {
        let today = day(self.now(now));
        if today > self.day {
            self.day = today;
            self.requests = 0;
            self.was_spent |= std::mem::take(&mut self.is_spent);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn at(text: &str) -> Timestamp {
        Timestamp::parse_iso(text).unwrap()
    }

    fn budget(requests: u32) -> Budget {
        Budget {
            max_cost_per_day: f64::from(requests) * 1e-6,
            price_per_10k: 0.01,
        }
    }

    /// A get is refused if settling its messages would be unaffordable; settling itself is never
    /// refused.
    #[test]
    fn deletes_are_reserved_and_never_refused() {
        let mut spending = Spending::new(Some(budget(10)));
        assert_eq!(spending.get(9, s(0)), Ok(Afforded::AsBefore));
        for _ in 0..9 {
            spending.count(s(0));
        }
        assert!(spending.get(0, s(0)).is_err_and(|refused| refused.is_first));
        assert!(
            spending
                .get(0, s(0))
                .is_err_and(|refused| !refused.is_first)
        );
        spending.count(s(0));
        assert_eq!(spending.today(s(0)).unwrap().requests, 11);
        assert!(Spending::new(Some(budget(10))).get(10, s(0)).is_err());
    }

    #[test]
    fn the_day_ends_at_midnight_of_the_service() {
        let mut spending = Spending::new(Some(budget(10)));
        spending.count(s(0));
        spending.told(at("2026-11-21T23:59:00Z"), s(5));
        assert_eq!(spending.today(s(5)).unwrap().requests, 1);
        let refused = spending.get(99, s(15)).unwrap_err();
        assert_eq!((refused.wait, refused.is_first), (s(50), true));
        let today = spending.today(s(64)).unwrap();
        assert_eq!(today.resumes().unwrap(), "2026-11-22T00:00:00Z");
        assert!(today.spent().unwrap().contains("1 requests cost 0.000001"));
        let tomorrow = spending.today(s(65)).unwrap();
        assert_eq!((tomorrow.requests, tomorrow.spent_until), (0, None));
        assert_eq!((tomorrow.resumes(), tomorrow.spent()), (None, None));
        assert!(spending.get(99, s(66)).unwrap_err().is_first);
    }

    /// A service whose time is unknown, and one that sets its clock back.
    #[test]
    fn unknown_and_reset_clocks_are_tolerated() {
        let mut spending = Spending::new(Some(budget(1)));
        let refused = spending.get(1, s(60)).unwrap_err();
        assert_eq!(refused.wait, DAY - s(60));
        let words = spending.today(s(60)).unwrap().resumes().unwrap();
        assert_eq!(words, "a day after the start");
        assert_eq!(spending.get(0, DAY), Ok(Afforded::Again));
        assert!(spending.get(0, DAY).is_err());
        spending.told(at("2026-11-22T00:00:01Z"), DAY);
        spending.told(at("2026-11-21T23:59:59Z"), DAY + s(1));
        assert_eq!(spending.today(DAY + s(2)).unwrap().requests, 1);
    }

    #[test]
    fn without_a_budget_every_get_is_allowed() {
        let mut spending = Spending::new(None);
        assert_eq!(spending.get(u64::MAX, s(0)), Ok(Afforded::AsBefore));
        assert_eq!(spending.today(s(0)), None);
    }
}
