//! The coverage heat map: operation by aspect, for each target.

use std::fmt::Write as _;

use super::escape::escape;
use crate::cases::expect::Aspect;
use crate::cases::report::Report;
use crate::cases::report::tally::{Cells, Operation, Tally, cells, operations};

/// Lowest percentage of the second-best colour.
const HIGH: f64 = 90.0;
/// Lowest percentage of the middle colour.
const MID: f64 = 50.0;

/// Renders the section for all services.
pub(super) fn section(out: &mut String, report: &Report) {
    out.push_str(
        "<section><h2>Operation by aspect</h2><p class=\"note\">How many checks there are, ",
    );
    out.push_str("and how many of them hold where not all do. An empty cell has no check.</p>");
    out.push_str(
        "<p class=\"key\"><span class=\"full\">all</span><span class=\"high\">90 %</span>",
    );
    out.push_str("<span class=\"mid\">50 %</span><span class=\"low\">fewer</span>");
    out.push_str("<span class=\"zero\">none</span></p>");
    let counted: Vec<Cells> = report.targets.iter().map(cells).collect();
    for service in ["blob", "queue", "table"] {
        let rows: Vec<_> = operations()
            .into_iter()
            .filter(|((of, _), _)| of == service)
            .collect();
        if !rows.is_empty() {
            table(out, report, service, &rows, &counted);
        }
    }
    out.push_str("</section>");
}

fn table(
    out: &mut String,
    report: &Report,
    service: &str,
    rows: &[(Operation, &'static str)],
    counted: &[Cells],
) {
    let _ = write!(
        out,
        "<h3>{service}</h3><div class=\"wide\"><table><caption>Checks of the {service} service by \
         operation and aspect</caption><thead><tr><th scope=\"col\" rowspan=\"2\">operation</th>"
    );
    for of in &report.targets {
        let _ = write!(
            out,
            "<th scope=\"colgroup\" colspan=\"{}\">{}</th>",
            Aspect::ALL.len(),
            escape(&of.title())
        );
    }
    out.push_str("</tr><tr>");
    for _ in &report.targets {
        for aspect in Aspect::ALL {
            let _ = write!(out, "<th scope=\"col\">{}</th>", aspect.as_str());
        }
    }
    out.push_str("</tr></thead><tbody>");
    for (operation, title) in rows {
        let _ = write!(
            out,
            "<tr><th scope=\"row\">{} <small>{}</small></th>",
            escape(title),
            escape(&operation.1)
        );
        for (of, cells) in report.targets.iter().zip(counted) {
            for aspect in Aspect::ALL {
                let tally = cells.get(&(operation.clone(), aspect));
                cell(
                    out,
                    tally.copied().unwrap_or_default(),
                    title,
                    aspect,
                    &of.title(),
                );
            }
        }
        out.push_str("</tr>");
    }
    out.push_str("</tbody></table></div>");
}

fn cell(out: &mut String, tally: Tally, operation: &str, aspect: Aspect, target: &str) {
    if tally.all() == 0 {
        out.push_str("<td class=\"none\"></td>");
        return;
    }
    let _ = write!(
        out,
        "<td class=\"{}\" title=\"{}, {} of {}: {} of {} hold, {} known deviations, {} failed, {} \
         not asked\">{}</td>",
        class(tally),
        escape(target),
        aspect.as_str(),
        escape(operation),
        tally.passed,
        tally.all(),
        tally.expected,
        tally.failed,
        tally.blocked,
        tally.count()
    );
}

fn class(tally: Tally) -> &'static str {
    match tally.percent() {
        None => "none",
        Some(_) if tally.passed == tally.all() => "full",
        Some(share) if share >= HIGH => "high",
        Some(share) if share >= MID => "mid",
        Some(_) if tally.passed > 0 => "low",
        Some(_) => "zero",
    }
}
