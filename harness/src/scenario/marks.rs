//! What a campaign must have seen: a check that never came near its trouble has shown nothing.
//!
//! A run counts what happened in it, by the history alone. Each scenario names a short closed list
//! of marks ([`super::campaign::Scenario::SOMETIMES`]); a campaign of [`CASES_MIN`] runs or more
//! fails when one of them, or one kind of the planned faults, was never seen.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::account::Tally;

/// Runs from which on everything must have been seen.
pub const CASES_MIN: u64 = 200;

/// How often each thing was seen.
pub type Marks = BTreeMap<&'static str, u64>;

/// Counts one more.
pub fn mark(marks: &mut Marks, mark: &'static str) {
    *marks.entry(mark).or_default() += 1;
}

/// What a campaign of so many runs should have seen and has not.
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

/// The marks as a table: the closed list first, then what else was counted.
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

    /// An empty campaign does not pass.
    #[test]
    fn what_was_never_seen_is_missing() {
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
