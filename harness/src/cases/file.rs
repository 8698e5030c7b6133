//! Files of cases.
//!
//! ```text
//! @service blob
//!
//! == a block blob comes back as it was put
//! @source Put Blob; Get Blob
//!
//! PUT {c}/b
//! x-ms-blob-type: BlockBlob
//! | hello
//! -> 201
//! etag ~ etag
//! first := etag
//!
//! GET {c}/b
//! -> 200
//! body = hello
//! etag == {first}
//! ```
//!
//! Blank lines separate blocks. `==` begins a case; each block behind it is a step: a request and,
//! from `->` on, what is expected of its answer ([`super::expect`]) and which values are kept
//! (`name := place`). A step without `->` must succeed.
//!
//! The request line has a method and the path below the account, or an operation of the register,
//! which gives method, `restype` and `comp`; `MERGE Table_MergeEntity ...` says both. `RAW` sends
//! the body in place of a whole request. A line of the body begins with `|`; one with `||` ends in
//! CR LF. `\r`, `\n`, `\t`, `\0`, `\s` (a blank) and `\\` stand for themselves in all texts; braces
//! are replaced ([`super::values`]). `{c}`, `{c2}`, `{q}`, `{q2}`, `{t}` and `{t2}` (containers,
//! queues, tables) are made before the first step and removed after the last. `#` begins a comment.
//!
//! Options hold for the file, the case or the step in whose block they stand:
//!
//! | option | says |
//! | --- | --- |
//! | `@service blob` | the service that is asked |
//! | `@source Put Blob` | the documents that say so |
//! | `@version 2021-12-02`, `none` | `x-ms-version` |
//! | `@by nobody` | how requests are allowed ([`super::auth`]) |
//! | `@needs clock https` | what a target must be able to do |
//! | `@settings {"versioning":true}` | settings of the account |
//! | `@bare c2` | is not made beforehand |
//! | `@wait 15` | seconds that pass before the request |
//! | `@secondary` | the account's secondary endpoint is asked |
//! | `@fault {"kind":"reset"}` | what goes wrong with the request |
//! | `@bytes` | the request is sent on a connection of its own, as it is written |
//! | `@length none` | `Content-Length` of such a request |
//! | `@then finish`, `leave` | the client closes its side, or goes away, after it has sent it |
//!
//! Lines that begin with `+` are a table: names, then rows of values. The block is repeated for
//! each row, with `{name}` replaced and ` && ` as the end of a line; a line that becomes empty goes.
//! A table below `==` repeats the whole case.

use std::path::Path;

use smalt::faults::Fault;
use smalt::register::{self, Entry, Verb};
use smalt_protocol::Service;

use super::auth::Auth;
use super::case::{Ability, Case, PLACES, Step, VERSION, Wire};
use super::expect::Expect;
use super::place::Place;
use super::raw::Then;
use crate::servers::files;

/// The end of a file's name.
pub const EXTENSION: &str = "case";
/// Other values that every case has ([`super::play`]).
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
/// What is asked of the Table service when a step does not say: no client leaves it out.
const ACCEPT: &str = "Accept: application/json";
/// The header of a body of JSON, when a step does not say.
const JSON: &str = "Content-Type: application/json";
/// Methods of HTTP, and what stands for a whole request.
const METHODS: [&str; 10] = [
    "GET", "HEAD", "PUT", "POST", "DELETE", "PATCH", "MERGE", "OPTIONS", "BREW", "RAW",
];

/// Why cases cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// A file or the directory cannot be read.
    #[error("{0}: {1}")]
    Io(String, std::io::Error),
    /// A block is wrong.
    #[error("{area}: {case:?}, step {step}: {problem}")]
    Block {
        /// The file.
        area: String,
        /// The case.
        case: String,
        /// Which step, from 1; 0 for the case itself.
        step: usize,
        /// What is wrong.
        problem: String,
    },
    /// Two cases have one name.
    #[error("two cases are called {0:?}")]
    Twice(String),
}

/// Lines between blank ones.
type Block = Vec<String>;

