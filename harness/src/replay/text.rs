//! The report as a table for people.

use std::fmt::Write as _;

use super::compare::Aspect;
use super::report::{Report, Tally, percent};

/// The columns, in order.
const ASPECTS: [(Aspect, &str); 6] = [
    (Aspect::Status, "status"),
    (Aspect::Code, "code"),
    (Aspect::HeaderNames, "names"),
    (Aspect::HeaderValues, "values"),
    (Aspect::Body, "body"),
    (Aspect::Relations, "relat."),
];
/// Longest value in the list of failures; longer ones are truncated.
const SHOWN_LENGTH: usize = 160;
/// Most unused rules that are named; more are unused only with part of a corpus.
const RULES_NAMED_MAX: usize = 10;

/// Formats the operations, the totals, and the rules that were never used.
pub fn table(report: &Report) -> String {
    let mut out = String::new();
    let width = report
        .operations
        .keys()
        .map(|name| name.chars().count())
        .max()
        .unwrap_or(9)
        .max(9);
    let mut head = format!("{:width$} {:>6} {:>7}", "operation", "n", "pass %");
    for (_, name) in ASPECTS {
        let _ = write!(head, " {name:>7}");
    }
    let _ = writeln!(out, "{head} {:>7} {:>7}", "n/built", "excused");
    for (name, tally) in &report.operations {
        line(&mut out, width, name, tally);
    }
    for (name, tally) in &report.services {
        line(&mut out, width, &format!("all {name}"), tally);
    }
    line(&mut out, width, "all", &report.total);
    let _ = writeln!(
        out,
        "recordings: {} of {} passed ({:.1} %); {} more need an operation that is not implemented",
        report.recordings_passed,
        report.recordings,
        percent(report.recordings_passed, report.recordings),
        report.recordings_not_built,
    );
    excused(&mut out, report);
    let problems = report
        .rows
        .iter()
        .filter(|row| !row.setup_problems.is_empty())
        .count();
    if problems > 0 {
        let _ = writeln!(out, "recordings whose setup failed: {problems}");
    }
    let unused = report.rules.iter().filter(|rule| rule.is_idle());
    let unused: Vec<&str> = unused.map(|rule| rule.rule.as_str()).collect();
    let named = match unused.len() {
        0 => return out,
        // Part of a corpus leaves most rules unused.
        count if count > RULES_NAMED_MAX => format!("{count} (--json names them)"),
        _ => unused.join(", "),
    };
    let _ = writeln!(out, "unused relaxed comparisons: {named}");
    out
}

/// Formats the excused interactions and their reasons.
fn excused(out: &mut String, report: &Report) {
    if report.total.excused > 0 {
        let _ = writeln!(
            out,
            "excused: {} interactions; {} complete recordings, in no rate; {} passed without these",
            report.total.excused, report.recordings_excused, report.recordings_in_part,
        );
    }
    for (why, count) in &report.excuses {
        let _ = writeln!(out, "{count:>6}  {why}");
    }
    if !report.silenced_by.is_empty() {
        let _ = writeln!(
            out,
            "started again {} times, as no answer came any more after: {}",
            report.silenced_by.len(),
            report.silenced_by.join(", "),
        );
    }
}

fn line(out: &mut String, width: usize, name: &str, tally: &Tally) {
    if tally.compared == 0 {
        let _ = write!(out, "{name:width$} {:>6} {:>7}", 0, "-");
        for _ in ASPECTS {
            let _ = write!(out, " {:>7}", "-");
        }
    } else {
        let _ = write!(
            out,
            "{name:width$} {:>6} {:>7.1}",
            tally.compared,
            tally.pass_rate()
        );
        for (aspect, _) in ASPECTS {
            let _ = write!(out, " {:>7.1}", tally.rate(aspect));
        }
    }
    let _ = writeln!(out, " {:>7} {:>7}", tally.not_built, tally.excused);
}

/// Formats the first `count` failing interactions with all their differences.
pub fn failures(report: &Report, count: usize) -> String {
    let mut out = String::new();
    let rows = report
        .rows
        .iter()
        .flat_map(|row| row.failures.iter().map(move |f| (row, f)));
    for (row, failure) in rows.take(count) {
        let _ = writeln!(
            out,
            "{} #{} {}",
            row.recording, failure.n, failure.operation
        );
        for d in &failure.differences {
            let (recorded, live) = (shown(&d.recorded), shown(&d.live));
            let _ = writeln!(
                out,
                "  {:?} {}: recorded {recorded}; live {live}",
                d.aspect, d.at
            );
        }
    }
    for row in report
        .rows
        .iter()
        .filter(|row| !row.setup_problems.is_empty())
        .take(count)
    {
        let _ = writeln!(
            out,
            "{} set-up: {}",
            row.recording,
            row.setup_problems.join("; ")
        );
    }
    out
}

fn shown(text: &str) -> String {
    let cut: String = text.chars().take(SHOWN_LENGTH).collect();
    let dots = if cut.len() < text.len() { "..." } else { "" };
    format!("{cut:?}{dots}")
}
