//! Marks that a campaign must have seen: a check that never met the trouble it is for shows
//! nothing.
//!
//! A run counts its marks from the history alone. Each scenario names a short closed list of marks
//! ([`super::campaign::Scenario::SOMETIMES`]); a campaign of at least [`CASES_MIN`] runs fails when
//! it never saw one of them, or one kind of the planned faults.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::account::Tally;

/// Number of runs from which on a campaign must have seen every mark.
pub const CASES_MIN: u64 = 200;

/// The clock of a worker was ahead of the service's and is behind now, or the other way round.
pub const DRIFTED: &str = "clock drifted past the service's";

/// Number of times that each mark was seen.
pub type Marks = BTreeMap<&'static str, u64>;

/// Counts a mark once more.
pub fn mark(marks: &mut Marks, mark: &'static str) {
    *marks.entry(mark).or_default() += 1;
}

/// Properties, each with the marks that put it to the test.
pub type Tests = &'static [(&'static str, &'static [&'static str])];

/// Counts how often each property was put to the test; a property is a mark of its own.
pub fn tested(marks: &mut Marks, tests: Tests) {
    for (property, events) in tests {
        let count = events.iter().filter_map(|event| marks.get(event)).sum();
        if count > 0 {
            marks.insert(property, count);
        }
    }
}

/// Describes the marks and faults that a campaign of `cases` runs should have seen but has not.
pub fn missing(
    sometimes: &[&'static str],
    cases: u64,
    marks: &Marks,
    faults: &Tally,
) -> Vec<String> {
    if cases < CASES_MIN {
        return Vec::new();
    }
    let unseen = sometimes.iter().filter(|mark| !marks.contains_key(*mark));
    let unseen = unseen.map(|mark| format!("never seen: {mark}"));
    let unfired = faults.never_fired().into_iter();
    unseen
        .chain(unfired.map(|kind| format!("never fired: {kind}")))
        .collect()
}

/// Formats the marks as a table: the closed list first, then all others.
pub fn table(sometimes: &[&'static str], marks: &Marks) -> String {
    let mut text = String::new();
    let mut line = |name: &str, count: u64, must: &str| {
        let _ = writeln!(text, "  {name:<44} {count:>7}{must}");
    };
    for mark in sometimes {
        line(
            mark,
            marks.get(mark).copied().unwrap_or(0),
            "  must be seen",
        );
    }
    for (mark, count) in marks.iter().filter(|(mark, _)| !sometimes.contains(mark)) {
        line(mark, *count, "");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A campaign that saw nothing does not pass.
    #[test]
    fn unseen_marks_are_missing() {
        let (wanted, none, faults) = (["lost", "won"], Marks::new(), Tally::default());
        assert_eq!(missing(&wanted, CASES_MIN, &none, &faults).len(), 2);
        assert_eq!(missing(&wanted, CASES_MIN - 1, &none, &faults).len(), 0);
        let (mut marks, mut faults) = (Marks::new(), Tally::default());
        mark(&mut marks, "lost");
        faults.count("answer lost", Some("no such request was sent"));
        let expected = ["never seen: won", "never fired: answer lost"];
        assert_eq!(missing(&wanted, CASES_MIN, &marks, &faults), expected);
        assert!(table(&wanted, &marks).contains("won"));
    }
}
