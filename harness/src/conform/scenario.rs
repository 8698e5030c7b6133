//! What a scenario is, and the files that hold them.
//!
//! ```toml
//! service = "blob"
//!
//! [[scenario]]
//! name = "a block blob comes back as it was put"
//! source = "Put Blob; Get Blob"
//! step = [
//!     { call = "BlockBlob_Upload {c}/b", headers = ["x-ms-blob-type: BlockBlob"], body = "hello",
//!       expect = ["201", "etag ~ etag"], keep = { first = "etag" } },
//!     { call = "Blob_Download {c}/b", expect = ["200", "body = hello", "etag == {first}"] },
//! ]
//! ```
//!
//! A call names an operation of the register, which gives method, `restype` and `comp`, and the
//! path below the account. `{c}`, `{c2}`, `{q}`, `{q2}`, `{t}` and `{t2}` (containers, queues,
//! tables) are made before the first step and removed after the last; a name in `bare` is not made.
//! `json` in place of `body` is sent as JSON.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use smalt::faults::Fault;
use smalt::register::{self, Entry, Verb};
use smalt_protocol::Service;

use super::auth::Auth;
use super::expect::Expect;
use super::place::Place;
use crate::servers::files;
use crate::target::Ability;

/// One step: a request and what its answer must be.
#[derive(Clone, Debug)]
pub struct Step {
    /// The operation.
    pub operation: &'static Entry,
    /// Method, where the operation has several.
    pub method: &'static str,
    /// Path below the account and query, not expanded.
    pub path: String,
    /// `name: value` lines, not expanded.
    pub headers: Vec<String>,
    /// Body, not expanded.
    pub body: Option<String>,
    /// How it is allowed.
    pub auth: Auth,
    /// `x-ms-version`.
    pub version: String,
    /// Seconds that pass before it.
    pub wait_s: u64,
    /// Whether the account's secondary endpoint is asked.
    pub secondary: bool,
    /// What goes wrong with it.
    pub fault: Option<Fault>,
    /// What its answer must be.
    pub expects: Vec<Expect>,
    /// Values to keep: name, and where it stands.
    pub keeps: Vec<(String, Place)>,
}

/// A few steps that belong together.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// What holds, in a sentence; unique.
    pub name: String,
    /// The file that it stands in: its area.
    pub area: String,
    /// Service.
    pub service: Service,
    /// Title of the documents that say so.
    pub source: String,
    /// What a target must be able to do.
    pub needs: Vec<Ability>,
    /// Settings of the account: fields of `/accounts/{name}` of the control endpoint.
    pub settings: Option<serde_json::Value>,
    /// Containers, queues and tables that are made beforehand: `c`, `c2`, `q`, `q2`, `t`, `t2`.
    pub makes: Vec<&'static str>,
    /// Those that may be there afterwards.
    pub removes: Vec<&'static str>,
    /// Steps in order.
    pub steps: Vec<Step>,
}

/// Containers, queues and tables that scenarios name.
pub const PLACES: [&str; 6] = ["c", "c2", "q", "q2", "t", "t2"];
/// Other values that every scenario has ([`super::play`]).
const GIVEN: [&str; 8] = [
    "account",
    "blob",
    "queue",
    "table",
    "path",
    "sas",
    "sas:read",
    "properties",
];
/// `x-ms-version` of steps that name none: known to every endpoint of the last years.
pub const VERSION: &str = "2023-11-03";
/// What is asked of the Table service when a step does not say: no client leaves it out.
const ACCEPT: &str = "Accept: application/json";
/// The header of a body that is written as JSON.
const JSON: &str = "Content-Type: application/json";

