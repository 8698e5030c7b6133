//! Compares a recorded answer with a live one: status, error code, headers, body and relations.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::bindings::Bindings;
use super::hosts::Hosts;
use super::json::Json;
use super::rules::{self, DROPPED_BY_RECORDERS, How, Place};
use super::superset::Superset;
use super::timeline::Timeline;
use super::tree::{self, Element, Part, Tree};
use super::value::{Context, Unequal};
use crate::wire::{Answer, Headers};

/// The aspects of an answer, each counted separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Aspect {
    /// The target did not answer at all.
    Call,
    /// The status code.
    Status,
    /// The error code.
    Code,
    /// The set of header names.
    HeaderNames,
    /// The values of headers that both have.
    HeaderValues,
    /// The body, as a tree.
    Body,
    /// Invented values that were equal are equal, and different ones are different.
    Relations,
}

/// One difference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// What differs.
    pub aspect: Aspect,
    /// Name of the header, or path in the body.
    pub at: String,
    /// The recorded value.
    pub recorded: String,
    /// The live value.
    pub live: String,
}

/// Compares the answers of one recording.
pub struct Comparer<'a> {
    /// Accounts of the recording, and their addresses.
    pub hosts: &'a Hosts,
    /// The pairs of values so far.
    pub bindings: &'a mut Bindings,
    /// Number of uses of each of [`rules::RULES`].
    pub rule_uses: &'a mut [u64],
    /// Account of the request, at the target.
    pub account: &'a str,
    /// Headers that the recorder dropped from every answer.
    pub dropped: &'a BTreeSet<&'static str>,
    /// Whether the order of JSON members means nothing because the recorder rewrote them.
    pub reserialised: bool,
    /// How dates are shifted, where the target's clock cannot be set.
    pub timeline: Option<&'a Timeline>,
    /// Set for listings of an account that held other things as well.
    pub superset: Option<Superset<'a>>,
}

/// Prefix of the headers that continue a listing of tables or entities.
const CONTINUATION: &str = "x-ms-continuation-";

struct Run<'a, 'b> {
    comparer: &'b mut Comparer<'a>,
    differences: Vec<Difference>,
}

/// Returns the headers that a recorder dropped from every answer of a recording.
pub fn dropped_headers(never_answers_with: impl Fn(&str) -> bool) -> BTreeSet<&'static str> {
    let dropped = DROPPED_BY_RECORDERS
        .iter()
        .filter(|name| never_answers_with(name));
    dropped.copied().collect()
}

impl Comparer<'_> {
    /// Returns all differences between two answers to a request with this method.
    pub fn compare(&mut self, method: &str, recorded: &Answer, live: &Answer) -> Vec<Difference> {
        let mut run = Run {
            comparer: self,
            differences: Vec::new(),
        };
        if recorded.status != live.status {
            let (r, l) = (recorded.status.to_string(), live.status.to_string());
            run.report(Aspect::Status, "status", r, l);
        }
        let code = |answer: &Answer| answer.error_code().unwrap_or_default();
        if recorded.error_code() != live.error_code() {
            run.report(Aspect::Code, "code", code(recorded), code(live));
        }
        let head = method == "HEAD" && recorded.status < 300;
        run.headers("", &recorded.headers, &live.headers, Some(head));
        run.length(method, live);
        let mut r = tree::parse(recorded.headers.get("content-type"), &recorded.body);
        let mut l = tree::parse(live.headers.get("content-type"), &live.body);
        if let Some(superset) = &run.comparer.superset {
            superset.restrict(&mut r, &mut l);
        }
        run.tree("", &r, &l);
        run.differences
    }
}

impl Run<'_, '_> {
    fn report(&mut self, aspect: Aspect, at: &str, recorded: String, live: String) {
        self.differences.push(Difference {
            aspect,
            at: at.to_owned(),
            recorded,
            live,
        });
    }

    fn note_use(&mut self, rule: Option<(usize, How)>) {
        let uses = rule.and_then(|(index, _)| self.comparer.rule_uses.get_mut(index));
        if let Some(uses) = uses {
            *uses += 1;
        }
    }

    /// Compares one value under its rule.
    fn value(&mut self, aspect: Aspect, rule: Option<(usize, How)>, at: &str, r: &str, l: &str) {
        self.note_use(rule);
        let mut context = Context {
            hosts: self.comparer.hosts,
            bindings: self.comparer.bindings,
            account: self.comparer.account,
            timeline: self.comparer.timeline,
        };
        match context.check(rule.map(|(_, how)| how), r, l) {
            Ok(()) => {}
            Err(Unequal::Value(expected)) => self.report(aspect, at, expected, l.to_owned()),
            Err(Unequal::Relation(why)) => self.report(Aspect::Relations, at, why, l.to_owned()),
        }
    }

