//! The report for a terminal.

use std::fmt::Write as _;

use super::tally::by_service;
use super::{Of, Report};
use crate::cases::case::Case;
use crate::cases::checks::{Outcome, Played};
use crate::cases::expect::Aspect;
use crate::cases::ledger::{self, Deviation};

/// Lists scenarios by area.
pub fn list(scenarios: &[Case]) -> String {
    let mut out = String::new();
    for one in scenarios {
        let _ = writeln!(
            out,
            "{} / {}: {} ({})",
            one.service.as_str(),
            one.area,
            one.name,
            one.source
        );
    }
    out
}

/// Renders totals and failures for every target.
pub fn summary(report: &Report, ledger: &[Deviation], verbose: bool) -> String {
    let mut out = String::new();
    for of in &report.targets {
        failures(&mut out, of, ledger, verbose);
        table(&mut out, of);
        verdict(&mut out, of);
    }
    out
}

fn failures(out: &mut String, of: &Of, ledger: &[Deviation], verbose: bool) {
    for scenario in &of.scenarios {
        for (call, check) in scenario.checks() {
            let is_shown =
                check.outcome == Outcome::Failed || (verbose && check.outcome != Outcome::Passed);
            if !is_shown {
                continue;
            }
            let word = match check.outcome {
                Outcome::Expected => "known",
                Outcome::Blocked => "blocked",
                _ => "FAILED",
            };
            let got = check.got.as_deref().unwrap_or("not asked");
            let _ = writeln!(
                out,
                "{word} {} / {}\n    {} {}\n    {} in place of {:?}, answered {}",
                scenario.area,
                scenario.name,
                call.operation,
                call.request,
                got,
                check.text,
                call.answer
            );
            if let Some(why) = ledger::reason(ledger, &of.ledger, &scenario.name, &check.text) {
                let _ = writeln!(out, "    {why}");
            }
        }
    }
    for hit in of.faults.iter().flatten().filter(|hit| !hit.right) {
        let _ = writeln!(
            out,
            "FAILED {} hit by {}: {}, then {}",
            hit.operation,
            hit.kind.as_str(),
            hit.first,
            hit.again
        );
    }
    for row in of
        .traces
        .iter()
        .flatten()
        .filter(|row| row.passed < row.exchanges)
    {
        let _ = writeln!(
            out,
            "FAILED trace {}: {} of {}",
            row.name, row.passed, row.exchanges
        );
    }
    for stale in &of.stale {
        let _ = writeln!(out, "STALE {stale}");
    }
}

fn table(out: &mut String, of: &Of) {
    let _ = writeln!(out, "{}", of.title());
    let sums = by_service(of);
    for service in ["blob", "queue", "table"] {
        let Some(all) = sums.get(&(service.to_owned(), None)) else {
            continue;
        };
        let _ = write!(out, "  {service:<6} {:>5} of {:<5}", all.passed, all.all());
        for aspect in Aspect::ALL {
            let tally = sums.get(&(service.to_owned(), Some(aspect)));
            let share = tally
                .and_then(super::tally::Tally::percent)
                .unwrap_or(100.0);
            let _ = write!(out, "  {} {share:.1} %", aspect.as_str());
        }
        out.push('\n');
    }
}

fn verdict(out: &mut String, of: &Of) {
    let total = of.total();
    let ran = of.scenarios.len() - of.skipped().count();
    let _ = writeln!(
        out,
        "  {ran} of {} scenarios, {} of {} checks hold; {} known, {} failed, {} not asked; {:.1} s",
        of.scenarios.len(),
        total.passed,
        total.all(),
        total.expected,
        total.failed,
        total.blocked,
        of.seconds
    );
    if let Some(faults) = &of.faults {
        let right = faults.iter().filter(|hit| hit.right).count();
        let _ = writeln!(
            out,
            "  {right} of {} faults gave the required result",
            faults.len()
        );
    }
    if let Some(traces) = &of.traces {
        let sum = |count: fn(&crate::cases::traces::Row) -> usize| -> usize {
            traces.iter().map(count).sum()
        };
        let (passed, all) = (sum(|row| row.passed), sum(|row| row.exchanges));
        let _ = writeln!(
            out,
            "  {passed} of {all} exchanges of {} traces",
            traces.len()
        );
    }
    for (why, count) in reasons(of) {
        let _ = writeln!(out, "  {count} skipped: {why}");
    }
    if of.left_behind > 0 {
        let _ = writeln!(
            out,
            "  {} containers, queues or tables left behind, removed at the end",
            of.left_behind
        );
    }
}

/// Returns the reasons for skipped scenarios, with counts.
pub(super) fn reasons(of: &Of) -> Vec<(&str, usize)> {
    let mut reasons: Vec<(&str, usize)> = Vec::new();
    for (_, why) in of.skipped() {
        match reasons.iter_mut().find(|(known, _)| *known == why) {
            Some((_, count)) => *count += 1,
            None => reasons.push((why, 1)),
        }
    }
    reasons
}

/// Returns the scenarios of a target that have a check with this outcome.
pub(super) fn unmet(of: &Of, outcome: Outcome) -> Vec<&Played> {
    let scenarios = of.scenarios.iter();
    scenarios
        .filter(|one| one.checks().any(|(_, check)| check.outcome == outcome))
        .collect()
}
