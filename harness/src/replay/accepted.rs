//! The recordings that differ in a known way, so that a replay names those that became worse.
//!
//! A line of the file names a recording and what differs in it: operations and aspects, no values.

use std::collections::{BTreeMap, BTreeSet};

use super::report::{RecordingRow, Report};

/// What differs, by recording.
pub type Accepted = BTreeMap<String, BTreeSet<String>>;

const SEPARATOR: &str = "; ";
/// The difference of a recording that has not passed without a failed interaction.
const INCOMPLETE: &str = "not every interaction was compared";

/// Returns what differs in the recordings of a report that have not passed.
pub fn of(report: &Report) -> Accepted {
    let failed = report.rows.iter().filter(|row| !row.passed && !row.excused);
    let named = failed.map(|row| (row.recording.clone(), differing(row).into_keys().collect()));
    named.collect()
}

/// Returns what differs in a recording, each with the first interaction that shows it.
fn differing(row: &RecordingRow) -> BTreeMap<String, Option<usize>> {
    let mut found = BTreeMap::new();
    for failure in &row.failures {
        for difference in &failure.differences {
            let name = format!("{} {:?}", failure.operation, difference.aspect);
            found.entry(name).or_insert(Some(failure.n));
        }
    }
    if found.is_empty() && !row.passed && !row.excused {
        found.insert(INCOMPLETE.to_owned(), None);
    }
    found
}

/// Parses the file.
///
/// # Errors
/// The first line that does not have a recording and what differs.
pub fn read(text: &str) -> Result<Accepted, String> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let entry = |line: &str| {
        let (recording, differs) = line.split_once('\t').ok_or_else(|| {
            format!("invalid line `{line}`: write a recording, a tab, and what differs in it")
        })?;
        let differs = differs.split(SEPARATOR).map(str::to_owned).collect();
        Ok((recording.to_owned(), differs))
    };
    lines.map(entry).collect()
}

/// Writes the file.
pub fn write(accepted: &Accepted) -> String {
    let lines = accepted.iter().map(|(recording, differs)| {
        let differs: Vec<&str> = differs.iter().map(String::as_str).collect();
        format!("{recording}\t{}\n", differs.join(SEPARATOR))
    });
    let head = "# Written by `harness replay --accept`: recordings and what differs in them.\n";
    std::iter::once(head.to_owned()).chain(lines).collect()
}

/// Replaces the entries of the recordings that a report has.
pub fn replaced(mut accepted: Accepted, report: &Report) -> Accepted {
    for row in &report.rows {
        accepted.remove(&row.recording);
    }
    accepted.extend(of(report));
    accepted
}

/// Describes each new difference of a recording.
pub fn worse(report: &Report, accepted: &Accepted) -> Vec<String> {
    let mut lines = Vec::new();
    for row in &report.rows {
        let known = accepted.get(&row.recording);
        for (differs, n) in differing(row) {
            if known.is_some_and(|known| known.contains(&differs)) {
                continue;
            }
            let at = n.map_or_else(String::new, |n| format!(", interaction {n}"));
            lines.push(format!("worse: {}{at}: {differs}", row.recording));
        }
    }
    lines
}

/// Names the recordings that no longer differ in something accepted.
pub fn better(report: &Report, accepted: &Accepted) -> Vec<String> {
    let improved = report.rows.iter().filter(|row| {
        let now = differing(row);
        let known = accepted.get(&row.recording);
        known.is_some_and(|known| known.iter().any(|differs| !now.contains_key(differs)))
    });
    improved
        .map(|row| format!("better: {}", row.recording))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::compare::{Aspect, Difference};
    use crate::replay::report::{Failure, Tally};

    fn row(recording: &str, aspects: &[Aspect]) -> RecordingRow {
        let difference = |aspect: &Aspect| Difference {
            aspect: *aspect,
            at: String::new(),
            recorded: "secret".to_owned(),
            live: "secret".to_owned(),
        };
        RecordingRow {
            recording: recording.to_owned(),
            passed: aspects.is_empty(),
            excused: false,
            in_slice: true,
            tally: Tally::default(),
            setup_problems: Vec::new(),
            failures: vec![Failure {
                n: 7,
                operation: "Put Blob".to_owned(),
                differences: aspects.iter().map(difference).collect(),
            }],
            excuses: Vec::new(),
        }
    }

    fn report(rows: Vec<RecordingRow>) -> Report {
        Report {
            rows,
            ..Report::default()
        }
    }

    /// The file names what differs and holds no value of a recording.
    #[test]
    fn file_is_read_as_it_was_written() {
        let accepted = of(&report(vec![
            row("a", &[Aspect::Status, Aspect::Body]),
            row("b", &[]),
        ]));
        let text = write(&accepted);
        assert!(
            text.ends_with("a\tPut Blob Body; Put Blob Status\n"),
            "{text}"
        );
        assert_eq!(read(&text), Ok(accepted));
        assert!(read("a recording alone").is_err());
    }

    /// A replay names what became worse or better, and an update leaves other recordings alone.
    #[test]
    fn only_new_differences_are_worse() {
        let before = report(vec![row("a", &[Aspect::Body]), row("b", &[Aspect::Body])]);
        let accepted = of(&before);
        assert!(worse(&before, &accepted).is_empty() && better(&before, &accepted).is_empty());
        let now = report(vec![row("a", &[Aspect::Status, Aspect::Body])]);
        let expected = ["worse: a, interaction 7: Put Blob Status"];
        assert_eq!(worse(&now, &accepted), expected);
        assert!(better(&now, &accepted).is_empty());
        let now = report(vec![row("a", &[]), row("c", &[Aspect::Status])]);
        let expected = ["worse: c, interaction 7: Put Blob Status"];
        assert_eq!(worse(&now, &accepted), expected);
        assert_eq!(better(&now, &accepted), ["better: a"]);
        let names: Vec<String> = replaced(accepted, &now).into_keys().collect();
        assert_eq!(names, ["b", "c"]);
    }
}
