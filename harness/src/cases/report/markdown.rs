//! The report as Markdown.

use std::fmt::Write as _;

use super::tally::{Cells, Tally, by_service, cells, operations};
use super::text::{reasons, unmet};
use super::{Of, Report};
use crate::cases::checks::Outcome;
use crate::cases::expect::Aspect;
use crate::cases::faults::{Hit, Kind};
use crate::cases::ledger::{self, Deviation};

/// Renders the report.
pub fn page(report: &Report, ledger: &[Deviation]) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "# Conformance with Azure Storage\n");
    let _ = writeln!(
        out,
        "{}, harness {}\n\n    {}\n",
        report.date,
        report.made_by(),
        report.command
    );
    totals(&mut out, report);
    services(&mut out, report);
    matrix(&mut out, report);
    for of in &report.targets {
        unmet_checks(&mut out, of, ledger);
        faults(&mut out, of);
        for (why, count) in reasons(of) {
            let _ = writeln!(
                out,
                "\n{}: {count} scenarios left out: {}.",
                of.title(),
                cell(why)
            );
        }
    }
    out
}

fn totals(out: &mut String, report: &Report) {
    out.push_str("| target | scenarios | checks | hold | known | failed | not asked |\n");
    out.push_str("| --- | --- | --- | --- | --- | --- | --- |\n");
    for of in &report.targets {
        let (total, skipped) = (of.total(), of.skipped().count());
        let _ = writeln!(
            out,
            "| {} | {} of {} | {} | {} | {} | {} | {} |",
            cell(&of.title()),
            of.scenarios.len() - skipped,
            of.scenarios.len(),
            total.all(),
            total.passed,
            total.expected,
            total.failed,
            total.blocked
        );
    }
}

fn services(out: &mut String, report: &Report) {
    out.push_str("\n| target | service | all |");
    for aspect in Aspect::ALL {
        let _ = write!(out, " {} |", aspect.as_str());
    }
    out.push_str("\n| --- | --- | --- | --- | --- | --- | --- | --- |\n");
    for of in &report.targets {
        let sums = by_service(of);
        for service in ["blob", "queue", "table"] {
            let share = |aspect| {
                let tally = sums.get(&(service.to_owned(), aspect));
                tally.copied().unwrap_or_default().share()
            };
            if !sums.contains_key(&(service.to_owned(), None)) {
                continue;
            }
            let _ = write!(
                out,
                "| {} | {service} | {} |",
                cell(&of.title()),
                share(None)
            );
            for aspect in Aspect::ALL {
                let _ = write!(out, " {} |", share(Some(aspect)));
            }
            out.push('\n');
        }
    }
}

fn matrix(out: &mut String, report: &Report) {
    let counted: Vec<Cells> = report.targets.iter().map(cells).collect();
    out.push_str("\n## Operation by aspect\n\n| operation |");
    let mut line = "| --- |".to_owned();
    for of in &report.targets {
        for aspect in Aspect::ALL {
            let _ = write!(out, " {} {} |", cell(&of.name), aspect.as_str());
            line.push_str(" --- |");
        }
    }
    let _ = writeln!(out, "\n{line}");
    for (operation, title) in operations() {
        let _ = write!(out, "| {} `{}` |", cell(title), operation.1);
        for cells in &counted {
            for aspect in Aspect::ALL {
                let tally = cells.get(&(operation.clone(), aspect));
                let _ = write!(out, " {} |", tally.map_or(String::new(), Tally::count));
            }
        }
        out.push('\n');
    }
}

fn unmet_checks(out: &mut String, of: &Of, ledger: &[Deviation]) {
    for (outcome, word) in [
        (Outcome::Failed, "Failed"),
        (Outcome::Expected, "Known deviations"),
    ] {
        let scenarios = unmet(of, outcome);
        if scenarios.is_empty() {
            continue;
        }
        let _ = writeln!(out, "\n## {word}: {}\n", of.title());
        for scenario in scenarios {
            let _ = writeln!(
                out,
                "- **{}** ({})",
                cell(&scenario.name),
                cell(&scenario.source)
            );
            for (call, check) in scenario
                .checks()
                .filter(|(_, check)| check.outcome == outcome)
            {
                let got = check.got.as_deref().unwrap_or_default();
                let _ = write!(
                    out,
                    "  - {}: expected `{}`, got `{}`",
                    call.operation,
                    code(&check.text),
                    code(got)
                );
                let why = ledger::reason(ledger, &of.ledger, &scenario.name, &check.text);
                let _ = writeln!(
                    out,
                    "{}",
                    why.map_or(String::new(), |why| format!(". {why}"))
                );
            }
        }
    }
}

fn faults(out: &mut String, of: &Of) {
    let Some(hits) = &of.faults else { return };
    let right = hits.iter().filter(|hit| hit.right).count();
    let _ = writeln!(
        out,
        "\n## Faults: {}\n\n{right} of {} gave the required result. Operations whose \
         repeated call shows that the first one was executed:\n\n\
         | operation | fault | asked again |\n| --- | --- | --- |",
        of.title(),
        hits.len()
    );
    let shows = |hit: &&Hit| !hit.right || (!hit.repeatable && hit.kind != Kind::Latency);
    for hit in hits.iter().filter(shows) {
        let _ = writeln!(
            out,
            "| {} `{}` | {} | {}{} |",
            hit.service,
            hit.operation,
            hit.kind.as_str(),
            cell(&hit.again),
            if hit.right { "" } else { " **wrong**" }
        );
    }
}

/// Escapes a string for a table cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace(['\r', '\n'], " ")
}

/// Escapes a string for inline code.
fn code(text: &str) -> String {
    cell(text).replace('`', "'")
}