/// Why scenarios cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// A file or the directory cannot be read.
    #[error("{0}: {1}")]
    Io(String, std::io::Error),
    /// A file is no table of scenarios.
    #[error("{0}: {1}")]
    Format(String, Box<toml::de::Error>),
    /// A step is wrong.
    #[error("{area}: {scenario:?}, step {step}: {problem}")]
    Step {
        /// The file.
        area: String,
        /// The scenario.
        scenario: String,
        /// Which step, from 1.
        step: usize,
        /// What is wrong.
        problem: String,
    },
    /// Two scenarios have one name.
    #[error("two scenarios are called {0:?}")]
    Twice(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    service: String,
    scenario: Vec<Written>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    name: String,
    source: String,
    #[serde(default)]
    needs: Vec<Ability>,
    #[serde(default)]
    settings: Option<serde_json::Value>,
    #[serde(default)]
    bare: Vec<String>,
    step: Vec<WrittenStep>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenStep {
    call: String,
    #[serde(default)]
    method: Option<String>,
    #[serde(default)]
    headers: Vec<String>,
    #[serde(default)]
    body: Option<String>,
    /// A body of lines that end as HTTP's do.
    #[serde(default)]
    lines: Vec<String>,
    /// A body of JSON, which says so.
    #[serde(default)]
    json: Option<serde_json::Value>,
    #[serde(default)]
    auth: Option<String>,
    #[serde(default)]
    version: Option<String>,
    #[serde(default)]
    wait_s: u64,
    #[serde(default)]
    secondary: bool,
    #[serde(default)]
    fault: Option<Fault>,
    #[serde(default)]
    expect: Vec<String>,
    #[serde(default)]
    keep: BTreeMap<String, String>,
}

/// Reads the scenarios of one file.
///
/// # Errors
/// When it is no table of scenarios.
pub fn parse(area: &str, text: &str) -> Result<Vec<Scenario>, ScenarioError> {
    let file: File = toml::from_str(text)
        .map_err(|error| ScenarioError::Format(area.to_owned(), Box::new(error)))?;
    let named = Service::ALL
        .into_iter()
        .find(|service| service.as_str() == file.service);
    let read = |written: Written| {
        let wrong = |step, problem| ScenarioError::Step {
            area: area.to_owned(),
            scenario: written.name.clone(),
            step,
            problem,
        };
        let service = named.ok_or_else(|| wrong(0, "service: blob, queue or table".to_owned()))?;
        let mut steps = Vec::with_capacity(written.step.len());
        for (at, step) in (1..).zip(&written.step) {
            steps.push(step.read(service).map_err(|problem| wrong(at, problem))?);
        }
        Ok(written.scenario(area, service, steps))
    };
    file.scenario.into_iter().map(read).collect()
}

/// Reads every file of a directory.
///
/// # Errors
/// When a file cannot be read, or repeats a name.
pub fn read(dir: &Path) -> Result<Vec<Scenario>, ScenarioError> {
    let texts = files::texts(dir, "toml")
        .map_err(|error| ScenarioError::Io(dir.display().to_string(), error))?;
    collect(
        texts
            .iter()
            .map(|(area, text)| (area.as_str(), text.as_str())),
    )
}

/// The scenarios of several files.
///
/// # Errors
/// When one is no table of scenarios, or repeats a name.
pub fn collect<'a>(
    files: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Result<Vec<Scenario>, ScenarioError> {
    let mut all: Vec<Scenario> = Vec::new();
    for (area, text) in files {
        for scenario in parse(area, text)? {
            if all.iter().any(|other| other.name == scenario.name) {
                return Err(ScenarioError::Twice(scenario.name));
            }
            all.push(scenario);
        }
    }
    Ok(all)
}

impl Written {
    fn scenario(self, area: &str, service: Service, steps: Vec<Step>) -> Scenario {
        let names = |place: &&str| {
            let form = format!("{{{place}}}");
            steps.iter().any(|step| step.names(&form))
        };
        let removes: Vec<&'static str> = PLACES.into_iter().filter(|place| names(place)).collect();
        let makes = removes
            .iter()
            .filter(|place| !self.bare.iter().any(|bare| bare == *place));
        let mut needs = self.needs;
        if steps.iter().any(|step| step.wait_s > 0) {
            needs.push(Ability::Clock);
        }
        if steps.iter().any(|step| step.fault.is_some()) {
            needs.push(Ability::Faults);
        }
        if self.settings.is_some() {
            needs.push(Ability::Settings);
        }
        Scenario {
            name: self.name,
            area: area.to_owned(),
            service,
            source: self.source,
            needs,
            settings: self.settings,
            makes: makes.copied().collect(),
            removes,
            steps,
        }
    }
}

impl WrittenStep {
    fn read(&self, service: Service) -> Result<Step, String> {
        let (id, path) = self.call.split_once(' ').unwrap_or((&self.call, ""));
        let operation = register::by_id(service, id)
            .ok_or_else(|| format!("{id} is no operation of this service"))?;
        let mut expects = Vec::new();
        for text in &self.expect {
            expects.extend(Expect::parse(text).map_err(|error| error.to_string())?);
        }
        if let Some(header) = self.headers.iter().find(|header| !header.contains(": ")) {
            return Err(format!("not a header: {header}"));
        }
        let auth = self.auth.as_deref().map_or(Ok(Auth::Key), Auth::parse)?;
        let given = |name: &&String| PLACES.contains(&name.as_str()) || GIVEN.contains(&&name[..]);
        if let Some(name) = self.keep.keys().find(given) {
            return Err(format!("{name} is a value that every scenario has"));
        }
        let keeps = self.keep.iter();
        let mut headers = self.headers.clone();
        if self.json.is_some() {
            headers.insert(0, JSON.to_owned());
        }
        if service == Service::Table && !headers.iter().any(|one| one.starts_with("Accept: ")) {
            headers.push(ACCEPT.to_owned());
        }
        Ok(Step {
            operation,
            method: method(operation.verb, self.method.as_deref())?,
            path: with_query(path, operation),
            headers,
            body: self.body(),
            auth,
            version: self.version.clone().unwrap_or_else(|| VERSION.to_owned()),
            wait_s: self.wait_s,
            secondary: self.secondary,
            fault: self.fault.clone(),
            expects,
            keeps: keeps
                .map(|(name, place)| (name.clone(), Place::parse(place)))
                .collect(),
        })
    }

    fn body(&self) -> Option<String> {
        if let Some(json) = &self.json {
            // A brace before a name or another brace is JSON's own, not one of a value's.
            let text = json.to_string().replace("{\"", "{hex:7b}\"");
            return Some(text.replace("{}", "{hex:7b}}"));
        }
        match &self.lines[..] {
            [] => self.body.clone(),
            lines => Some(lines.join("\r\n") + "\r\n"),
        }
    }
}

impl Step {
    /// Whether it names this form anywhere.
    fn names(&self, form: &str) -> bool {
        let body = self.body.iter();
        let texts = body.chain(&self.headers).chain([&self.path]);
        texts.into_iter().any(|text| text.contains(form))
    }

    /// Whether its answer is to be a success.
    pub fn succeeds(&self) -> bool {
        let status = self.expects.iter().find_map(Expect::status);
        status.is_none_or(|status| status < 300)
    }
}

fn method(verb: Verb, named: Option<&str>) -> Result<&'static str, String> {
    let usual = match verb {
        Verb::Any | Verb::Get | Verb::GetOrHead => "GET",
        Verb::Head => "HEAD",
        Verb::Put => "PUT",
        Verb::Post | Verb::PostOrPut => "POST",
        Verb::Delete => "DELETE",
        Verb::Patch => "PATCH",
        Verb::Options => "OPTIONS",
    };
    let known = ["GET", "HEAD", "PUT", "POST", "DELETE", "PATCH", "MERGE"];
    match named {
        None => Ok(usual),
        Some(named) => known
            .into_iter()
            .find(|method| *method == named)
            .ok_or_else(|| format!("{named} is no method")),
    }
}

