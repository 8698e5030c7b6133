//! Limits the number of lines of Rust in each package, including tests, so that growth is
//! deliberate.
//!
//! A commit that needs more lines raises the package's number and gives the reason, in the row and
//! in its message; one that needs [`SLACK`] fewer lowers it.

use std::collections::BTreeMap;

use crate::finding::Finding;
use crate::tree::Source;

/// Number of lines by which a package may stay below its limit.
const SLACK: usize = 1_000;

/// A package's folder, its maximum number of lines, and the reason for the last increase.
type Row = (&'static str, usize, &'static str);

/// The limits of the packages.
pub(crate) const LINES: &[Row] = &[
    (
        "protocol/",
        15_040,
        "Rights in listings of blobs, limits of paths.",
    ),
    (
        "emulator/",
        85_930,
        "Every mode of the store against one model; a log that is cut twice.",
    ),
    (
        "sleeve/",
        9_910,
        "Silent TLS, and requests that a kept connection took.",
    ),
    (
        "sweeper/",
        20_510,
        "Removals of a cycle, counted by a model.",
    ),
    ("listener/", 29_440, "A depth that is told late."),
    ("worker/", 1_990, ""),
    (
        "harness/",
        69_560,
        "Resizes that are taken back; what each life of a worker owes.",
    ),
    ("harness/fuzz/", 89, ""),
    (
        "harness/model/",
        8_300,
        "Files that expire, and searches by comparison.",
    ),
    ("harness/planted/", 573, ""),
    ("harness/shim/", 833, ""),
];

/// Maximum lines of all packages together. It falls with them.
pub(crate) const TOTAL: usize = 242_080;

/// Returns packages above their limit or far below it.
pub(crate) fn judge(sources: &[Source], rows: &[Row], total: usize) -> Vec<Finding> {
    let mut lines: BTreeMap<&str, usize> = rows.iter().map(|row| (row.0, 0)).collect();
    let mut findings = Vec::new();
    for source in sources {
        let package = rows.iter().map(|row| row.0);
        let package = package.filter(|package| source.path.starts_with(package));
        match package.max_by_key(|package| package.len()) {
            Some(package) => *lines.entry(package).or_default() += source.lines.len(),
            None => findings.push(Finding::new(&source.path, 0, "has no row in LINES")),
        }
    }
    let held = rows
        .iter()
        .map(|(package, most, _)| (*package, lines[package], *most));
    let all = ("all packages", lines.values().sum(), total);
    for (package, found, most) in held.chain([all]) {
        if found > most {
            let what =
                format!("{found} lines, limit {most}: remove some, or raise the limit and say why");
            findings.push(Finding::new(package, 0, what));
        } else if found + SLACK < most {
            let what = format!("{found} lines: lower its limit {most}");
            findings.push(Finding::new(package, 0, what));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: &[Row] = &[("a/", 1_002, ""), ("a/b/", 2, "")];

    fn told(files: &[(&str, usize)], total: usize) -> Vec<String> {
        let source = |(path, lines): &(&str, usize)| Source::new(path, &"\n".repeat(*lines));
        let sources: Vec<_> = files.iter().map(source).collect();
        let findings = judge(&sources, ROWS, total);
        findings.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn growth_and_excessive_limits_are_found() {
        assert_eq!(told(&[("a/x.rs", 2), ("a/b/x.rs", 2)], 4), [""; 0]);
        assert_eq!(
            told(&[("a/x.rs", 1), ("a/b/x.rs", 3), ("c.rs", 1)], 3),
            [
                "c.rs:0: has no row in LINES",
                "a/:0: 1 lines: lower its limit 1002",
                "a/b/:0: 3 lines, limit 2: remove some, or raise the limit and say why",
                "all packages:0: 4 lines, limit 3: remove some, or raise the limit and say why",
            ]
        );
    }
}
