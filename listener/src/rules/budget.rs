//! The money budget: when the day's requests would cost more, no message is taken until the next
//! day. Pure.
//!
//! The day is the service's, in UTC: its clock is known from the answers to gets. Before the first
//! of them the day is the process's own, from its start.
//!
//! Only gets are held back, and what keeps a pool going beside them. What is in hand is renewed,
//! handled and settled whatever it costs; so that this, too, is within the money, a get has to be
//! affordable together with a delete for each message in hand and each that it may bring.

use std::time::Duration;

use smalt_protocol::Timestamp;
use smalt_worker::budget::{Budget, DAY, day};

/// The requests of a day, as one process has counted them. Times are since any fixed moment.
#[derive(Clone, Debug)]
pub struct Spending {
    budget: Option<Budget>,
    /// The service's time, and when it was told.
    told: Option<(Timestamp, Duration)>,
    /// The beginning of the day.
    day: Timestamp,
    requests: u64,
    /// A get was refused today.
    is_spent: bool,
    /// A get was refused on the day before, and none was made since.
    was_spent: bool,
}

/// A get that can be paid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Afforded {
    /// Like the one before it.
    AsBefore,
    /// The first one after a day on which gets were refused.
    Again,
}

/// A get that the day's money does not suffice for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Refused {
    /// How long until the next day.
    pub wait: Duration,
    /// It is the first one of the day.
    pub is_first: bool,
}

/// How much of a day's budget is spent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Today {
    /// The budget.
    pub budget: Budget,
    /// Requests of the day.
    pub requests: u64,
    /// Once a get was refused: when the next day begins, by the service; `None` inside where its
    /// time is not known.
    pub spent_until: Option<Option<Timestamp>>,
}

impl Today {
    /// What the requests cost.
    pub fn cost(&self) -> f64 {
        self.budget.cost(self.requests)
    }

    /// Whether a get was refused: nothing more is taken today.
    pub fn is_spent(&self) -> bool {
        self.spent_until.is_some()
    }

    /// When gets go on, in words; `None` while they do.
    pub fn resumes(&self) -> Option<String> {
        let until = self.spent_until?;
        let words = || "a day after the start".to_owned();
        Some(until.map_or_else(words, Timestamp::iso_s))
    }

    /// What is said when the money is spent.
    pub fn spent(&self) -> Option<String> {
        let until = self.resumes()?;
        let (max, requests, cost) = (self.budget.max_cost_per_day, self.requests, self.cost());
        Some(format!(
            "the day's budget of {max} is spent: {requests} requests cost {cost:.6}, and a get \
             with its deletes would cost more; messages are taken again after {until}, or with a \
             higher max_cost_per_day"
        ))
    }
}

impl Spending {
    /// Nothing spent yet.
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

    /// Takes in the service's time of an answer that has just come.
    pub fn told(&mut self, server_time: Timestamp, now: Duration) {
        self.roll(now);
        if self.told.is_none() {
            // What was sent before belongs to this day.
            self.day = day(server_time);
        }
        self.told = Some((server_time, now));
        self.roll(now);
    }

    /// Counts a request.
    pub fn count(&mut self, now: Duration) {
        self.roll(now);
        self.requests = self.requests.saturating_add(1);
    }

    /// Counts a get if it can be paid together with the `in_hand` deletes that are then owed.
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

    /// How much is spent; `None` without a budget.
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

    /// A new day begins with nothing spent. A clock that is set back brings no day back.
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

    /// For so many requests.
    fn budget(requests: u32) -> Budget {
        Budget {
            max_cost_per_day: f64::from(requests) * 1e-6,
            price_per_10k: 0.01,
        }
    }

    /// A get is refused that could not be paid with what it brings; settling is counted on.
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

    /// A service that has not told its time; and one that sets its clock back.
    #[test]
    fn clocks_may_be_odd() {
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
    fn without_a_budget_all_goes() {
        let mut spending = Spending::new(None);
        assert_eq!(spending.get(u64::MAX, s(0)), Ok(Afforded::AsBefore));
        assert_eq!(spending.today(s(0)), None);
    }
}
