//! The facts: how they are distilled from exchanges, and the file that holds them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use smalt_protocol::{ApiVersion, Service};

use super::form;
use super::nodes::{self, ANSWER, Node};
use crate::replay::compare::dropped_headers;
use crate::replay::hosts::DATA_LAKE;
use crate::replay::recording::Recording;
use crate::traces::convert;
use crate::wire::url::Url;
use crate::wire::{Answer, Request};

/// The first line of the file.
const HEAD: &str = "# Written by `harness facts --write` from recordings of the real service; \
                    docs/recordings.md explains it.\n";
/// Between the lowest and the highest version of a fact.
const TO: &str = "..";
/// Beginnings of names that an answer has only because of the request, the account's settings, or a
/// copy before.
const ASKED_FOR: [&str; 4] = [
    "x-ms-client-request-id",
    "access-control-",
    "vary",
    "x-ms-copy-source",
];
/// After a name that every answer has, and after one that only some have.
const ALWAYS: char = '!';
const SOMETIMES: char = '?';

/// What a fact is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// `blob`, `dfs`, `queue` or `table`: the host that answered.
    pub service: String,
    /// Operation, as traces name it.
    pub operation: String,
    /// Status of the answer.
    pub status: u16,
    /// Error code of the answer; empty if it has none.
    pub code: String,
}

impl Key {
    /// Returns the key of an exchange; `None` if the host is none of a service.
    pub fn of(request: &Request, answer: &Answer) -> Option<Key> {
        let url = Url::parse(&request.url)?;
        let (_, label) = url.account_and_service()?;
        let of_label = Service::ALL.into_iter().find(|one| one.as_str() == label);
        let service = of_label.or((label == DATA_LAKE).then_some(Service::Blob))?;
        Some(Key {
            service: label.to_owned(),
            operation: convert::operation(service, request, &url),
            status: answer.status,
            code: answer.error_code().unwrap_or_default(),
        })
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Key {
            service,
            operation,
            status,
            code,
        } = self;
        write!(f, "{service}\t{operation}\t{status}\t{code}")
    }
}

/// A name in a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Number of nodes that held it, or could not show it because the recorder dropped it.
    count: u64,
    /// Whether every node held it.
    pub always: bool,
    /// The forms of its values.
    pub forms: BTreeSet<String>,
}

/// What is known of the answers with one key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fact {
    /// Number of exchanges that it stands for.
    pub exchanges: u64,
    /// Lowest and highest version of their requests.
    pub versions: Option<(ApiVersion, ApiVersion)>,
    /// By path of a node and name in it.
    pub nodes: BTreeMap<String, BTreeMap<String, Held>>,
    /// Number of nodes with each path.
    counts: BTreeMap<String, u64>,
}

/// All facts.
pub type Facts = BTreeMap<Key, Fact>;

/// Returns the version that a request names.
pub fn version(request: &Request) -> Option<ApiVersion> {
    ApiVersion::parse(request.headers.get("x-ms-version")?)
}

/// Adds the exchanges of a recording.
pub fn add(facts: &mut Facts, recording: &Recording) {
    let dropped = dropped_headers(|header| recording.never_answers_with(header));
    for one in &recording.interactions {
        let Some(key) = Key::of(&one.request, &one.response) else {
            continue;
        };
        let fact = facts.entry(key).or_default();
        fact.exchanges += 1;
        if let Some(now) = version(&one.request) {
            let (low, high) = fact.versions.unwrap_or((now, now));
            fact.versions = Some((low.min(now), high.max(now)));
        }
        for node in nodes::of(&one.request.method, &one.response) {
            fact.add(node, &dropped);
        }
    }
}

impl Fact {
    fn add(&mut self, node: Node, dropped: &BTreeSet<&str>) {
        let held = self.nodes.entry(node.at.clone()).or_default();
        if node.at == ANSWER {
            let unseen = dropped
                .iter()
                .filter(|name| !node.holds.contains_key(**name));
            for name in unseen {
                held.entry((*name).to_owned()).or_default().count += 1;
            }
        }
        for (name, forms) in node.holds {
            let held = held.entry(name).or_default();
            held.count += 1;
            held.forms.extend(forms);
        }
        *self.counts.entry(node.at).or_default() += 1;
    }

    /// Decides what is always held, and forgets what no exchange shows.
    fn settle(&mut self) {
        for (at, held) in &mut self.nodes {
            let count = self.counts.get(at).copied().unwrap_or_default();
            held.retain(|_, one| !one.forms.is_empty());
            for (name, one) in held {
                let is_asked = ASKED_FOR.iter().any(|start| name.starts_with(start));
                one.always = one.count == count && !is_asked && !name.ends_with('*');
            }
        }
    }
}

/// Decides what all answers with a key have, after the last recording was added.
pub fn settle(facts: &mut Facts) {
    facts.values_mut().for_each(Fact::settle);
}

/// Writes the file.
pub fn write(facts: &Facts) -> String {
    let mut text = HEAD.to_owned();
    for (key, fact) in facts {
        let versions = fact.versions.map(|(low, high)| format!("{low}{TO}{high}"));
        text += &format!(
            "{key}\t{}\t{}",
            fact.exchanges,
            versions.unwrap_or_default()
        );
        for (at, held) in &fact.nodes {
            text += &format!("\t{at}:");
            for (name, one) in held {
                let mark = if one.always { ALWAYS } else { SOMETIMES };
                let forms: Vec<&str> = one.forms.iter().map(String::as_str).collect();
                text += &format!(" {name}{mark}{}", forms.join("|"));
            }
        }
        text.push('\n');
    }
    text
}

/// Reads the file.
///
/// # Errors
/// With the first line that is none of a file of facts, or that holds anything but forms.
pub fn read(text: &str) -> Result<Facts, String> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| fact(line).ok_or_else(|| format!("invalid fact, write the file anew: {line}")))
        .collect()
}

fn fact(line: &str) -> Option<(Key, Fact)> {
    let mut columns = line.split('\t');
    let mut column = || columns.next();
    let key = Key {
        service: column()?.to_owned(),
        operation: column()?.to_owned(),
        status: column()?.parse().ok()?,
        code: column()?.to_owned(),
    };
    let exchanges = column()?.parse().ok()?;
    let versions = match column()?.split_once(TO) {
        Some((low, high)) => Some((ApiVersion::parse(low)?, ApiVersion::parse(high)?)),
        None => None,
    };
    let nodes = columns.map(node).collect::<Option<_>>()?;
    let fact = Fact {
        exchanges,
        versions,
        nodes,
        ..Fact::default()
    };
    Some((key, fact))
}

fn node(text: &str) -> Option<(String, BTreeMap<String, Held>)> {
    let (at, names) = match text.strip_suffix(':') {
        Some(at) => (at, ""),
        None => text.split_once(": ")?,
    };
    let names = names.split(' ').filter(|name| !name.is_empty());
    let held = names.map(|text| {
        let mark = text.find([ALWAYS, SOMETIMES])?;
        let (name, forms) = text.split_at(mark);
        let always = forms.starts_with(ALWAYS);
        let forms: BTreeSet<String> = forms[1..].split('|').map(str::to_owned).collect();
        let are_forms = forms.iter().all(|form| form::is_form(form));
        let held = Held {
            always,
            forms,
            ..Held::default()
        };
        are_forms.then(|| (name.to_owned(), held))
    });
    Some((at.to_owned(), held.collect::<Option<_>>()?))
}
