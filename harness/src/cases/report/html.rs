//! The report as one HTML page that is readable without scripts, in light and dark mode.

mod bars;
mod escape;
mod failures;
mod faults;
mod heat;

use std::fmt::Write as _;

use self::escape::escape;
use super::{Of, Report, text};
use crate::cases::ledger::Deviation;

/// The style sheet, embedded in the page.
const STYLE: &str = include_str!("style.css");

/// Renders the page.
pub fn page(report: &Report, ledger: &[Deviation]) -> String {
    let mut out = String::with_capacity(256 * 1024);
    out.push_str("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">");
    out.push_str("<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">");
    out.push_str("<meta name=\"robots\" content=\"noindex\"><title>Conformance: ");
    out.push_str(&escape(&titles(report)));
    let _ = write!(out, "</title><style>{STYLE}</style></head><body><main>");
    header(&mut out, report);
    bars::section(&mut out, report);
    heat::section(&mut out, report);
    failures::section(&mut out, report, ledger);
    faults::section(&mut out, report);
    traces(&mut out, report);
    left_out(&mut out, report);
    out.push_str("</main></body></html>\n");
    out
}

fn titles(report: &Report) -> String {
    let titles: Vec<String> = report.targets.iter().map(Of::title).collect();
    titles.join(", ")
}

fn header(out: &mut String, report: &Report) {
    let _ = write!(
        out,
        "<header><h1>Conformance with Azure Storage</h1><dl class=\"meta\">\
         <dt>Targets</dt><dd>{}</dd><dt>Date</dt><dd>{}</dd>\
         <dt>Command</dt><dd><code>{}</code></dd><dt>Harness</dt><dd>{}</dd></dl>",
        escape(&titles(report)),
        escape(&report.date),
        escape(&report.command),
        escape(&report.made_by())
    );
    out.push_str("<div class=\"tiles\">");
    for of in &report.targets {
        tile(out, of);
    }
    out.push_str("</div></header>");
}

fn tile(out: &mut String, of: &Of) {
    let total = of.total();
    let ran = of.scenarios.len() - of.skipped().count();
    let _ = write!(
        out,
        "<div class=\"tile\"><span class=\"soft\">{}</span><b>{}</b>{} of {} checks hold<br>\
         <span class=\"soft\">{} scenarios of {}, {} known deviations, {} failed, {} not asked, \
         {:.1} s</span></div>",
        escape(&of.title()),
        total.share(),
        total.passed,
        total.all(),
        ran,
        of.scenarios.len(),
        total.expected,
        total.failed,
        total.blocked,
        of.seconds
    );
}

fn traces(out: &mut String, report: &Report) {
    for of in &report.targets {
        let Some(rows) = &of.traces else { continue };
        let _ = write!(
            out,
            "<section><h2>Recorded traces: {}</h2><p class=\"note\">Exchanges recorded by a client \
             library, replayed with the clock of the recording; an exchange agrees when status, \
             code, headers, body and relations do.</p><div class=\"wide\"><table><caption>Traces\
             </caption><thead><tr><th scope=\"col\">trace</th><th scope=\"col\">exchanges</th>\
             <th scope=\"col\">agree</th></tr></thead><tbody>",
            escape(&of.title())
        );
        for row in rows {
            let class = if row.passed == row.exchanges {
                "full"
            } else {
                "zero"
            };
            let _ = write!(
                out,
                "<tr><th scope=\"row\">{}</th><td>{}</td><td class=\"{class}\">{}</td></tr>",
                escape(&row.name),
                row.exchanges,
                row.passed
            );
        }
        out.push_str("</tbody></table></div></section>");
    }
}

fn left_out(out: &mut String, report: &Report) {
    let count: usize = report.targets.iter().map(|of| of.skipped().count()).sum();
    if count == 0 {
        return;
    }
    out.push_str("<section><h2>Left out</h2>");
    for of in &report.targets {
        for (why, count) in text::reasons(of) {
            let _ = write!(
                out,
                "<details><summary>{}: {count} scenarios; {}</summary><div><ul>",
                escape(&of.title()),
                escape(why)
            );
            for (scenario, _) in of.skipped().filter(|(_, reason)| *reason == why) {
                let _ = write!(
                    out,
                    "<li>{}: {}</li>",
                    escape(&scenario.area),
                    escape(&scenario.name)
                );
            }
            out.push_str("</ul></div></details>");
        }
    }
    out.push_str("</section>");
}
