//! Prints and saves a failing burst.

use std::fmt::Write as _;
use std::path::Path;

use super::burst::{Failure, History};
use super::linear::Call;
use super::plan::Plan;
use super::schedule::Order;
use crate::check;

/// Renders a failing burst: the reason, the calls, and how to run it again.
pub fn report(plan: &Plan, failure: &Failure) -> String {
    let mut text = format!(
        "seed {}, {}: {}\n",
        plan.seed,
        plan.kind.name(),
        failure.reason
    );
    if !failure.history.before.is_empty() {
        text += &format!("\nbefore:\n{}", failure.history.before);
    }
    text += "\ncall client from-to answer, operation\n";
    text += &calls(&failure.history);
    // Writing to a string does not fail.
    if plan.left_out.is_empty() {
        let _ = writeln!(text, "\nrun again: {}", plan.command());
    } else {
        let _ = writeln!(
            text,
            "\nleft out: {:?}, order: {:?}",
            plan.left_out, plan.order
        );
        let _ = writeln!(text, "run the whole burst again: {}", plan.command());
    }
    text
}

fn calls(history: &History) -> String {
    let mut text = String::new();
    for (place, call) in history.calls.iter().enumerate() {
        let told = match &call.returned {
            Some((at, answered)) => format!("{at:<3} {}", answered.summary()),
            None => "    (lost)".to_owned(),
        };
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "{place:>4} {:>6} {:>4}-{told}  {:?}",
            call.client, call.called, call.operation
        );
    }
    text
}

/// Saves a history: one line of JSON for the burst, and one for each call.
pub fn save(path: &Path, plan: &Plan, failure: &Failure) -> std::io::Result<()> {
    let mut lines = vec![header(plan, failure)];
    lines.extend(failure.history.calls.iter().map(line));
    save_lines(path, &lines)
}

/// Writes lines of JSON to a file, replacing its content.
pub fn save_lines(path: &Path, lines: &[serde_json::Value]) -> std::io::Result<()> {
    let lines = lines.iter().map(|line| format!("{line}\n"));
    check::save(path, &lines.collect::<String>())
}

fn header(plan: &Plan, failure: &Failure) -> serde_json::Value {
    let order = match plan.order {
        Order::Plain => "plain".to_owned(),
        Order::Seeded(seed) => seed.to_string(),
    };
    serde_json::json!({
        "burst": plan.seed,
        "kind": plan.kind.name(),
        "clients": plan.clients,
        "operations": plan.operations,
        "order": order,
        "left_out": plan.left_out,
        "reason": failure.reason,
        "before": failure.history.before,
    })
}

fn line(call: &Call) -> serde_json::Value {
    let returned = call.returned.as_ref();
    let headers = returned.map(|(_, answered)| {
        let pairs = answered.answer.headers.iter();
        let pairs = pairs.map(|(name, value)| (name.to_owned(), serde_json::json!(value)));
        pairs.collect::<serde_json::Map<_, _>>()
    });
    serde_json::json!({
        "client": call.client,
        "called": call.called,
        "returned": returned.map(|(at, _)| at),
        "operation": format!("{:?}", call.operation),
        "status": returned.map(|(_, answered)| answered.answer.status),
        "headers": headers,
        "body": returned.map(|(_, answered)| {
            String::from_utf8_lossy(&answered.answer.body).into_owned()
        }),
        "sent": returned.map(|(_, answered)| answered.transcript()),
    })
}
