//! Renders the ledger as a section of `DIFFERENCES.md`.

use std::collections::BTreeMap;

use super::ledger::{Entry, Ledger, Verdict};

/// Marker in front of the section.
pub const BEGIN: &str = "<!-- From fixtures/differences.toml by `harness diff --document`. -->\n";
/// Marker behind the section.
pub const END: &str = "<!-- End of what is made from the ledger. -->\n";

/// Renders the section.
pub fn section(ledger: &Ledger) -> String {
    let mut text = String::new();
    let of = |verdict| ledger.entries.iter().filter(move |e| e.verdict == verdict);
    for (verdict, title) in [
        (
            Verdict::AzuriteWrong,
            "Azurite answers otherwise than Azure",
        ),
        (Verdict::Ambiguous, "Nothing decides"),
        (Verdict::OursWrong, "smalt answers otherwise than Azure"),
    ] {
        let mut rows: BTreeMap<String, Vec<&Entry>> = BTreeMap::new();
        for entry in of(verdict) {
            rows.entry(entry.evidence.clone()).or_default().push(entry);
        }
        if rows.is_empty() {
            continue;
        }
        text += &format!("\n### {title}\n\n| where | smalt | Azurite | evidence |\n");
        text += "| --- | --- | --- | --- |\n";
        for (evidence, entries) in rows {
            text += &row(&entries, &evidence);
        }
    }
    text
}

/// Renders entries with the same evidence as one row.
fn row(entries: &[&Entry], evidence: &str) -> String {
    let mut places: Vec<String> = entries.iter().map(|e| place(e)).collect();
    places.dedup();
    let side = |of: fn(&Entry) -> &Option<String>| {
        let mut values: Vec<String> = entries.iter().map(|e| value(of(e))).collect();
        values.sort();
        values.dedup();
        values.join("; ")
    };
    format!(
        "| {} | {} | {} | {} |\n",
        places.join("; "),
        side(|e| &e.smalt),
        side(|e| &e.azurite),
        evidence.replace('|', "\\|")
    )
}

fn place(entry: &Entry) -> String {
    let operation = match entry.operation.as_str() {
        "*" => "any".to_owned(),
        other => format!("`{other}`"),
    };
    let status = entry.status.map(|status| format!(" {status}"));
    let status = status.unwrap_or_default();
    match entry.at.as_str() {
        "status" | "code" => format!("{operation}{status}: {}", entry.at),
        "" => format!("{operation}{status}: the body"),
        at => format!("{operation}{status}: `{}`", at.replace('|', "\\|")),
    }
}

fn value(value: &Option<String>) -> String {
    let Some(text) = value else {
        return "differs".to_owned();
    };
    let first = text.split('\n').next().unwrap_or_default();
    match first {
        "" => "nothing".to_owned(),
        "(absent)" => "absent".to_owned(),
        other => format!("`{}`", other.replace('|', "\\|")),
    }
}

/// Returns the document with its section regenerated; `None` without the markers.
pub fn renewed(document: &str, ledger: &Ledger) -> Option<String> {
    let (before, rest) = document.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}{}\n{END}{after}", section(ledger)))
}
