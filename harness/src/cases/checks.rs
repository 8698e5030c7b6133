//! What came of a case: its calls and their checks, those too that nobody writes down.

use serde::{Deserialize, Serialize};
use smalt_protocol::{Service, Timestamp};

use super::auth::redacted;
use super::case::{Step, Wire};
use super::expect::{Aspect, Expect};
use super::place::Place;
use crate::wire::Answer;

/// Longest piece of a body that a report shows.
const SHOWN_CHARS_MAX: usize = 300;

/// What came of an expectation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It holds.
    Passed,
    /// It does not, which the ledger knows and explains.
    Expected,
    /// It does not.
    Failed,
    /// It could not be asked: an earlier step went otherwise.
    Blocked,
}

/// An expectation with what came of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Check {
    /// The expectation as it is written.
    pub text: String,
    /// What it is about.
    pub aspect: Aspect,
    /// What came of it.
    pub outcome: Outcome,
    /// What stood there instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub got: Option<String>,
}

/// A step with its checks.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Called {
    /// Id of the operation.
    pub operation: String,
    /// The request's line, without what allows it.
    pub request: String,
    /// Status and error code, or why there was no answer.
    pub answer: String,
    /// Its checks.
    pub checks: Vec<Check>,
}

/// A case with what came of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Played {
    /// Its name.
    pub name: String,
    /// Its area.
    pub area: String,
    /// Its service.
    pub service: String,
    /// The documents that say so.
    pub source: String,
    /// Why it was left out, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
    /// Its steps.
    pub calls: Vec<Called>,
}

impl Played {
    /// Every check.
    pub fn checks(&self) -> impl Iterator<Item = (&Called, &Check)> {
        let calls = self.calls.iter();
        calls.flat_map(|call| call.checks.iter().map(move |check| (call, check)))
    }
}

pub(super) fn check(expect: &Expect, outcome: Outcome, got: Option<String>) -> Check {
    Check {
        text: expect.text.clone(),
        aspect: expect.aspect,
        outcome,
        got,
    }
}

/// Whether a step says of this header itself what is due.
fn states(step: &Step, header: &str) -> bool {
    let place = Place::Header(header.to_owned());
    step.expects.iter().any(|expect| expect.place == place)
}

/// What every answer must be, whatever was asked. Source: *Status and error codes*, and the
/// response headers that the page of each operation lists.
pub(super) fn common(step: &Step, answer: &Answer) -> Vec<Check> {
    let mut checks = Vec::new();
    if step.wire != Wire::Client {
        return checks;
    }
    let mut add = |text: &str, aspect, got: Option<String>| {
        checks.push(Check {
            text: text.to_owned(),
            aspect,
            outcome: if got.is_none() {
                Outcome::Passed
            } else {
                Outcome::Failed
            },
            got,
        });
    };
    if !step.expects.iter().any(Expect::is_status) {
        let got = (answer.status >= 300).then(|| shown(answer));
        add("success", Aspect::Status, got);
    }
    if step.method == "OPTIONS" {
        return checks;
    }
    let header = |name| answer.headers.get(name).unwrap_or_default();
    let mut lacking = Vec::new();
    if header("x-ms-request-id").is_empty() {
        lacking.push("no x-ms-request-id".to_owned());
    }
    if Timestamp::parse_rfc1123(header("date")).is_none() {
        lacking.push("no date".to_owned());
    }
    let got = (!lacking.is_empty()).then(|| lacking.join(", "));
    add("common headers", Aspect::Headers, got);
    if answer.status >= 400 && step.method != "HEAD" && !states(step, "x-ms-error-code") {
        add(
            "error document",
            Aspect::Body,
            unlike_its_header(step, answer),
        );
    }
    checks
}

/// What is wrong with the code in the document of a refusal: it must be that of the header, which
/// the Table service alone does without.
fn unlike_its_header(step: &Step, answer: &Answer) -> Option<String> {
    if step.service == Service::Table {
        let has_code = answer.error_code().is_some();
        return (!has_code).then(|| "no code in the document".to_owned());
    }
    let document = Place::parse("/Error/Code").value(answer);
    let code = answer.headers.get("x-ms-error-code").map(str::to_owned);
    (document != code || code.is_none())
        .then(|| format!("{document:?} in the document, {code:?} in x-ms-error-code"))
}

pub(super) fn blocked(step: &Step) -> Called {
    let checks = step.expects.iter();
    Called {
        operation: step.operation_id().to_owned(),
        request: format!("{} {}", step.method, step.path),
        answer: "not asked".to_owned(),
        checks: checks
            .map(|expect| check(expect, Outcome::Blocked, None))
            .collect(),
    }
}

/// A step without an answer: everything that was expected of it failed.
pub(super) fn failed(step: &Step, request: String, problem: &str) -> Called {
    let mut checks: Vec<Check> = step
        .expects
        .iter()
        .map(|expect| check(expect, Outcome::Failed, Some(problem.to_owned())))
        .collect();
    if !step.expects.iter().any(Expect::is_status) {
        checks.push(Check {
            text: "success".to_owned(),
            aspect: Aspect::Status,
            outcome: Outcome::Failed,
            got: Some(problem.to_owned()),
        });
    }
    Called {
        operation: step.operation_id().to_owned(),
        request,
        answer: problem.to_owned(),
        checks,
    }
}

/// Status and error code.
pub fn shown(answer: &Answer) -> String {
    let code = answer.error_code().unwrap_or_default();
    format!("{} {code}", answer.status).trim_end().to_owned()
}

/// A value, cut and without signatures.
pub(super) fn brief(text: &str) -> String {
    let text: String = text.chars().take(SHOWN_CHARS_MAX).collect();
    redacted(&text)
}
