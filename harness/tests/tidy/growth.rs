//! How many lines of Rust each package has, tests included: a number that is raised on purpose.
//!
//! What a package may have stands below. A commit that needs more raises the number and says why,
//! in the row and in its message; one that needs [`SLACK`] less lowers it.

use std::collections::BTreeMap;

use crate::finding::Finding;
use crate::tree::Source;

/// Lines by which a package may stay below its number.
const SLACK: usize = 1_000;

/// A package's folder, its lines at most, and why the number was raised last.
type Row = (&'static str, usize, &'static str);

/// The packages.
pub(crate) const LINES: &[Row] = &[
    ("protocol/", 14_779, ""),
    ("emulator/", 73_505, ""),
    ("sleeve/", 8092, ""),
    ("sweeper/", 20_068, ""),
    ("listener/", 27_161, ""),
    ("worker/", 1798, ""),
    ("harness/", 66_652, ""),
    ("harness/fuzz/", 89, ""),
    ("harness/model/", 5254, "The search of the bursts steps it."),
    ("harness/planted/", 573, ""),
    ("harness/shim/", 833, ""),
];

/// Lines of all packages together. It falls with them.
pub(crate) const TOTAL: usize = 218_784;

/// Packages that have grown beyond their number or fallen far below it.
pub(crate) fn judge(sources: &[Source], rows: &[Row], total: usize) -> Vec<Finding> {
    let mut lines: BTreeMap<&str, usize> = rows.iter().map(|row| (row.0, 0)).collect();
    let mut findings = Vec::new();
    for source in sources {
        let package = rows.iter().map(|row| row.0);
        let package = package.filter(|package| source.path.starts_with(package));
        match package.max_by_key(|package| package.len()) {
            Some(package) => *lines.entry(package).or_default() += source.lines.len(),
            None => findings.push(Finding::new(&source.path, 0, "is in no row of LINES")),
        }
    }
    let held = rows
        .iter()
        .map(|(package, most, _)| (*package, lines[package], *most));
    let all = ("all packages", lines.values().sum(), total);
    for (package, found, most) in held.chain([all]) {
        if found > most {
            let what =
                format!("{found} lines, {most} at most: remove some, or raise it and say why");
            findings.push(Finding::new(package, 0, what));
        } else if found + SLACK < most {
            let what = format!("{found} lines: lower the {most} that it may have");
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
    fn growth_is_found_and_so_is_a_number_that_is_too_high() {
        assert_eq!(told(&[("a/x.rs", 2), ("a/b/x.rs", 2)], 4), [""; 0]);
        assert_eq!(
            told(&[("a/x.rs", 1), ("a/b/x.rs", 3), ("c.rs", 1)], 3),
            [
                "c.rs:0: is in no row of LINES",
                "a/:0: 1 lines: lower the 1002 that it may have",
                "a/b/:0: 3 lines, 2 at most: remove some, or raise it and say why",
                "all packages:0: 4 lines, 3 at most: remove some, or raise it and say why",
            ]
        );
    }
}
