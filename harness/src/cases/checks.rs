//! The results of a case: its calls and their checks, including those that apply to every answer.

use serde::{Deserialize, Serialize};
use smalt_protocol::{Service, Timestamp};
use smalt_sleeve::redact;

use super::case::{Step, Wire};
use super::expect::{Aspect, Expect};
use super::place::Place;
use crate::wire::Answer;

/// Maximum length of a piece of a body in a report.
const SHOWN_CHARS_MAX: usize = 300;

/// The result of an expectation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// The expectation holds.
    Passed,
    /// The expectation fails, and the ledger explains why.
    Expected,
    /// The expectation fails.
    Failed,
    /// Not run because an earlier step left another state than expected.
    Blocked,
}

/// An expectation with its result.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Check {
    /// The expectation as written.
    pub text: String,
    /// Part of the answer that it is about.
    pub aspect: Aspect,
    /// Result of the expectation.
    pub outcome: Outcome,
    /// The actual value, if it fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub got: Option<String>,
}

/// A step with its checks.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Called {
    /// Operation id.
    pub operation: String,
    /// Request line, without signatures.
    pub request: String,
    /// Status and error code, or why there was no answer.
    pub answer: String,
    /// Checks of the answer.
    pub checks: Vec<Check>,
}

/// A case with its results.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Played {
    /// Name of the case.
    pub name: String,
    /// Area of the case.
    pub area: String,
    /// Service under test.
    pub service: String,
    /// Documents that require the behaviour.
    pub source: String,
    /// Why the case was skipped, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
    /// Executed steps.
    pub calls: Vec<Called>,
}

impl Played {
    /// Iterates over all checks.
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

/// Whether a step has its own expectation of this header.
fn states(step: &Step, header: &str) -> bool {
    let place = Place::Header(header.to_owned());
    step.expects.iter().any(|expect| expect.place == place)
}

/// Checks that apply to every answer. Source: *Status and error codes*, and the response headers
/// listed on the page of each operation.
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

/// Returns what is wrong with the code in an error document: it must equal the header, which only
/// the Table service omits.
fn unlike_its_header(step: &Step, answer: &Answer) -> Option<String> {
    if step.service == Service::Table {
        let has_code = answer.error_code().is_some();
        return (!has_code).then(|| "no code in the document".to_owned());
    }
    let told = |place| Place::parse(place).value(answer);
    let document = told("/Error/Code").or_else(|| told("/error/code"));
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

/// Returns a step without an answer, whose expectations all failed.
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

/// Returns status and error code.
pub fn shown(answer: &Answer) -> String {
    let code = answer.error_code().unwrap_or_default();
    format!("{} {code}", answer.status).trim_end().to_owned()
}

/// Shortens a value and removes signatures.
pub(super) fn brief(text: &str) -> String {
    let text: String = text.chars().take(SHOWN_CHARS_MAX).collect();
    redact(&text)
}
