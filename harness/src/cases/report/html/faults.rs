//! The fault map: operations by kinds of fault, and the results.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::escape::escape;
use crate::cases::faults::{Hit, Kind};
use crate::cases::report::tally::operations;
use crate::cases::report::{Of, Report};

/// Renders the section for every target that supports faults.
pub(super) fn section(out: &mut String, report: &Report) {
    for of in &report.targets {
        if let Some(hits) = &of.faults {
            map(out, of, hits);
        }
    }
}

fn map(out: &mut String, of: &Of, hits: &[Hit]) {
    let right = hits.iter().filter(|hit| hit.right).count();
    let _ = write!(
        out,
        "<section><h2>Fault map: {}</h2><p class=\"note\">Each operation is asked under a fault, \
         and then asked again without one; {right} of {} came out as they must. A cell says what \
         the second answer was: <em>as new</em> when it is the one that is due to a first call, \
         otherwise its status: the first call was carried out although its answer never arrived, \
         and a client that repeats it must be ready for that. An operation without cells \
         succeeds in no scenario that this target can run.</p>",
        escape(&of.title()),
        hits.len()
    );
    out.push_str("<p class=\"key\"><span class=\"full\">as new</span>");
    out.push_str("<span class=\"mid\">the repetition shows</span>");
    out.push_str("<span class=\"zero\">not as it must be</span></p>");
    out.push_str(
        "<div class=\"wide\"><table><caption>Operations by kind of fault</caption><thead>",
    );
    out.push_str("<tr><th scope=\"col\">operation</th>");
    for kind in Kind::ALL {
        let _ = write!(out, "<th scope=\"col\">{}</th>", kind.as_str());
    }
    out.push_str("</tr></thead><tbody>");
    let by_place: BTreeMap<_, _> = hits
        .iter()
        .map(|hit| {
            (
                (hit.service.as_str(), hit.operation.as_str(), hit.kind),
                hit,
            )
        })
        .collect();
    for ((service, id), title) in operations() {
        let _ = write!(
            out,
            "<tr><th scope=\"row\">{} <small>{service} {}</small></th>",
            escape(title),
            escape(&id)
        );
        for kind in Kind::ALL {
            cell(
                out,
                by_place
                    .get(&(service.as_str(), id.as_str(), kind))
                    .copied(),
            );
        }
        out.push_str("</tr>");
    }
    out.push_str("</tbody></table></div></section>");
}

fn cell(out: &mut String, hit: Option<&Hit>) {
    let Some(hit) = hit else {
        out.push_str("<td class=\"none\" title=\"not hit\"></td>");
        return;
    };
    let (class, text) = match (hit.right, hit.repeatable) {
        (false, _) => ("zero", "wrong"),
        (true, _) if hit.kind == Kind::Latency => ("full", "answered"),
        (true, true) => ("full", "as new"),
        (true, false) => ("mid", hit.again.split(' ').next().unwrap_or_default()),
    };
    let _ = write!(
        out,
        "<td class=\"{class}\" title=\"{} hit by {}: {}; asked again: {}\">{}</td>",
        escape(&hit.operation),
        hit.kind.as_str(),
        escape(&hit.first),
        escape(&hit.again),
        escape(text)
    );
}
