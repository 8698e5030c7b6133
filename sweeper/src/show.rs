//! Formats plans and state documents as text.

use smalt_protocol::terminal::one_line;
use smalt_sleeve::redact;
use smalt_sweeper::Plan;
use smalt_sweeper::plan::bytes;
use smalt_sweeper::state::Document;
use smalt_sweeper::summary::{LogSummary, StateSummary};

/// Blobs of a plan in text output by default; `--csv` and `--json` list all.
pub(crate) const ROWS_SHOWN: usize = 20;

/// Formats a plan: the first blobs, then the totals.
pub(crate) fn plan(plan: &Plan) -> String {
    let mut text = String::new();
    for row in &plan.rows {
        let arrow = if row.destination.is_empty() {
            ""
        } else {
            " -> "
        };
        let detail = row.detail.iter().map(|detail| format!("  ({detail})"));
        let line = format!(
            "{:<17} {:>10}  {}/{}{arrow}{}{}\n",
            row.action,
            bytes(row.bytes),
            row.container,
            row.blob,
            row.destination,
            detail.collect::<String>()
        );
        text.push_str(&printable(&line));
    }
    if plan.truncated {
        text.push_str("... and more; use --csv to list all\n");
    }
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(&format!("as of {} (the service's time)\n", plan.decided_at));
    text.push_str(&plan.table());
    if !plan.deep && plan.total.delete + plan.total.r#move > 0 {
        text.push_str(
            "snapshots and blobs at destinations were not checked (use --deep for all, explain \
             for one)\n",
        );
    }
    text
}

/// Formats the state document: the progress of the fleet.
pub(crate) fn state(document: &Document) -> String {
    let due = document
        .next_due
        .map_or_else(|| "now".to_owned(), smalt_protocol::Timestamp::iso_s);
    let mut text = printable(&format!(
        "version {}, cycle {}, fence {}, next due {due}, last completed {} ({} removed)\n",
        document.version,
        document.cycle,
        document.fence,
        if document.timestamp.is_empty() {
            "never"
        } else {
            &document.timestamp
        },
        document.purged
    ));
    if let Some(spent) = document.spent {
        let (day, calls) = (spent.day.iso_s(), spent.calls);
        let day = day.split('T').next().unwrap_or_default();
        text.push_str(&format!("{calls} charged calls of all workers on {day}\n"));
    }
    for container in &document.containers {
        let tally = &container.tally;
        text.push_str(&printable(&format!(
            "{:<24} {:<13} seen {} deleted {} moved {} kept {} failed {}{}\n",
            format!("{}/{}", container.name, container.prefix),
            container.status.name(),
            tally.seen,
            tally.deleted,
            tally.moved,
            tally.skipped,
            tally.failed,
            container
                .last_error
                .as_deref()
                .map(|e| format!("  last error {e}"))
                .unwrap_or_default(),
        )));
        for page in &container.pages {
            let deadline = page
                .deadline
                .map_or_else(|| "now".to_owned(), smalt_protocol::Timestamp::iso_s);
            text.push_str(&printable(&format!(
                "  page {} of {} until {deadline}, attempt {}, {} to go\n",
                page.id, page.owner, page.attempt, page.due
            )));
        }
    }
    redact(&text)
}

pub(crate) fn state_summary(summary: &StateSummary) -> String {
    let next = summary.next_due.as_deref().unwrap_or("now");
    let completed = match summary.completed.as_str() {
        "" => "none yet",
        completed => completed,
    };
    let mut lines = vec![format!(
        "cycle {}, next at {next}; last completed {completed}, {} removed",
        summary.cycle, summary.removed
    )];
    for c in &summary.containers {
        let (tally, error) = (&c.tally, c.last_error.iter());
        let error = error.map(|error| format!(", last error {error}"));
        lines.push(format!(
            "{:<24} {:<12} {} seen, {} deleted, {} moved, {} kept, {} failed, {} freed{}",
            format!("{}/{}", c.container, c.prefix),
            c.status,
            tally.seen,
            tally.deleted,
            tally.moved,
            tally.skipped,
            tally.failed,
            bytes(tally.bytes),
            error.collect::<String>(),
        ));
    }
    redact(&joined(&lines))
}

pub(crate) fn log_summary(summary: &LogSummary) -> String {
    let mut lines = vec![format!(
        "{} cycles completed, {} blobs handled, {} failed",
        summary.cycles,
        summary.blobs,
        summary.failed()
    )];
    for (container, outcomes) in &summary.containers {
        let counts = outcomes
            .iter()
            .map(|(outcome, count)| format!("{count} {outcome}"));
        lines.push(format!(
            "{container:<24} {}",
            counts.collect::<Vec<_>>().join(", ")
        ));
    }
    for (blob, outcome, reason) in summary.failures.iter().take(ROWS_SHOWN) {
        lines.push(format!("  {outcome} {blob} {reason}"));
    }
    if summary.failures.len() > ROWS_SHOWN {
        lines.push("  ... and more; use --json to list them".to_owned());
    }
    joined(&lines)
}

fn joined(lines: &[String]) -> String {
    lines
        .iter()
        .map(|line| printable(&format!("{line}\n")))
        .collect()
}

/// Escapes one line, with or without its newline, because blob names are untrusted.
pub(crate) fn printable(line: &str) -> String {
    let (body, end) = line
        .strip_suffix('\n')
        .map_or((line, ""), |body| (body, "\n"));
    one_line(body).into_owned() + end
}
