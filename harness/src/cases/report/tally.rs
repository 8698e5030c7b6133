//! Counts of checks, by service, operation and aspect.

use std::collections::BTreeMap;

use super::Of;
use crate::cases::checks::Outcome;
use crate::cases::expect::Aspect;

/// Counts of checks by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Checks that hold.
    pub passed: u64,
    /// Checks that fail because of a known deviation.
    pub expected: u64,
    /// Checks that fail.
    pub failed: u64,
    /// Checks that could not run.
    pub blocked: u64,
}

impl Tally {
    /// Counts one check.
    pub fn add(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Passed => self.passed += 1,
            Outcome::Expected => self.expected += 1,
            Outcome::Failed => self.failed += 1,
            Outcome::Blocked => self.blocked += 1,
        }
    }

    /// Returns the number of checks.
    pub const fn all(&self) -> u64 {
        self.passed + self.expected + self.failed + self.blocked
    }

    /// Returns the percentage of checks that hold; `None` without checks.
    pub fn percent(&self) -> Option<f64> {
        let all = self.all();
        (all > 0).then(|| self.passed as f64 * 100.0 / all as f64)
    }

    /// Returns `99.5 %`, or a dash without checks. Only complete success gives 100.
    pub fn share(&self) -> String {
        match self.percent() {
            None => "-".to_owned(),
            Some(percent) if percent < 100.0 => format!("{:.1} %", percent.min(99.9)),
            Some(_) => "100 %".to_owned(),
        }
    }

    /// Returns the number of checks, after that of those that hold when not all do.
    pub fn count(&self) -> String {
        match self.all() {
            all if all == self.passed => all.to_string(),
            all => format!("{}/{all}", self.passed),
        }
    }
}

impl FromIterator<Outcome> for Tally {
    fn from_iter<I: IntoIterator<Item = Outcome>>(outcomes: I) -> Self {
        let mut tally = Tally::default();
        for outcome in outcomes {
            tally.add(outcome);
        }
        tally
    }
}

/// A row of the map: service and operation id.
pub type Operation = (String, String);

/// Counts of one target by operation and aspect.
pub type Cells = BTreeMap<(Operation, Aspect), Tally>;

/// Counts the checks of a target by operation and aspect.
pub fn cells(of: &Of) -> Cells {
    let mut cells = Cells::new();
    for scenario in &of.scenarios {
        for (call, check) in scenario.checks() {
            let operation = (scenario.service.clone(), call.operation.clone());
            let cell = cells.entry((operation, check.aspect)).or_default();
            cell.add(check.outcome);
        }
    }
    cells
}

/// Counts the checks of a target by service and aspect; `None` stands for all aspects.
pub fn by_service(of: &Of) -> BTreeMap<(String, Option<Aspect>), Tally> {
    let mut sums = BTreeMap::new();
    for scenario in &of.scenarios {
        for (_, check) in scenario.checks() {
            for aspect in [None, Some(check.aspect)] {
                let sum: &mut Tally = sums.entry((scenario.service.clone(), aspect)).or_default();
                sum.add(check.outcome);
            }
        }
    }
    sums
}

/// Returns all implemented operations, in the order of the register.
pub fn operations() -> Vec<(Operation, &'static str)> {
    smalt::register::all()
        .filter(|entry| entry.is_built())
        .map(|entry| {
            let row = (entry.service.as_str().to_owned(), entry.id.to_owned());
            (row, entry.title)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_include_blocked_checks() {
        let tally: Tally = [
            Outcome::Passed,
            Outcome::Passed,
            Outcome::Passed,
            Outcome::Blocked,
        ]
        .into_iter()
        .collect();
        assert_eq!(tally.percent(), Some(75.0));
        assert_eq!(Tally::default().percent(), None);
        assert!(operations().len() >= 90);
    }
}