/// The path with what the register says of the operation's query, in front of its own.
fn with_query(path: &str, operation: &Entry) -> String {
    let (path, own) = path.split_once('?').unwrap_or((path, ""));
    let mut query = Vec::new();
    for (name, value) in [("restype", operation.restype), ("comp", operation.comp)] {
        if !value.is_empty() {
            query.push(format!("{name}={value}"));
        }
    }
    if !own.is_empty() {
        query.push(own.to_owned());
    }
    if query.is_empty() {
        path.to_owned()
    } else {
        format!("{path}?{}", query.join("&"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
        service = "blob"
        [[scenario]]
        name = "one"
        source = "Put Blob"
        bare = ["c2"]
        step = [
            { call = "Blob_SetTier {c}/b?snapshot={s}", wait_s = 1, expect = ["200"] },
            { call = "Container_Create {c2}", expect = ["409 ContainerAlreadyExists"] },
        ]
    "#;

    /// What the register knows is not written down again, and what is used is made.
    #[test]
    fn a_step_takes_its_line_from_the_register() {
        let scenario = parse("a", TEXT).unwrap().remove(0);
        let [tier, create] = &scenario.steps[..] else {
            panic!("{scenario:?}");
        };
        assert_eq!(
            (tier.method, tier.path.as_str()),
            ("PUT", "{c}/b?comp=tier&snapshot={s}")
        );
        assert_eq!(create.path, "{c2}?restype=container");
        assert!(tier.succeeds() && !create.succeeds());
        assert_eq!(
            (scenario.makes, scenario.removes),
            (vec!["c"], vec!["c", "c2"])
        );
        assert_eq!(scenario.needs, [Ability::Clock]);
    }

    /// A mistake is named with its place.
    #[test]
    fn mistakes_are_told() {
        for (right, wrong, said) in [
            (
                "Blob_SetTier",
                "Blob_SetTear",
                "step 1: Blob_SetTear is no operation",
            ),
            ("\"200\"", "\"fine\"", "step 1: not an expectation: fine"),
            (
                "service = \"blob\"",
                "service = \"file\"",
                "blob, queue or table",
            ),
            ("wait_s", "weight_s", "unknown field"),
            (
                "wait_s = 1",
                "keep = { t = \"etag\" }",
                "step 1: t is a value that every scenario has",
            ),
            (
                "wait_s = 1",
                "keep = { sas = \"etag\" }",
                "step 1: sas is a value that every scenario has",
            ),
        ] {
            let error = parse("a", &TEXT.replace(right, wrong)).unwrap_err();
            assert!(error.to_string().contains(said), "{error}");
        }
        let twice = collect([("a", TEXT), ("b", TEXT)]).unwrap_err();
        assert_eq!(twice.to_string(), "two scenarios are called \"one\"");
    }
}
