//! Runs one case against one target and checks each expectation.
//!
//! Every case has these values: `{c}`, `{c2}`, `{q}`, `{q2}`, `{t}`, `{t2}` (names unique to the
//! case), `{account}`, `{blob}`, `{queue}` and `{table}` (base URLs), `{path}` (the part in front
//! of a container in a path of the blob service), and signed queries ([`super::auth::signatures`]).
//! A request with `@bytes` also has `{host}`.

use std::collections::BTreeMap;

use bytes::Bytes;
use smalt::faults::Rule;
use smalt_protocol::{Service, Timestamp};
use smalt_sleeve::redact;

use super::auth::{self, Auth};
use super::case::{Case, PLACES, Step, VERSION, Wire};
use super::checks::Outcome;
use super::checks::{Called, Check, blocked, brief, check, common, failed, shown};
use super::values::Values;
use super::verbatim;
use crate::target::{Target, TargetError};
use crate::wire::{Answer, Headers, Request};

/// Suffix of the account name in the secondary endpoint.
const SECONDARY: &str = "-secondary";

/// One case in progress.
pub struct Player<'a> {
    target: &'a dyn Target,
    case: &'a Case,
    /// Names of what is created and removed. Values from answers must not get in here.
    own: BTreeMap<&'static str, String>,
    /// Values kept by the steps.
    pub values: Values,
}