/// What the options say.
#[derive(Clone, Default)]
struct Said {
    service: Option<Service>,
    source: String,
    version: Option<String>,
    auth: Option<Auth>,
    needs: Vec<Ability>,
    settings: Option<serde_json::Value>,
    bare: Vec<String>,
    wait_s: u64,
    secondary: bool,
    fault: Option<Fault>,
    bytes: bool,
    length: Option<String>,
    then: Then,
}

/// Reads every file of a directory.
///
/// # Errors
/// When a file cannot be read, or repeats a name.
pub fn read(dir: &Path) -> Result<Vec<Case>, FileError> {
    let texts = files::texts(dir, EXTENSION)
        .map_err(|error| FileError::Io(dir.display().to_string(), error))?;
    let files = texts.iter();
    collect(files.map(|(area, text)| (area.as_str(), text.as_str())))
}

/// The cases of several files, each with its name.
///
/// # Errors
/// When one is wrong, or repeats a name.
pub fn collect<'a>(
    files: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Result<Vec<Case>, FileError> {
    let mut all: Vec<Case> = Vec::new();
    let mut names = std::collections::BTreeSet::new();
    for (file, text) in files {
        for case in parse(&file.replace('_', " "), text)? {
            if !names.insert(case.name.clone()) {
                return Err(FileError::Twice(case.name));
            }
            all.push(case);
        }
    }
    Ok(all)
}

/// Reads the cases of one file.
///
/// # Errors
/// When one is wrong.
pub fn parse(area: &str, text: &str) -> Result<Vec<Case>, FileError> {
    let wrong = |case: &str, step, problem| FileError::Block {
        area: area.to_owned(),
        case: case.to_owned(),
        step,
        problem,
    };
    let mut said = Said::default();
    let mut cases: Vec<Vec<Block>> = Vec::new();
    for block in blocks(text) {
        if block.iter().any(|line| line.starts_with("== ")) {
            cases.push(vec![block]);
        } else if let Some(case) = cases.last_mut() {
            case.push(block);
        } else {
            for line in &block {
                said.take(line).map_err(|problem| wrong("", 0, problem))?;
            }
        }
    }
    let mut read = Vec::new();
    for case in cases {
        let [head, ..] = &case[..] else { continue };
        let rows = rows(head).map_err(|problem| wrong("", 0, problem))?;
        for row in rows {
            let blocks: Vec<Block> = case.iter().map(|block| row.fill(block)).collect();
            let title = blocks.iter().flatten().find_map(|l| l.strip_prefix("== "));
            let title = title.unwrap_or_default().to_owned();
            let one = one(area, &title, &said, &blocks);
            read.push(one.map_err(|(step, problem)| wrong(&title, step, problem))?);
        }
    }
    Ok(read)
}

fn blocks(text: &str) -> impl Iterator<Item = Block> {
    let lines: Vec<&str> = text.lines().filter(|l| !l.starts_with('#')).collect();
    let blocks: Vec<Block> = lines
        .split(|line| line.trim().is_empty())
        .filter(|block| !block.is_empty())
        .map(|block| block.iter().map(|line| (*line).to_owned()).collect())
        .collect();
    blocks.into_iter()
}

/// One row of a table: names and values. Without a table, one row of none.
#[derive(Default)]
struct Row(Vec<(String, String)>);

fn rows(block: &Block) -> Result<Vec<Row>, String> {
    let mut lines = block.iter().filter_map(|line| line.strip_prefix("+ "));
    let cells = |line: &str| -> Vec<String> {
        let cells = line.split('|');
        cells.map(|cell| cell.trim().to_owned()).collect()
    };
    let Some(names) = lines.next().map(cells) else {
        return Ok(vec![Row::default()]);
    };
    let row = |line| {
        let values = cells(line);
        if values.len() != names.len() {
            return Err(format!(
                "{} values in a table of {}",
                values.len(),
                names.len()
            ));
        }
        Ok(Row(names.iter().cloned().zip(values).collect()))
    };
    lines.map(row).collect()
}

