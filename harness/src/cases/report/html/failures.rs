//! Failures: the request, the expectation, the answer.

use std::fmt::Write as _;

use super::escape::escape;
use crate::cases::checks::{Outcome, Played};
use crate::cases::ledger::{self, Deviation};
use crate::cases::report::text::unmet;
use crate::cases::report::{Of, Report};

/// Renders the section: failures first, then known deviations.
pub(super) fn section(out: &mut String, report: &Report, ledger: &[Deviation]) {
    out.push_str("<section><h2>What does not hold</h2>");
    let mut is_empty = true;
    for (outcome, word) in [
        (Outcome::Failed, "failed"),
        (Outcome::Expected, "known deviations"),
    ] {
        for of in &report.targets {
            let scenarios = unmet(of, outcome);
            if scenarios.is_empty() {
                continue;
            }
            is_empty = false;
            let _ = write!(
                out,
                "<h3>{}: {word} in {} scenarios</h3>",
                escape(&of.title()),
                scenarios.len()
            );
            for scenario in scenarios {
                one(out, of, scenario, outcome, ledger);
            }
        }
    }
    for of in report.targets.iter().filter(|of| !of.stale.is_empty()) {
        let _ = write!(
            out,
            "<h3>{}: stale entries of the ledger</h3><ul>",
            escape(&of.title())
        );
        for stale in &of.stale {
            let _ = write!(out, "<li>{}</li>", escape(stale));
        }
        out.push_str("</ul>");
    }
    if is_empty {
        out.push_str("<p>Every check holds.</p>");
    }
    out.push_str("</section>");
}

fn one(out: &mut String, of: &Of, scenario: &Played, outcome: Outcome, ledger: &[Deviation]) {
    let count = scenario
        .checks()
        .filter(|(_, check)| check.outcome == outcome)
        .count();
    let noun = if count == 1 { "check" } else { "checks" };
    let _ = write!(
        out,
        "<details{}><summary>{}: {} <span class=\"soft\">({count} {noun}; {})</span></summary>\
         <div>",
        if outcome == Outcome::Failed {
            " open"
        } else {
            ""
        },
        escape(&scenario.area),
        escape(&scenario.name),
        escape(&scenario.source)
    );
    out.push_str("<div class=\"wide\"><table><thead><tr><th scope=\"col\">request</th>");
    out.push_str("<th scope=\"col\">answer</th><th scope=\"col\">expected</th>");
    out.push_str("<th scope=\"col\">got</th></tr></thead><tbody>");
    let mut reasons: Vec<&str> = Vec::new();
    for (call, check) in scenario
        .checks()
        .filter(|(_, check)| check.outcome == outcome)
    {
        let _ = write!(
            out,
            "<tr><td class=\"t ask\">{}<br><code>{}</code></td><td class=\"t\">{}</td>\
             <td class=\"t\"><code>{}</code></td><td class=\"t\"><code>{}</code></td></tr>",
            escape(&call.operation),
            escape(&call.request),
            escape(&call.answer),
            escape(&check.text),
            escape(check.got.as_deref().unwrap_or_default())
        );
        let reason = ledger::reason(ledger, &of.ledger, &scenario.name, &check.text);
        reasons.extend(reason.filter(|reason| !reasons.contains(reason)));
    }
    out.push_str("</tbody></table></div>");
    if outcome == Outcome::Expected {
        for reason in reasons {
            let _ = write!(out, "<p>{}</p>", escape(reason));
        }
    }
    out.push_str("</div></details>");
}
