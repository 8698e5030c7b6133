//! Parses a block into a step: options, request, expectations, values to keep.

use smalt::faults::Fault;
use smalt::register::{self, Entry, Verb};
use smalt_protocol::Service;

use super::auth::Auth;
use super::block::{Block, unescaped};
use super::case::{PLACES, Step, VERSION, Wire};
use super::expect::Expect;
use super::place::Place;
use super::raw::Then;
use crate::replay::corpus;
use crate::target::Ability;

/// Further values that every case has ([`super::play`]).
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
/// Default header for the Table service, which all clients send.
const ACCEPT: &str = "Accept: application/json";
/// Default header for a JSON body.
const JSON: &str = "Content-Type: application/json";
/// HTTP methods, and the one for a whole request.
const METHODS: [&str; 10] = [
    "GET", "HEAD", "PUT", "POST", "DELETE", "PATCH", "MERGE", "OPTIONS", "BREW", "RAW",
];

#[derive(Clone, Default)]
pub(super) struct Said {
    pub(super) service: Option<Service>,
    pub(super) source: String,
    version: Option<String>,
    auth: Option<Auth>,
    pub(super) needs: Vec<Ability>,
    pub(super) settings: Option<serde_json::Value>,
    pub(super) bare: Vec<String>,
    wait_s: u64,
    secondary: bool,
    fault: Option<Fault>,
    bytes: bool,
    length: Option<String>,
    then: Then,
}

impl Said {
    /// Parses a line of options.
    pub(super) fn take(&mut self, line: &str) -> Result<(), String> {
        let (option, value) = line.split_once(' ').unwrap_or((line, ""));
        let words = || value.split_whitespace();
        match option {
            "@service" => self.service = Some(corpus::service(value)?),
            "@source" => value.clone_into(&mut self.source),
            "@version" if value == "none" => self.version = Some(String::new()),
            "@version" => self.version = Some(value.to_owned()),
            "@by" => self.auth = Some(Auth::parse(value)?),
            "@needs" => {
                let ability = |word: &str| {
                    let named = serde_json::Value::from(word);
                    serde_json::from_value(named).map_err(|_| format!("unknown ability {word}"))
                };
                self.needs = words().map(ability).collect::<Result<_, _>>()?;
            }
            "@settings" => self.settings = Some(json(value)?),
            "@bare" => self.bare = words().map(str::to_owned).collect(),
            "@wait" => self.wait_s = value.parse().map_err(|_| format!("bad @wait: {value}"))?,
            "@secondary" => self.secondary = true,
            "@fault" => self.fault = Some(json(value)?),
            "@bytes" => self.bytes = true,
            "@length" => self.length = Some(value.to_owned()),
            "@then" if value == "finish" => self.then = Then::Finish,
            "@then" if value == "leave" => self.then = Then::Leave,
            _ if line.starts_with("+ ") => {}
            _ => return Err(format!("unknown option: {line}")),
        }
        Ok(())
    }

    /// Parses the step in a block.
    pub(super) fn step(&self, block: &Block) -> Result<Step, String> {
        let mut said = self.clone();
        let mut lines = block.iter().map(String::as_str).peekable();
        while let Some(option) = lines.next_if(|line| line.starts_with('@')) {
            said.take(option)?;
        }
        let line = lines.next().ok_or("a block has options but no request")?;
        let service = said.service.ok_or("@service is missing")?;
        let (method, operation, path) = request(service, line)?;
        let mut step = Step {
            operation,
            auth: said.auth.unwrap_or(Auth::Key),
            version: said.version.unwrap_or_else(|| VERSION.to_owned()),
            wait_s: said.wait_s,
            secondary: said.secondary,
            fault: said.fault,
            ..Step::new(service, method, &unescaped(&path))
        };
        let mut lines = lines.filter(|line| !line.starts_with("+ ")).peekable();
        while let Some(header) = lines.next_if(|line| !line.starts_with(['|', '-'])) {
            step.headers.push(unescaped(header));
        }
        let mut is_text = false;
        while let Some(line) = lines.next_if(|line| line.starts_with('|')) {
            is_text = add_line(step.body.get_or_insert_default(), line, is_text);
        }
        step.expect(lines)?;
        if said.bytes {
            step.wire = Wire::Bytes {
                length: said.length,
                then: said.then,
            };
        } else {
            step.as_a_client()?;
        }
        Ok(step)
    }
}