impl Row {
    /// The block with this row's values. A table in it stays.
    fn fill(&self, block: &Block) -> Block {
        if self.0.is_empty() {
            return block.clone();
        }
        let filled = block.iter().map(|line| {
            self.0.iter().fold(line.clone(), |line, (name, value)| {
                line.replace(&format!("{{{name}}}"), value)
            })
        });
        let split = filled.flat_map(|line| match line.starts_with("+ ") {
            true => vec![line],
            false => line.split(" && ").map(str::to_owned).collect(),
        });
        split.filter(|line| !line.trim().is_empty()).collect()
    }
}

fn one(area: &str, title: &str, of_file: &Said, blocks: &[Block]) -> Result<Case, (usize, String)> {
    let mut said = of_file.clone();
    let (head, rest) = blocks.split_first().ok_or((0, "no case".to_owned()))?;
    for line in head.iter().filter(|line| !line.starts_with("== ")) {
        said.take(line).map_err(|problem| (0, problem))?;
    }
    let service = said.service.ok_or((0, "@service is missing".to_owned()))?;
    let mut case = Case {
        name: title.to_owned(),
        area: area.to_owned(),
        service,
        source: said.source.clone(),
        needs: said.needs.clone(),
        settings: said.settings.clone(),
        makes: Vec::new(),
        removes: Vec::new(),
        steps: Vec::new(),
    };
    for (at, block) in (1..).zip(rest) {
        for row in rows(block).map_err(|problem| (at, problem))? {
            let step = said.step(&row.fill(block));
            case.steps.push(step.map_err(|problem| (at, problem))?);
        }
    }
    let bare: Vec<&str> = said.bare.iter().map(String::as_str).collect();
    case.complete(&bare);
    Ok(case)
}

impl Said {
    /// Takes a line of options.
    fn take(&mut self, line: &str) -> Result<(), String> {
        let (option, value) = line.split_once(' ').unwrap_or((line, ""));
        let words = || value.split_whitespace();
        match option {
            "@service" => self.service = Some(service(value)?),
            "@source" => value.clone_into(&mut self.source),
            "@version" if value == "none" => self.version = Some(String::new()),
            "@version" => self.version = Some(value.to_owned()),
            "@by" => self.auth = Some(Auth::parse(value)?),
            "@needs" => {
                let ability = |word| Ability::parse(word).ok_or(format!("{word} is no ability"));
                self.needs = words().map(ability).collect::<Result<_, _>>()?;
            }
            "@settings" => self.settings = Some(json(value)?),
            "@bare" => self.bare = words().map(str::to_owned).collect(),
            "@wait" => self.wait_s = value.parse().map_err(|_| format!("{value} seconds"))?,
            "@secondary" => self.secondary = true,
            "@fault" => self.fault = Some(json(value)?),
            "@bytes" => self.bytes = true,
            "@length" => self.length = Some(value.to_owned()),
            "@then" if value == "finish" => self.then = Then::Finish,
            "@then" if value == "leave" => self.then = Then::Leave,
            _ if line.starts_with("+ ") => {}
            _ => return Err(format!("not an option: {line}")),
        }
        Ok(())
    }

    /// The step of a block.
    fn step(&self, block: &Block) -> Result<Step, String> {
        let mut said = self.clone();
        let mut lines = block.iter().map(String::as_str).peekable();
        while let Some(option) = lines.next_if(|line| line.starts_with('@')) {
            said.take(option)?;
        }
        let line = lines.next().ok_or("a block of options only")?;
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

/// Adds a line of the body; whether it ends only where another begins.
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
    /// Takes expectations and values to keep, the first of which stands behind `->`.
    fn expect<'a>(&mut self, lines: impl Iterator<Item = &'a str>) -> Result<(), String> {
        for (at, line) in lines.enumerate() {
            let line = match (at, line.strip_prefix("-> ")) {
                (0, Some(line)) => line,
                (0, None) => return Err(format!("not a header, body or answer: {line}")),
                _ => line,
            };
            if let Some((name, place)) = line.split_once(" := ") {
                if PLACES.contains(&name) || GIVEN.contains(&name) {
                    return Err(format!("{name} is a value that every case has"));
                }
                self.keeps.push((name.to_owned(), Place::parse(place)));
                continue;
            }
            let expects = Expect::parse(&unescaped(line)).map_err(|error| error.to_string())?;
            self.expects.extend(expects);
        }
        Ok(())
    }

