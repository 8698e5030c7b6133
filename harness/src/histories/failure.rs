//! A history with a wrong answer, as requests with their answers and as a trace to keep.

use std::fmt::{self, Display};
use std::sync::PoisonError;

use smalt_model::vocabulary::Operation;
use smalt_model::{Expected, Fact};
use smalt_protocol::Service;
use tokio::runtime::Runtime;

use super::campaign::Campaign;
use super::coverage::Coverage;
use super::generate::Step;
use super::run::{Failure, Judging, run};
use crate::check::{self, Cases};
use crate::traces::history;
use crate::traces::scrub::Seen;

/// A failing history, reduced and run once more.
#[derive(Debug)]
pub struct Failed {
    seed: u64,
    history: Vec<Step>,
    difference: String,
    transcript: String,
    trace: String,
    /// Whether the trace contains the answer that the model expects of the last request.
    is_right: bool,
}

impl Failed {
    /// Returns a failure that kept a campaign from running.
    pub fn before(seed: u64, difference: String) -> Self {
        Failed {
            seed,
            history: Vec::new(),
            difference,
            transcript: String::new(),
            trace: String::new(),
            is_right: false,
        }
    }

    /// Returns a history that failed, but not when it ran again.
    pub fn only_once(seed: u64, history: Vec<Step>, difference: &str) -> Self {
        Failed {
            history,
            ..Failed::before(
                seed,
                format!("failed once, but not when run again: {difference}"),
            )
        }
    }

    /// Runs a history once more and records the exchanges; `every` is the interval of invariants
    /// with which it failed.
    ///
    /// # Errors
    /// The history, when it does not fail again.
    pub fn of(
        campaign: &Campaign,
        runtime: &Runtime,
        history: Vec<Step>,
        every: usize,
    ) -> Result<Self, Vec<Step>> {
        // Omits the requests of the invariants if it fails without them.
        let tries = [0, usize::MAX, every].into_iter();
        let mut tries = tries.filter_map(|every| {
            let mut server = campaign.server().ok()?;
            let log = server.keep();
            let judging = Judging { every, dry: false };
            let mut coverage = Coverage::default();
            let judged = run(server, &history, judging, &mut coverage);
            Some((runtime.block_on(judged).err()?, log))
        });
        let Some((failure, log)) = tries.next() else {
            return Err(history);
        };
        let seed = campaign.seed;
        let service = service(&failure.operation);
        let log = log.lock().unwrap_or_else(PoisonError::into_inner);
        let mut seen: Vec<Seen> = history::of(service, &log).cloned().collect();
        let asked = failure.difference.starts_with("afterwards");
        let is_right = !asked
            && seen
                .last_mut()
                .is_some_and(|one| amend(one, &failure.expected));
        Ok(Failed {
            seed,
            history,
            difference: failure.difference,
            transcript: failure.transcript,
            trace: history::trace(service, Some(seed), &seen)
                .write()
                .unwrap_or_default(),
            is_right,
        })
    }

    /// Returns the number of steps.
    pub fn len(&self) -> usize {
        self.history.len()
    }

    /// Whether it failed before the first step.
    pub fn is_empty(&self) -> bool {
        self.history.is_empty()
    }

    /// Returns the history as a trace.
    pub fn trace(&self) -> &str {
        &self.trace
    }

    /// Writes the trace, if there is one, and returns the report.
    pub fn save(&self, cases: &Cases) -> std::io::Result<String> {
        if self.trace.is_empty() {
            return Ok("there is no trace to save".to_owned());
        }
        let path = cases.file("histories", self.seed);
        check::save(&path, &self.trace)?;
        let path = path.display();
        Ok(if self.is_right {
            format!(
                "saved: {path}; its last answer is what the model expects. To replay it in every \
                 `cargo test`, move it to fixtures/regressions and name it after what it shows"
            )
        } else {
            format!(
                "saved: {path}; the model does not know its last answer whole, so it holds the \
                 wrong one. Mend the flaw, then `harness check histories --again {path}`"
            )
        })
    }
}

impl Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Failed {
            seed,
            history,
            difference,
            ..
        } = self;
        writeln!(
            f,
            "seed {seed}: {} steps, the last one is wrong",
            history.len()
        )?;
        for step in history {
            writeln!(f, "  {:?}", step.operation)?;
        }
        writeln!(f, "{difference}\n\n{}\n{}", self.transcript, self.trace)
    }
}

fn service(operation: &Operation) -> Service {
    match operation {
        Operation::Queue(..) => Service::Queue,
        Operation::Table(..) => Service::Table,
        _ => Service::Blob,
    }
}

/// Replaces a wrong answer by the expected one, as far as the model knows it. Returns whether it is
/// complete, which holds for a rejection, and for wrong headers with the right status.
fn amend(seen: &mut Seen, expected: &Expected) -> bool {
    // The model does not render the Table service's documents.
    if matches!(expected.facts.as_slice(), [Fact::Table(_)]) {
        return false;
    }
    if let Some(code) = expected.code {
        let kept = ["date", "server", "x-ms-request-id", "x-ms-version"];
        seen.response_headers
            .retain(|(name, _)| kept.contains(&name.as_str()));
        let mut header = |name: &str, value: &str| {
            let pair = (name.to_owned(), value.to_owned());
            seen.response_headers.push(pair);
        };
        header("x-ms-error-code", code.as_str());
        seen.response_body = bytes::Bytes::new();
        if expected.status != 304 && seen.method != "HEAD" {
            header("content-type", "application/xml");
            let (code, message) = (code.as_str(), code.message());
            let request = "RequestId:00000000-0000-0000-0000-000000000000";
            let time = "Time:2023-11-14T22:13:20.0000000Z";
            let text = format!(
                "\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?><Error><Code>{code}</Code>\
                 <Message>{message}\n{request}\n{time}</Message></Error>"
            );
            header("content-length", &text.len().to_string());
            seen.response_body = text.into();
        }
        seen.status = expected.status;
        return true;
    }
    if seen.status != expected.status {
        return false;
    }
    let mut is_right = false;
    for fact in &expected.facts {
        let Fact::Header(name, value) = fact else {
            continue;
        };
        let shown = seen
            .response_headers
            .iter()
            .find(|(known, _)| known == name);
        if shown.map(|(_, value)| value) != value.as_ref() {
            is_right = true;
            seen.response_headers.retain(|(known, _)| known != name);
            let value = value.clone().map(|value| ((*name).to_owned(), value));
            seen.response_headers.extend(value);
        }
    }
    is_right
}

impl Failure {
    /// Returns a failure that kept a history from running.
    pub fn before(difference: String) -> Self {
        Failure {
            step: 0,
            operation: Operation::Restart,
            difference,
            expected: Expected::nothing(),
            transcript: String::new(),
        }
    }
}
