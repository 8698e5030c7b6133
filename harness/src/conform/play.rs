//! One scenario against one target: what was asked, what came, and what each expectation says.
//!
//! Values that every scenario has: `{c}`, `{c2}`, `{q}`, `{q2}` (names of its own), `{account}`,
//! `{blob}` and `{queue}` (base URLs), `{path}` (what stands in front of a container in a path of
//! the blob service), `{sas}` (everything permitted), `{sas:read}`.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use smalt_protocol::{Service, Timestamp};

use super::auth::{Auth, EVERYTHING, redacted};
use super::expect::{Aspect, Expect};
use super::place::Place;
use super::scenario::{Scenario, Step, VERSION};
use super::target::{Target, TargetError};
use super::values::Values;
use crate::replay::wire::{Headers, Request, Response};

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

/// A scenario with what came of it.
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

/// One scenario under way.
pub struct Player<'a> {
    target: &'a dyn Target,
    scenario: &'a Scenario,
    /// What the steps keep.
    pub values: Values,
}

impl<'a> Player<'a> {
    /// Begins: containers and queues are called after `prefix`.
    pub fn new(target: &'a dyn Target, scenario: &'a Scenario, prefix: &str) -> Player<'a> {
        let about = target.about();
        let mut values = Values::default();
        for place in super::scenario::PLACES {
            values.keep(place, format!("{prefix}-{place}"));
        }
        values.keep("account", &about.account.name);
        values.keep("blob", &about.blob);
        values.keep("queue", &about.queue);
        values.keep("path", about.prefix(Service::Blob));
        values.keep("sas", about.account.sas(EVERYTHING));
        values.keep("sas:read", about.account.sas("r"));
        values.see(target.now());
        Player {
            target,
            scenario,
            values,
        }
    }

    /// What is asked.
    pub fn target(&self) -> &'a dyn Target {
        self.target
    }

    /// Sets the account and makes what the steps take for granted.
    ///
    /// # Errors
    /// In words, what the target refused.
    pub async fn prepare(&mut self) -> Result<(), String> {
        if let Some(settings) = &self.scenario.settings {
            let set = self.target.configure(settings).await;
            set.map_err(|error| error.to_string())?;
        }
        for place in &self.scenario.makes {
            let answer = self.plain("PUT", place).await;
            let answer = answer.map_err(|error| error.to_string())?;
            if answer.status >= 300 {
                return Err(format!("{place} cannot be made: {}", shown(&answer)));
            }
        }
        Ok(())
    }

    /// All steps in order. One that leaves something else behind than it should blocks the rest.
    pub async fn steps(&mut self) -> Vec<Called> {
        let mut calls = Vec::with_capacity(self.scenario.steps.len());
        let mut is_blocked = false;
        for step in &self.scenario.steps {
            let called = if is_blocked {
                blocked(step)
            } else {
                let (called, went_otherwise) = self.step(step).await;
                is_blocked = went_otherwise;
                called
            };
            calls.push(called);
        }
        calls
    }

    /// Sends a step and judges its answer; also, whether those behind it can go on from there.
    pub async fn step(&mut self, step: &Step) -> (Called, bool) {
        if step.wait_s > 0
            && let Err(error) = self.target.advance(step.wait_s).await
        {
            return (failed(step, step.path.clone(), &error.to_string()), true);
        }
        let request = match self.request(step) {
            Ok(request) => request,
            Err(problem) => return (failed(step, step.path.clone(), &problem), true),
        };
        let line = redacted(&format!("{} {}", request.method, request.url));
        match self.send(request).await {
            Ok(answer) => {
                let went_otherwise = went_otherwise(step, answer.status);
                (self.judge(step, line, &answer), went_otherwise)
            }
            Err(error) => (failed(step, line, &error.to_string()), true),
        }
    }

    /// The checks of an answer; values are kept.
    pub fn judge(&mut self, step: &Step, request: String, answer: &Response) -> Called {
        let mut checks: Vec<Check> = step
            .expects
            .iter()
            .map(|expect| match expect.judge(answer, &self.values) {
                Ok(None) => check(expect, Outcome::Passed, None),
                Ok(Some(got)) => check(expect, Outcome::Failed, Some(brief(&got))),
                Err(error) => check(expect, Outcome::Failed, Some(error.to_string())),
            })
            .collect();
        checks.extend(common(step, answer));
        for (name, place) in &step.keeps {
            if let Some(value) = place.value(answer) {
                self.values.keep(name, value);
            }
        }
        Called {
            operation: step.operation.id.to_owned(),
            request,
            answer: shown(answer),
            checks,
        }
    }

    /// The request of a step, allowed as it says.
    ///
    /// # Errors
    /// In words, when a text cannot be expanded.
    pub fn request(&self, step: &Step) -> Result<Request, String> {
        let text = |text: &str| self.values.text(text).map_err(|error| error.to_string());
        let body = step.body.as_deref().map(|body| self.values.bytes(body));
        let body = body.transpose().map_err(|error| error.to_string())?;
        let mut headers = Vec::with_capacity(step.headers.len());
        for header in &step.headers {
            let (name, value) = header.split_once(": ").unwrap_or((header, ""));
            headers.push((name, text(value)?));
        }
        let path = text(&step.path)?;
        Ok(self.allowed(
            (step.method, &step.auth, &step.version),
            &path,
            &headers,
            body.unwrap_or_default().into(),
        ))
    }

    fn allowed(
        &self,
        (method, auth, version): (&str, &Auth, &str),
        path: &str,
        more: &[(&str, String)],
        body: Bytes,
    ) -> Request {
        let about = self.target.about();
        let service = self.scenario.service;
        let now = self.target.now();
        let mut headers = Headers::default();
        if !version.is_empty() {
            headers.push("x-ms-version", version);
        }
        headers.push("x-ms-date", now.rfc1123());
        for (name, value) in more {
            headers.push(name, value.clone());
        }
        if !body.is_empty() || matches!(method, "PUT" | "POST") {
            headers.push("content-length", body.len().to_string());
        }
        let base = about.base(service);
        let mut request = Request {
            method: method.to_owned(),
            url: match path.strip_prefix('?') {
                Some(query) => format!("{base}/?{query}"),
                None => format!("{base}/{path}"),
            },
            headers,
            body,
        };
        let service_now = self.values.now().unwrap_or(now);
        let prefix = about.prefix(service);
        about
            .account
            .allow(auth, service, prefix, service_now, &mut request);
        request
    }

    /// Sends a request and takes the service's time from its answer.
    ///
    /// # Errors
    /// As the target.
    pub async fn send(&mut self, request: Request) -> Result<Response, TargetError> {
        let answer = self.target.call(request).await?;
        let date = answer.headers.get("date");
        if let Some(date) = date.and_then(Timestamp::parse_rfc1123) {
            self.values.see(date);
        }
        Ok(answer)
    }

    /// A request of the runner itself: a container or queue is made or removed.
    async fn plain(&mut self, method: &str, place: &str) -> Result<Response, TargetError> {
        self.plain_with(method, place, "", &[]).await
    }

    async fn plain_with(
        &mut self,
        method: &str,
        place: &str,
        query: &str,
        headers: &[(&str, String)],
    ) -> Result<Response, TargetError> {
        let kind = match self.scenario.service {
            Service::Blob => "?restype=container",
            _ => "?",
        };
        let path = format!("{}{kind}{query}", self.values.get(place));
        let path = path.trim_end_matches('?').to_owned();
        let how = (method, &Auth::Key, VERSION);
        let request = self.allowed(how, &path, headers, Bytes::new());
        self.send(request).await
    }

    /// Removes what the scenario made, and returns the account to what it was.
    ///
    /// # Errors
    /// In words, what could not be removed.
    pub async fn clean_up(&mut self) -> Result<(), String> {
        let scenario = self.scenario;
        for place in &scenario.removes {
            let mut removed = self.plain("DELETE", place).await;
            if scenario.service == Service::Blob && status_of(&removed) == 412 {
                let action = [
                    ("x-ms-lease-action", "break".to_owned()),
                    ("x-ms-lease-break-period", "0".to_owned()),
                ];
                let broken = self.plain_with("PUT", place, "&comp=lease", &action).await;
                removed = match broken {
                    Ok(_) => self.plain("DELETE", place).await,
                    Err(error) => Err(error),
                };
            }
            match removed {
                Ok(answer) if answer.status < 300 || answer.status == 404 => {}
                Ok(answer) => return Err(format!("{place}: {}", shown(&answer))),
                Err(error) => return Err(format!("{place}: {error}")),
            }
        }
        if scenario.settings.is_some() {
            let reset = self.target.configure(&serde_json::Value::Null).await;
            reset.map_err(|error| error.to_string())?;
        }
        Ok(())
    }
}

