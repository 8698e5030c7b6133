//! The finding of a rule, and the test failure that reports it.

use std::fmt;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    /// The file, relative to the root of the tree.
    pub(crate) path: String,
    /// The line, from 1; 0 for the whole file.
    pub(crate) line: usize,
    pub(crate) what: String,
}

impl Finding {
    /// Returns a violation at a line.
    pub(crate) fn new(path: &str, line: usize, what: impl Into<String>) -> Self {
        Finding {
            path: path.to_owned(),
            line,
            what: what.into(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.what)
    }
}

/// Fails with every finding, one per line.
pub(crate) fn hold(rule: &str, mut findings: Vec<Finding>) {
    findings.sort();
    let lines: Vec<_> = findings.iter().map(|f| format!("\n  {f}")).collect();
    assert!(findings.is_empty(), "{rule}:{}", lines.concat());
}

#[test]
#[should_panic(expected = "short files:\n  a.rs:3: too long\n  b.rs:0: stale")]
fn a_finding_is_reported_with_its_location() {
    let findings = vec![
        Finding::new("b.rs", 0, "stale"),
        Finding::new("a.rs", 3, "too long"),
    ];
    hold("short files", findings);
}