    /// Adds the headers that no client leaves out.
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

fn service(name: &str) -> Result<Service, String> {
    let found = Service::ALL
        .into_iter()
        .find(|service| service.as_str() == name);
    found.ok_or_else(|| format!("{name} is no service: blob, queue or table"))
}

fn json<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| format!("{text}: {error}"))
}

/// Method, operation and path of a request line.
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

/// The path with what the register says of the operation's query, in front of its own.
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

/// A text with its escapes replaced.
fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        out.push_str(before);
        let known = [
            ('r', '\r'),
            ('n', '\n'),
            ('t', '\t'),
            ('0', '\0'),
            ('s', ' '),
            ('\\', '\\'),
        ];
        let found = known.into_iter().find(|(name, _)| after.starts_with(*name));
        out.push(found.map_or('\\', |(_, stands_for)| stands_for));
        rest = if found.is_some() { &after[1..] } else { after };
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "@service blob
@source Put Blob

# A comment.
== one
@bare c2

@wait 1
Blob_SetTier {c}/b?snapshot={s}
-> 200
tier := x-ms-access-tier

Container_Create {c2}
-> 409 ContainerAlreadyExists

PUT {c}/b
x-ms-blob-type: BlockBlob
| a\\tb
| c
-> {answer}
+ answer | unused
+ 201 | 1
+ 409 && no etag | 2
";

    /// The register gives method and query, and the case makes what it uses.
    #[test]
    fn a_file_is_read() {
        let case = parse("a", TEXT).unwrap().remove(0);
        let [tier, create, put, refused] = &case.steps[..] else {
            panic!("{case:?}");
        };
        assert_eq!(
            (tier.method.as_str(), tier.path.as_str()),
            ("PUT", "{c}/b?comp=tier&snapshot={s}")
        );
        assert_eq!(
            (tier.keeps.len(), create.path.as_str()),
            (1, "{c2}?restype=container")
        );
        assert!(tier.succeeds() && !create.succeeds());
        assert_eq!((case.makes, case.removes), (vec!["c"], vec!["c", "c2"]));
        assert_eq!(case.needs, [Ability::Clock]);
        assert_eq!(case.source, "Put Blob");
        assert_eq!(put.body.as_deref(), Some("a\tb\nc"));
        assert_eq!((put.expects.len(), refused.expects.len()), (1, 2));
        assert_eq!(refused.operation_id(), "");
    }

    /// A table below the title makes a case of each row.
    #[test]
    fn a_case_is_repeated_by_its_table() {
        let text = "@service queue\n\n== {what} is made\n+ what\n+ a\n+ b\n\nPUT {what}\n|| x\n||";
        let cases = parse("a", text).unwrap();
        let names: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
        assert_eq!(names, ["a is made", "b is made"]);
        assert_eq!(cases[1].steps[0].path, "b");
        assert_eq!(cases[1].steps[0].body.as_deref(), Some("x\r\n\r\n"));
    }

    /// A mistake is named with its place.
    #[test]
    fn mistakes_are_told() {
        for (right, wrong, said) in [
            (
                "Blob_SetTier",
                "Blob_SetTear",
                "step 1: Blob_SetTear is neither",
            ),
            ("-> 200", "-> fine", "step 1: not an expectation: fine"),
            ("@service blob", "@service file", "blob, queue or table"),
            ("@wait", "@weight", "not an option: @weight 1"),
            (
                "tier :=",
                "t :=",
                "step 1: t is a value that every case has",
            ),
            (
                "tier :=",
                "sas :=",
                "step 1: sas is a value that every case has",
            ),
            ("| 2", "| 2 | 3", "step 3: 3 values in a table of 2"),
            (
                "x-ms-blob-type: BlockBlob",
                "nothing",
                "step 3: not a header: nothing",
            ),
        ] {
            let error = parse("a", &TEXT.replace(right, wrong)).unwrap_err();
            assert!(error.to_string().contains(said), "{error}");
        }
        let twice = collect([("a", TEXT), ("b", TEXT)]).unwrap_err();
        assert_eq!(twice.to_string(), "two cases are called \"one\"");
    }
}
