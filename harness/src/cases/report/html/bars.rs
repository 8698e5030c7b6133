//! Pass rates as bars: one per target, by service and aspect.

use std::fmt::Write as _;

use super::escape::escape;
use crate::cases::expect::Aspect;
use crate::cases::report::Report;
use crate::cases::report::tally::{Tally, by_service};

/// Dimensions of the drawing, in pixels.
const LABEL: u32 = 110;
const BAR: u32 = 520;
const TAIL: u32 = 150;
const THICK: u32 = 13;
const GAP: u32 = 12;
/// Number of colours in the style sheet.
const COLOURS: usize = 4;

/// Renders the section for all services.
pub(super) fn section(out: &mut String, report: &Report) {
    out.push_str("<section><h2>Side by side</h2><p class=\"note\">The share of checks that hold. ");
    out.push_str(
        "What was not asked because an earlier step went otherwise counts as not holding; ",
    );
    out.push_str("scenarios that were left out do not count.</p>");
    let sums: Vec<_> = report.targets.iter().map(by_service).collect();
    for service in ["blob", "queue", "table"] {
        let row = |aspect| -> Vec<Option<&Tally>> {
            let of = sums.iter();
            of.map(|sums| sums.get(&(service.to_owned(), aspect)))
                .collect()
        };
        let aspects = Aspect::ALL.map(Some);
        let mut groups = vec![("all", row(None))];
        groups.extend(aspects.map(|one| (one.map_or("all", Aspect::as_str), row(one))));
        if groups
            .iter()
            .any(|(_, row)| row.iter().any(Option::is_some))
        {
            drawing(out, report, service, &groups);
        }
    }
    out.push_str("</section>");
}

fn drawing(
    out: &mut String,
    report: &Report,
    service: &str,
    groups: &[(&str, Vec<Option<&Tally>>)],
) {
    let targets = report.targets.len() as u32;
    let group = targets * (THICK + 2) + GAP;
    let height = group * groups.len() as u32;
    let width = LABEL + BAR + TAIL;
    let _ = write!(
        out,
        "<h3>{service}</h3><div class=\"wide\"><svg role=\"img\" width=\"{width}\" \
         height=\"{height}\" viewBox=\"0 0 {width} {height}\"><title>Checks of the {service} \
         service that hold, by aspect and target</title>"
    );
    let end = LABEL + BAR;
    let _ = write!(
        out,
        "<line class=\"axis\" x1=\"{end}\" y1=\"0\" x2=\"{end}\" y2=\"{height}\"/>"
    );
    for (number, (name, row)) in (0u32..).zip(groups) {
        let top = number * group;
        let middle = top + targets * (THICK + 2) / 2 + 4;
        let _ = write!(out, "<text x=\"0\" y=\"{middle}\">{name}</text>");
        for (at, (of, tally)) in report.targets.iter().zip(row).enumerate() {
            let tally = tally.copied().unwrap_or_default();
            bar(out, top, at, &of.title(), tally);
        }
    }
    out.push_str("</svg></div>");
}

fn bar(out: &mut String, top: u32, at: usize, title: &str, tally: Tally) {
    let y = top + at as u32 * (THICK + 2);
    let share = tally.share();
    let length = tally.percent().unwrap_or_default() * f64::from(BAR) / 100.0;
    let _ = write!(
        out,
        "<g><title>{}: {} of {} checks, {share}</title><rect class=\"b{}\" x=\"{LABEL}\" y=\"{y}\" \
         width=\"{length:.1}\" height=\"{THICK}\" rx=\"2\"/><text x=\"{}\" y=\"{}\">{}</text></g>",
        escape(title),
        tally.passed,
        tally.all(),
        at % COLOURS,
        LABEL + BAR + 8,
        y + THICK - 2,
        escape(&format!("{share} {}", first_word(title)))
    );
}

fn first_word(title: &str) -> &str {
    title.split(' ').next().unwrap_or_default()
}