/// Adds a line of the body; returns whether it only ends if another line follows.
fn add_line(body: &mut String, line: &str, after_text: bool) -> bool {
    if let Some(line) = line.strip_prefix("||") {
        body.push_str(&unescaped(line.strip_prefix(' ').unwrap_or(line)));
        body.push_str("\r\n");
        return false;
    }
    if after_text {
        body.push('\n');
    }
    let line = line.strip_prefix('|').unwrap_or(line);
    body.push_str(&unescaped(line.strip_prefix(' ').unwrap_or(line)));
    true
}

impl Step {
    /// Parses expectations and values to keep; the first one follows `->`.
    fn expect<'a>(&mut self, lines: impl Iterator<Item = &'a str>) -> Result<(), String> {
        for (at, line) in lines.enumerate() {
            let line = match (at, line.strip_prefix("-> ")) {
                (0, Some(line)) => line,
                (0, None) => return Err(format!("not a header, body or answer: {line}")),
                _ => line,
            };
            if let Some((name, place)) = line.split_once(" := ") {
                if PLACES.contains(&name) || GIVEN.contains(&name) {
                    return Err(format!("{name} is a predefined value"));
                }
                self.keeps.push((name.to_owned(), Place::parse(place)));
                continue;
            }
            let expects = Expect::parse(&unescaped(line)).map_err(|error| error.to_string())?;
            self.expects.extend(expects);
        }
        Ok(())
    }

    /// Adds the headers that every client sends.
    fn as_a_client(&mut self) -> Result<(), String> {
        if let Some(header) = self.headers.iter().find(|header| !header.contains(':')) {
            return Err(format!("not a header: {header}"));
        }
        let has = |headers: &[String], name: &str| {
            let mut names = headers.iter().filter_map(|header| header.split_once(':'));
            names.any(|(found, _)| found.eq_ignore_ascii_case(name))
        };
        if self.service != Service::Table {
            return Ok(());
        }
        let is_json = self
            .body
            .as_deref()
            .is_some_and(|body| body.starts_with('{'));
        if is_json && !has(&self.headers, "content-type") {
            self.headers.insert(0, JSON.to_owned());
        }
        if !has(&self.headers, "accept") {
            self.headers.push(ACCEPT.to_owned());
        }
        Ok(())
    }
}

fn json<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| format!("{text}: {error}"))
}

/// Parses a request line into method, operation and path.
fn request(
    service: Service,
    line: &str,
) -> Result<(&'static str, Option<&'static Entry>, String), String> {
    let words = |line: &str| {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        (word.to_owned(), rest.to_owned())
    };
    let (first, rest) = words(line);
    let named = METHODS.into_iter().find(|method| *method == first);
    let (id, path) = if named.is_some() {
        words(&rest)
    } else {
        (first.clone(), rest.clone())
    };
    match (named, register::by_id(service, &id)) {
        (named, Some(operation)) => {
            let method = named.unwrap_or_else(|| usual(operation.verb));
            Ok((method, Some(operation), with_query(&path, operation)))
        }
        (Some(method), None) => Ok((method, None, rest)),
        (None, None) => Err(format!(
            "{first} is neither a method nor an operation of this service"
        )),
    }
}

fn usual(verb: Verb) -> &'static str {
    match verb {
        Verb::Any | Verb::Get | Verb::GetOrHead => "GET",
        Verb::Head => "HEAD",
        Verb::Put => "PUT",
        Verb::Post | Verb::PostOrPut => "POST",
        Verb::Delete => "DELETE",
        Verb::Patch => "PATCH",
        Verb::Options => "OPTIONS",
    }
}

/// Returns the path with the query of the operation in the register, in front of its own.
fn with_query(path: &str, operation: &Entry) -> String {
    let (path, own) = path.split_once('?').unwrap_or((path, ""));
    let known = [("restype", operation.restype), ("comp", operation.comp)];
    let known = known.into_iter().filter(|(_, value)| !value.is_empty());
    let mut query: Vec<String> = known
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    if !own.is_empty() {
        query.push(own.to_owned());
    }
    if query.is_empty() {
        path.to_owned()
    } else {
        format!("{path}?{}", query.join("&"))
    }
}