impl<'a> Player<'a> {
    /// Starts a case; names of containers, queues and tables begin with `prefix`.
    pub fn new(target: &'a dyn Target, case: &'a Case, prefix: &str) -> Player<'a> {
        let about = target.about();
        let mut values = Values::default();
        let own = PLACES.map(|place| match kept_by(place) {
            Service::Table => (place, table_name(prefix, place)),
            _ => (place, format!("{prefix}-{place}")),
        });
        for (place, name) in &own {
            values.keep(place, name);
        }
        values.keep("account", &about.account.name);
        values.keep("blob", &about.blob);
        values.keep("queue", &about.queue);
        values.keep("table", &about.table);
        values.keep("path", about.prefix(Service::Blob));
        for (name, query) in auth::signatures(&about.account) {
            values.keep(name, query);
        }
        values.see(target.now());
        Player {
            target,
            case,
            own: own.into(),
            values,
        }
    }

    /// Removes the container, queue or table of this name; `place` determines the kind.
    pub(super) async fn remove(&mut self, place: &'static str, name: String) -> Result<(), String> {
        self.own.insert(place, name);
        self.clean_up().await
    }

    fn own(&self, place: &str) -> &str {
        self.own.get(place).map_or("", String::as_str)
    }

    /// Returns the target.
    pub fn target(&self) -> &'a dyn Target {
        self.target
    }

    /// Configures the account and creates what the steps require.
    pub async fn prepare(&mut self) -> Result<(), String> {
        if let Some(settings) = &self.case.settings {
            let set = self.target.configure(settings).await;
            set.map_err(|error| error.to_string())?;
        }
        for place in &self.case.makes {
            let answer = self.plain("PUT", place).await;
            let answer = answer.map_err(|error| error.to_string())?;
            if answer.status >= 300 {
                return Err(format!("cannot create {place}: {}", shown(&answer)));
            }
        }
        Ok(())
    }

    /// Runs all steps in order. A step that leaves another state than expected blocks the rest.
    pub async fn steps(&mut self) -> Vec<Called> {
        let mut calls = Vec::with_capacity(self.case.steps.len());
        let mut is_blocked = false;
        for step in &self.case.steps {
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

    /// Sends a step and checks its answer; also returns whether later steps can continue.
    pub async fn step(&mut self, step: &Step) -> (Called, bool) {
        let (line, answer) = match &step.wire {
            Wire::Client => match self.ready(step).await {
                Ok(request) => {
                    let line = redact(&format!("{} {}", request.method, request.url));
                    (line, self.send(request).await)
                }
                Err(problem) => return (failed(step, step.path.clone(), &problem), true),
            },
            Wire::Bytes { length, then } => {
                let line = format!("{} {}", step.method, step.path);
                match verbatim::of(step, length.as_deref(), self) {
                    Ok(bytes) => (line, self.target.exchange(step.service, bytes, *then).await),
                    Err(error) => return (failed(step, line, &error.to_string()), true),
                }
            }
        };
        if step.fault.is_some()
            && let Err(error) = self.target.fired().await
        {
            return (failed(step, line, &error.to_string()), true);
        }
        match answer {
            Ok(answer) => {
                let went_otherwise = went_otherwise(step, answer.status);
                (self.judge(step, line, &answer), went_otherwise)
            }
            Err(error) => (failed(step, line, &error.to_string()), true),
        }
    }

    /// Waits and plans the fault of a step, and returns its request.
    pub async fn ready(&mut self, step: &Step) -> Result<Request, String> {
        let text = |error: TargetError| error.to_string();
        if step.wait_s > 0 {
            self.target.advance(step.wait_s).await.map_err(text)?;
        }
        if let Some(fault) = &step.fault {
            let rule = Rule {
                operation: step.operation_id().to_owned(),
                resource: String::new(),
                nth: 1,
                times: 1,
                fault: fault.clone(),
            };
            self.target.plan(&rule).await.map_err(text)?;
        }
        self.request(step)
    }

    /// Checks an answer and keeps values of it.
    pub fn judge(&mut self, step: &Step, request: String, answer: &Answer) -> Called {
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
            operation: step.operation_id().to_owned(),
            request,
            answer: shown(answer),
            checks,
        }
    }

    /// Returns the authorized request of a step.
    pub fn request(&self, step: &Step) -> Result<Request, String> {
        let text = |text: &str| self.values.text(text).map_err(|error| error.to_string());
        let body = step.body.as_deref().map(|body| self.values.bytes(body));
        let body = body.transpose().map_err(|error| error.to_string())?;
        let mut headers = Vec::with_capacity(step.headers.len());
        for header in &step.headers {
            let (name, value) = header.split_once(':').unwrap_or((header, ""));
            headers.push((name, text(value.strip_prefix(' ').unwrap_or(value))?));
        }
        let auth = step.auth.expanded(&self.values);
        let auth = auth.map_err(|error| error.to_string())?;
        let path = self.values.path(&step.path);
        let path = path.map_err(|error| error.to_string())?;
        Ok(self.allowed(
            &How {
                service: step.service,
                method: &step.method,
                auth: &auth,
                version: &step.version,
                secondary: step.secondary,
            },
            &path,
            &headers,
            body.unwrap_or_default().into(),
        ))
    }

    fn allowed(&self, how: &How<'_>, path: &str, more: &[(&str, String)], body: Bytes) -> Request {
        let about = self.target.about();
        let service = how.service;
        let now = self.target.now();
        let mut headers = Headers::default();
        if !how.version.is_empty() {
            headers.push("x-ms-version", how.version);
        }
        headers.push("x-ms-date", now.rfc1123());
        for (name, value) in more {
            headers.push(name, value.clone());
        }
        if !body.is_empty() || matches!(how.method, "PUT" | "POST") {
            headers.push("content-length", body.len().to_string());
        }
        let base = about.base(service);
        let name = &about.account.name;
        let base = if how.secondary {
            base.replacen(name, &format!("{name}{SECONDARY}"), 1)
        } else {
            base.to_owned()
        };
        // Host names tell the two interfaces of an account apart; a path-style address does not.
        let base = if has_data_lake_shape(how.method, path, &headers) {
            base.replacen(".blob.", ".dfs.", 1)
        } else {
            base
        };
        let mut request = Request {
            method: how.method.to_owned(),
            url: match path.strip_prefix('?') {
                Some(query) => format!("{base}/?{query}"),
                None => format!("{base}/{path}"),
            },
            headers,
            body,
        };
        let service_now = self.values.now().unwrap_or(now);
        let prefix = about.prefix(service);
        how.auth
            .allow(&about.account, service, prefix, service_now, &mut request);
        request
    }

    /// Sends a request and reads the service's time from its answer.
    pub async fn send(&mut self, request: Request) -> Result<Answer, TargetError> {
        let answer = self.target.call(request).await?;
        let date = answer.headers.get("date");
        if let Some(date) = date.and_then(Timestamp::parse_rfc1123) {
            self.values.see(date);
        }
        Ok(answer)
    }

    /// Sends a request of the runner itself that creates or removes a container, queue or table.
    async fn plain(&mut self, method: &'static str, place: &str) -> Result<Answer, TargetError> {
        if kept_by(place) == Service::Table {
            return self.plain_table(method, place).await;
        }
        self.plain_with(method, place, "", &[]).await
    }

    async fn plain_table(
        &mut self,
        method: &'static str,
        place: &str,
    ) -> Result<Answer, TargetError> {
        let name = self.own(place);
        let (method, path, body) = match method {
            "PUT" => {
                let body = serde_json::json!({ "TableName": name }).to_string();
                ("POST", "Tables".to_owned(), body)
            }
            _ => (method, format!("Tables('{name}')"), String::new()),
        };
        let how = How {
            service: kept_by(place),
            method,
            auth: &Auth::Key,
            version: VERSION,
            secondary: false,
        };
        let json = ["Content-Type", "Accept"].map(|name| (name, "application/json".to_owned()));
        let request = self.allowed(&how, &path, &json, body.into());
        self.send(request).await
    }

    async fn plain_with(
        &mut self,
        method: &'static str,
        place: &str,
        query: &str,
        headers: &[(&str, String)],
    ) -> Result<Answer, TargetError> {
        let kind = match kept_by(place) {
            Service::Blob => "?restype=container",
            _ => "?",
        };
        let path = format!("{}{kind}{query}", self.own(place));
        let path = path.trim_end_matches('?').to_owned();
        let how = How {
            service: kept_by(place),
            method,
            auth: &Auth::Key,
            version: VERSION,
            secondary: false,
        };
        let request = self.allowed(&how, &path, headers, Bytes::new());
        self.send(request).await
    }

    /// Removes what the case created, and restores the account.
    pub async fn clean_up(&mut self) -> Result<(), String> {
        let case = self.case;
        for place in &case.removes {
            let mut removed = self.plain("DELETE", place).await;
            if kept_by(place) == Service::Blob && status_of(&removed) == 412 {
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
        if case.settings.is_some() {
            let reset = self.target.configure(&serde_json::Value::Null).await;
            reset.map_err(|error| error.to_string())?;
        }
        Ok(())
    }
}

/// Returns the name of a table in a case: letters and digits only.
pub(super) fn table_name(prefix: &str, place: &str) -> String {
    let names = prefix.chars().chain(place.chars());
    names.filter(char::is_ascii_alphanumeric).collect()
}

/// Returns the service of a place.
fn kept_by(place: &str) -> Service {
    match place {
        "q" | "q2" => Service::Queue,
        "t" | "t2" => Service::Table,
        _ => Service::Blob,
    }
}

/// Whether only the Data Lake interface has requests of this form.
fn has_data_lake_shape(method: &str, path: &str, headers: &Headers) -> bool {
    let (_, query) = path.split_once('?').unwrap_or_default();
    let names = |part: &str| {
        let parameters = ["resource=", "action=", "recursive="];
        parameters.iter().any(|name| part.starts_with(name))
    };
    let leases = method == "POST" && headers.has("x-ms-lease-action");
    leases || headers.has("x-ms-rename-source") || query.split('&').any(names)
}

/// How a request is sent, besides its content.
struct How<'a> {
    service: Service,
    method: &'a str,
    auth: &'a Auth,
    version: &'a str,
    secondary: bool,
}

/// Whether a write succeeded that should have failed, or the other way round. A read only affects
/// later steps by its values.
fn went_otherwise(step: &Step, status: u16) -> bool {
    let is_read = matches!(step.method.as_str(), "GET" | "HEAD");
    let matters = !is_read || !step.keeps.is_empty();
    matters && step.succeeds() != (status < 300)
}

fn status_of(answer: &Result<Answer, TargetError>) -> u16 {
    answer.as_ref().map_or(0, |answer| answer.status)
}