/// Whether a write was done that should not have been, or the other way round. Of a read only its
/// values matter to later steps.
fn went_otherwise(step: &Step, status: u16) -> bool {
    let is_read = matches!(step.method, "GET" | "HEAD");
    let matters = !is_read || !step.keeps.is_empty();
    matters && step.succeeds() != (status < 300)
}

fn status_of(answer: &Result<Response, TargetError>) -> u16 {
    answer.as_ref().map_or(0, |answer| answer.status)
}

fn check(expect: &Expect, outcome: Outcome, got: Option<String>) -> Check {
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
fn common(step: &Step, answer: &Response) -> Vec<Check> {
    let mut checks = Vec::new();
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
    if step.operation.id == "Preflight" {
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
    if !states(step, "x-ms-version") {
        let version = header("x-ms-version");
        let got = (version != step.version).then(|| format!("{version:?}"));
        add("the version that was asked for", Aspect::Headers, got);
    }
    if answer.status >= 400 && step.method != "HEAD" && !states(step, "x-ms-error-code") {
        let document = Place::parse("/Error/Code").value(answer);
        let code = answer.headers.get("x-ms-error-code").map(str::to_owned);
        let got = (document != code || code.is_none())
            .then(|| format!("{document:?} in the document, {code:?} in x-ms-error-code"));
        add("error document", Aspect::Body, got);
    }
    checks
}

fn blocked(step: &Step) -> Called {
    let checks = step.expects.iter();
    Called {
        operation: step.operation.id.to_owned(),
        request: format!("{} {}", step.method, step.path),
        answer: "not asked".to_owned(),
        checks: checks
            .map(|expect| check(expect, Outcome::Blocked, None))
            .collect(),
    }
}

/// A step without an answer: everything that was expected of it failed.
fn failed(step: &Step, request: String, problem: &str) -> Called {
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
        operation: step.operation.id.to_owned(),
        request,
        answer: problem.to_owned(),
        checks,
    }
}

/// Status and error code.
pub fn shown(answer: &Response) -> String {
    let code = answer.error_code().unwrap_or_default();
    format!("{} {code}", answer.status).trim_end().to_owned()
}

/// A value, cut and without signatures.
fn brief(text: &str) -> String {
    let text: String = text.chars().take(SHOWN_CHARS_MAX).collect();
    redacted(&text)
}
