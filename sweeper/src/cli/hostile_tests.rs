//! Checks that hostile names, metadata and errors cannot control the terminal or forge a line in
//! the text output of any command.

use smalt_protocol::terminal::steers;
use smalt_sweeper::explain::Check;
use smalt_sweeper::inspect::ProbeResult;
use smalt_sweeper::mark::Marks;
use smalt_sweeper::plan::PlanRow;
use smalt_sweeper::state::{Container, Document, Page};
use smalt_sweeper::summary::{LogSummary, StateSummary};
use smalt_sweeper::undo::{UndoRecord, UndoReport, Undone};
use smalt_sweeper::{Explained, Outcome, Plan};
use smalt_worker::settings::{Setting, Source};

use super::{explain, tag, undo, validate};
use crate::show;

/// Escape sequences in both forms, a window title, a forged log line, line separators and a
/// right-to-left override.
const HOSTILE: &str =
    "\u{1b}[31mRED\u{9b}2J\u{9d}0;own\u{9c}\r\nERROR forged\u{85}\u{2028}\u{202e}gpj";

fn hostile() -> String {
    HOSTILE.to_owned()
}

fn plan() -> Plan {
    let mut plan = Plan::default();
    let container = plan.containers.entry(hostile()).or_default();
    container.error = Some(hostile());
    container.stopped = Some("before page 1".to_owned());
    plan.rows.push(PlanRow {
        action: "dbc_not_allowed".to_owned(),
        container: hostile(),
        blob: hostile(),
        bytes: 1,
        due: String::new(),
        destination: hostile(),
        detail: Some(hostile()),
    });
    plan
}

fn explained() -> Explained {
    let check = |keeps| Check {
        check: "destination",
        found: hostile(),
        keeps,
    };
    Explained {
        url: hostile(),
        etag: hostile(),
        bytes: 1,
        last_modified: String::new(),
        decided_at: String::new(),
        outcome: Outcome::Moved,
        swept: true,
        destination: Some(hostile()),
        goes_from: None,
        next_mark: None,
        checks: vec![check(None), check(Some(Outcome::DbcNotAllowed))],
    }
}

fn undone() -> UndoReport {
    let mut report = UndoReport::default();
    report.outcomes.insert(Undone::Unproven, 1);
    report.blobs.push(UndoRecord {
        from: hostile(),
        to: hostile(),
        outcome: Undone::Unproven,
        time_to_live: Some(hostile()),
        detail: Some(hostile()),
    });
    report
}

fn document() -> Document {
    let page = Page {
        id: hostile(),
        owner: hostile(),
        ..Page::default()
    };
    Document {
        timestamp: hostile(),
        containers: vec![Container {
            name: hostile(),
            prefix: hostile(),
            last_error: Some(hostile()),
            failures: 1,
            pages: vec![page],
            ..Container::default()
        }],
        ..Document::default()
    }
}

fn log() -> LogSummary {
    let mut summary = LogSummary::default();
    let line = serde_json::json!({
        "op": "blob", "container": HOSTILE, "blob": HOSTILE, "outcome": "dbc_not_allowed",
        "detail": HOSTILE,
    });
    summary.line(&line.to_string());
    summary
}

#[test]
fn no_text_output_controls_the_terminal() {
    let marks = Marks {
        failures: vec![(hostile(), hostile())],
        ..Marks::default()
    };
    let setting = Setting {
        key: hostile(),
        value: hostile(),
        source: Source::Environment(hostile()),
    };
    let answer = ProbeResult {
        place: hostile(),
        error: Some(hostile()),
        note: None,
        exit_code: None,
    };
    for (command, text, lines) in [
        ("plan", show::plan(&plan()), 9),
        ("plan --csv", plan().csv(), 2),
        ("explain", explain::text(&explained()), 4),
        ("undo", undo::text(&undone()), 2),
        ("state show", show::state(&document()), 3),
        (
            "report",
            show::state_summary(&StateSummary::of(&document())),
            2,
        ),
        ("report --from-log", show::log_summary(&log()), 3),
        ("tag", tag::text(&marks), 2),
        ("validate", validate::text(&[setting], &[answer]), 2),
    ] {
        let feeds = |c| c == '\n' || (c == '\r' && command == "plan --csv");
        let steering: Vec<_> = text.chars().filter(|c| steers(*c) && !feeds(*c)).collect();
        assert!(steering.is_empty(), "{command}: {steering:?} in {text:?}");
        assert_eq!(text.lines().count(), lines, "{command}: {text}");
        assert!(text.contains("\\u{1b}[31mRED"), "{command}: {text}");
    }
}