    /// Compares the names, then the values of the names that both sides have. `head` is `None`
    /// inside a batch.
    fn headers(&mut self, at: &str, recorded: &Headers, live: &Headers, head: Option<bool>) {
        let (of_names, of_values) = match head {
            None => (Aspect::Body, Aspect::Body),
            Some(_) => (Aspect::HeaderNames, Aspect::HeaderValues),
        };
        let r = self.names(recorded, live, head);
        let l = self.names(live, recorded, head);
        let shown = |headers: &Headers, name: &str| match headers.get(name) {
            Some(value) => value.to_owned(),
            None => "(absent)".to_owned(),
        };
        for name in r.difference(&l).chain(l.difference(&r)) {
            let (r, l) = (shown(recorded, name), shown(live, name));
            self.report(of_names, &format!("{at}{name}"), r, l);
        }
        for name in r.intersection(&l) {
            let rule = rules::find(Place::Header, "", name);
            let rule = rule.filter(|(_, how)| *how != How::Length || head != Some(true));
            let (r, l) = (shown(recorded, name), shown(live, name));
            self.value(of_values, rule, &format!("{at}{name}"), &r, &l);
        }
    }

    /// Returns the names whose presence matters; `other` are the headers of the other side.
    fn names<'h>(
        &mut self,
        headers: &'h Headers,
        other: &Headers,
        head: Option<bool>,
    ) -> BTreeSet<&'h str> {
        let mut names = BTreeSet::new();
        for (name, _) in headers.iter() {
            let rule = rules::find(Place::Header, "", name);
            let free = match rule.map(|(_, how)| how) {
                Some(How::Ignore) => true,
                Some(How::Length) => head != Some(true),
                // The other things in the account determine whether the listing continues.
                _ if self.comparer.superset.is_some() && name.starts_with(CONTINUATION) => {
                    !other.has(name)
                }
                _ => head.is_some() && self.comparer.dropped.contains(name),
            };
            if !free {
                names.insert(name);
            } else {
                self.note_use(rule);
            }
        }
        names
    }

    /// Checks that a live `Content-Length` is the length of the live body.
    fn length(&mut self, method: &str, live: &Answer) {
        let name = "content-length";
        let actual = live.body.len().to_string();
        let stated = live.headers.get(name).filter(|_| method != "HEAD");
        if let Some(stated) = stated.filter(|stated| *stated != actual) {
            self.report(Aspect::HeaderValues, name, actual, stated.to_owned());
        }
    }

    fn tree(&mut self, at: &str, recorded: &Tree, live: &Tree) {
        match (recorded, live) {
            (Tree::Document(r_mark, r_decl, r), Tree::Document(l_mark, l_decl, l)) => {
                if r_mark != l_mark {
                    let at = &format!("{at}byte-order-mark");
                    self.report(Aspect::Body, at, r_mark.to_string(), l_mark.to_string());
                }
                if r_decl != l_decl {
                    let text = |decl: &Option<String>| decl.clone().unwrap_or_default();
                    let (at, r, l) = (&format!("{at}declaration"), text(r_decl), text(l_decl));
                    self.report(Aspect::Body, at, r, l);
                }
                self.element(at, "", r, l);
            }
            (Tree::Json(r), Tree::Json(l)) if self.comparer.reserialised => {
                self.json(at, "", "", &sorted(r), &sorted(l));
            }
            (Tree::Json(r), Tree::Json(l)) => self.json(at, "", "", r, l),
            (Tree::Parts(r), Tree::Parts(l)) if r.len() == l.len() => {
                for (index, (r, l)) in r.iter().zip(l).enumerate() {
                    self.part(&format!("{at}part {index}/"), r, l);
                }
            }
            (r, l) if r == l => {}
            (r, l) => self.report(Aspect::Body, at, describe(r), describe(l)),
        }
    }

    fn part(&mut self, at: &str, recorded: &Part, live: &Part) {
        // The sender chooses the boundary of a change set; the tree has already removed it.
        let (mut r, mut l) = (recorded.headers.clone(), live.headers.clone());
        if matches!(*recorded.body, Tree::Parts(_)) {
            r.remove("content-type");
            l.remove("content-type");
        }
        self.headers(at, &r, &l, None);
        let line = |part: &Part| part.start_line.clone().unwrap_or_default();
        let (r, l) = (line(recorded), line(live));
        self.value(Aspect::Body, None, &format!("{at}start line"), &r, &l);
        self.headers(at, &recorded.message_headers, &live.message_headers, None);
        self.tree(at, &recorded.body, &live.body);
    }

    fn element(&mut self, above: &str, parent: &str, recorded: &Element, live: &Element) {
        let at = format!("{above}/{}", recorded.name);
        if recorded.name != live.name {
            return self.report(Aspect::Body, &at, recorded.name.clone(), live.name.clone());
        }
        let attributes = |element: &Element| {
            let names: Vec<&str> = element.attributes.iter().map(|(n, _)| n.as_str()).collect();
            names.join(" ")
        };
        let (r, l) = (attributes(recorded), attributes(live));
        if r == l {
            for ((name, r), (_, l)) in recorded.attributes.iter().zip(&live.attributes) {
                let rule = rules::find(Place::Attribute, &recorded.name, name);
                self.value(Aspect::Body, rule, &format!("{at}@{name}"), r, l);
            }
        } else {
            self.report(Aspect::Body, &format!("{at}@"), r, l);
        }
        let rule = rules::find(Place::Element, parent, &recorded.name);
        self.value(Aspect::Body, rule, &at, &recorded.text, &live.text);
        let names = |element: &Element| {
            let names: Vec<&str> = element.children.iter().map(|c| c.name.as_str()).collect();
            names.join(" ")
        };
        if names(recorded) == names(live) {
            for (r, l) in recorded.children.iter().zip(&live.children) {
                self.element(&at, &recorded.name, r, l);
            }
            return;
        }
        self.report(Aspect::Body, &at, names(recorded), names(live));
        // Elements that occur once on both sides are still compared: a marker is bound even when
        // something beside it is missing.
        for r in &recorded.children {
            if let (Some(_), Some(l)) = (recorded.only(&r.name), live.only(&r.name)) {
                self.element(&at, &recorded.name, r, l);
            }
        }
    }

    fn json(&mut self, at: &str, parent: &str, field: &str, recorded: &Json, live: &Json) {
        match (recorded, live) {
            (Json::Text(r), Json::Text(l)) => {
                let rule = rules::find(Place::Member, parent, field);
                self.value(Aspect::Body, rule, at, r, l);
            }
            (Json::Array(r), Json::Array(l)) if r.len() == l.len() => {
                for (index, (r, l)) in r.iter().zip(l).enumerate() {
                    self.json(&format!("{at}[{index}]"), parent, field, r, l);
                }
            }
            (Json::Object(r), Json::Object(l)) if member_names(r) == member_names(l) => {
                for ((name, r), (_, l)) in r.iter().zip(l) {
                    self.json(&format!("{at}.{name}"), field, name, r, l);
                }
            }
            (Json::Object(r), Json::Object(l)) => {
                let names = (member_names(r).join(" "), member_names(l).join(" "));
                self.report(Aspect::Body, at, names.0, names.1);
                // Members that both sides have are still compared, in any order.
                for (name, r) in r {
                    if let Some((_, l)) = l.iter().find(|(other, _)| other == name) {
                        self.json(&format!("{at}.{name}"), field, name, r, l);
                    }
                }
            }
            (r, l) if r == l => {}
            (r, l) => self.report(Aspect::Body, at, format!("{r:?}"), format!("{l:?}")),
        }
    }
}

fn member_names(members: &[(String, Json)]) -> Vec<&str> {
    members.iter().map(|(name, _)| name.as_str()).collect()
}

/// Returns the value with the members of all objects sorted by name.
fn sorted(value: &Json) -> Json {
    match value {
        Json::Object(members) => {
            let mut members: Vec<_> = members
                .iter()
                .map(|(n, v)| (n.clone(), sorted(v)))
                .collect();
            members.sort_by(|a, b| a.0.cmp(&b.0));
            Json::Object(members)
        }
        Json::Array(items) => Json::Array(items.iter().map(sorted).collect()),
        other => other.clone(),
    }
}

fn describe(tree: &Tree) -> String {
    match tree {
        Tree::Document(_, _, root) => format!("XML <{}>", root.name),
        Tree::Json(_) => "JSON".to_owned(),
        Tree::Parts(parts) => format!("{} parts", parts.len()),
        Tree::Bytes(bytes) if bytes.is_empty() => "(empty)".to_owned(),
        Tree::Bytes(bytes) => {
            let start = String::from_utf8_lossy(&bytes[..bytes.len().min(120)]).into_owned();
            format!("{} bytes: {start}", bytes.len())
        }
    }
}

#[cfg(test)]
mod tests;
