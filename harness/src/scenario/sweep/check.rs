//! Judges a sweeper's run by its history alone (SS1 to SS9, SL1).

use std::collections::BTreeSet;

use smalt_protocol::Timestamp;
use smalt_sweeper::Collision;

use super::Names;
use super::model::{self, Deed, Key, Model, Version};
use super::plan::{SWEPT, SweepPlan};
use crate::scenario::campaign::Violation;
use crate::scenario::history::{Answer, Event, Exchange, Fate, Happening, elements};
use crate::scenario::marks::{self, Marks};

/// What a campaign must have seen.
pub(super) const SOMETIMES: &[&str] = &[
    "worker died",
    "answer lost: delete",
    "answer lost: copy",
    "answer lost: state",
    "412 on delete",
    "lease taken",
    "503",
    "connection reset",
    "deleted",
    "moved",
    "destination taken",
    "cycle completed",
];

struct Judge<'a> {
    plan: &'a SweepPlan,
    names: &'a Names,
    /// Names of the main account and of the one for dead blobs.
    accounts: [&'a str; 2],
    model: Model,
    ledger: Ledger,
    /// Source ETags of whole copies that their owner replaced afterwards: no worker can prevent
    /// that between its last look and its delete.
    replaced_by_owner: BTreeSet<String>,
    /// ETags that a life has seen in listings and properties.
    seen: BTreeSet<(String, String)>,
    violations: Vec<Violation>,
    marks: Marks,
}

/// The accepted state documents, as far as they are compared.
#[derive(Default)]
struct Ledger {
    fence: u64,
    cycle: u64,
    /// Where the running cycle began in the history.
    began: usize,
    pages_open: usize,
    /// Containers that failed in this cycle.
    failed: BTreeSet<String>,
    /// ETags listed in this cycle.
    listed: BTreeSet<String>,
}

/// What does not hold, and what was seen.
pub(super) fn check(
    history: &[Event],
    plan: &SweepPlan,
    names: &Names,
    accounts: [&str; 2],
) -> (Vec<Violation>, Marks) {
    let mut judge = Judge {
        plan,
        names,
        accounts,
        model: Model::default(),
        ledger: Ledger::default(),
        replaced_by_owner: BTreeSet::new(),
        seen: BTreeSet::new(),
        violations: Vec::new(),
        marks: Marks::new(),
    };
    for (number, event) in history.iter().enumerate() {
        match &event.what {
            Happening::Exchange(exchange) => judge.exchange(number, event, exchange),
            Happening::Crashed => judge.mark("worker died"),
            _ => {}
        }
    }
    if let Some(last) = history.last() {
        judge.end(last.at);
    }
    (judge.violations, judge.marks)
}

impl Judge<'_> {
    fn violated(&mut self, property: &'static str, number: usize, what: impl Into<String>) {
        self.violations.push(Violation::at(property, number, what));
    }

    fn mark(&mut self, mark: &'static str) {
        marks::mark(&mut self.marks, mark);
    }

    fn exchange(&mut self, number: usize, event: &Event, exchange: &Exchange) {
        let worker = event.actor != "owner";
        if worker {
            self.note(exchange);
        }
        let Some(answer) = exchange.done() else {
            return;
        };
        if worker {
            self.saw(&event.actor, exchange, answer);
            match model::deed(exchange) {
                Some(Deed::Deleted) => self.deleted(number, event, exchange),
                Some(Deed::Copied) => self.copied(number, exchange),
                Some(deed) => self.wrote(number, deed, exchange),
                None => {}
            }
        } else if let Some(copy) = self.model.blobs.get(&model::key(exchange)) {
            let source = copy.value("sourceetag").map(str::to_owned);
            self.replaced_by_owner.extend(source);
        }
        self.model.apply(number, event.at, exchange, answer);
    }

    /// Counts what was seen.
    fn note(&mut self, exchange: &Exchange) {
        let deed = model::deed(exchange);
        match &exchange.fate {
            Fate::NoAnswer(_) => self.mark("connection reset"),
            Fate::Answered(answer) => {
                let code = answer.header("x-ms-error-code").unwrap_or_default();
                match (answer.status, code, deed) {
                    (503, ..) => self.mark("503"),
                    (412, "ConditionNotMet", Some(Deed::Deleted)) => self.mark("412 on delete"),
                    (412, _, Some(Deed::Put)) => self.mark("412 on the state"),
                    (409, "LeaseAlreadyPresent", _) => self.mark("lease taken"),
                    (412, "LeaseIdMissing", Some(Deed::Deleted)) => self.mark("blob leased"),
                    (409, "BlobAlreadyExists", Some(Deed::Copied)) => {
                        self.mark("destination taken");
                    }
                    _ => {}
                }
                if exchange.is_answer_lost() {
                    match deed {
                        Some(Deed::Deleted) => self.mark("answer lost: delete"),
                        Some(Deed::Copied) => self.mark("answer lost: copy"),
                        Some(Deed::Put) => self.mark("answer lost: state"),
                        _ => self.mark("answer lost: other"),
                    }
                }
            }
        }
    }

    /// What a life has seen, and what was listed in this cycle.
    fn saw(&mut self, actor: &str, exchange: &Exchange, answer: &Answer) {
        if exchange.parameter("comp") == Some("list") {
            for etag in elements(&answer.text(), "Etag") {
                let etag = unquoted(etag).to_owned();
                self.ledger.listed.insert(etag.clone());
                self.seen.insert((actor.to_owned(), etag));
            }
        } else if let Some(etag) = answer.header("etag") {
            self.seen
                .insert((actor.to_owned(), unquoted(etag).to_owned()));
        }
    }

    /// SS1 to SS5: a blob is gone.
    fn deleted(&mut self, number: usize, event: &Event, exchange: &Exchange) {
        let key = model::key(exchange);
        let Some(version) = self.model.blobs.get(&key).cloned() else {
            return self.violated("service", number, format!("{key:?} was not there"));
        };
        if !self.is_swept(&key) {
            return self.violated("SS3", number, format!("{key:?} is nothing that is swept"));
        }
        let matched = exchange.header("if-match").map(unquoted);
        if matched != Some(unquoted(&version.etag)) {
            let what = format!("{key:?} deleted under {matched:?}, it was {}", version.etag);
            self.violated("SS2", number, what);
        }
        let told = (event.actor.clone(), unquoted(&version.etag).to_owned());
        if !self.seen.contains(&told) {
            let what = format!("{} had never seen {} of {key:?}", event.actor, version.etag);
            self.violated("SS2", number, what);
        }
        if version.due().is_none_or(|due| due > event.at) {
            let ttl = version.value("timetolive");
            self.violated("SS1", number, format!("{key:?} was not due: {ttl:?}"));
        }
        if version.value("deadblobcontainer").is_some() {
            self.moved(number, &key, &version);
        } else {
            self.mark("deleted");
        }
    }

    /// SS3 and SS4: a copy of that very version stands where it was to go.
    fn moved(&mut self, number: usize, key: &Key, version: &Version) {
        let wanted = self.destination(key, version);
        let copy = wanted.and_then(|wanted| {
            self.model.blobs.iter().find(|(at, there)| {
                let beside = self.plan.on_collision != Collision::Overwrite
                    && at.2.starts_with(&format!("{}~", wanted.2));
                at.0 == wanted.0
                    && at.1 == wanted.1
                    && (at.2 == wanted.2 || beside)
                    && there.value("sourceetag") == Some(unquoted(&version.etag))
            })
        });
        let problem = match copy {
            None if self.replaced_by_owner.contains(unquoted(&version.etag)) => None,
            None => Some("no copy of it stands where it was to go".to_owned()),
            Some((_, copy)) if copy.content != version.content => {
                Some("the copy has another content".to_owned())
            }
            Some((_, copy)) if copy.value("timetolive").is_some() => {
                Some("the copy would expire itself".to_owned())
            }
            Some((_, copy)) if copy.value("owner") != Some("scenario") => {
                Some("the copy has lost metadata of its owner".to_owned())
            }
            Some(_) => None,
        };
        match problem {
            Some(what) => self.violated("SS4", number, format!("{key:?}: {what}")),
            None => self.mark("moved"),
        }
    }

    /// Where a version is to go; `None` when it says so in no way that is allowed.
    fn destination(&self, key: &Key, version: &Version) -> Option<Key> {
        let value = version.value("deadblobcontainer")?;
        let (container, name) = model::resolve(value, &key.2)?;
        let place = (self.accounts[1].to_owned(), container, name);
        (self.plan.dead_account && !self.is_swept(&place)).then_some(place)
    }

    fn is_swept(&self, key: &Key) -> bool {
        SWEPT.iter().any(|(which, container, prefix)| {
            key.0 == self.accounts[*which as usize]
                && key.1 == self.names.container(container)
                && key.2.starts_with(prefix)
        })
    }

    /// SS5 and SS8: a copy was made.
    fn copied(&mut self, number: usize, exchange: &Exchange) {
        let key = model::key(exchange);
        if self.is_swept(&key) || key.0 != self.accounts[1] {
            return self.violated("SS5", number, format!("a copy into {key:?}"));
        }
        if self.model.blobs.contains_key(&key) {
            let allowed = self.plan.on_collision == Collision::Overwrite
                && exchange.header("if-match").is_some();
            if !allowed {
                self.violated(
                    "SS8",
                    number,
                    format!("{key:?} was there, and is overwritten"),
                );
            }
            self.mark("overwritten by policy");
        }
        let secret = exchange
            .headers
            .iter()
            .any(|(name, value)| name.starts_with("x-ms-meta-") && value.contains("sig="));
        if secret {
            self.violated("SS9", number, "a signature in the metadata of a copy");
        }
    }

    /// SS5, SS6: anything else that a worker writes must be the state document.
    fn wrote(&mut self, number: usize, deed: Deed, exchange: &Exchange) {
        let key = model::key(exchange);
        if deed != Deed::Put || key.1 != self.names.state() {
            return self.violated("SS5", number, format!("{deed:?} of {key:?}"));
        }
        let there = self
            .model
            .blobs
            .get(&key)
            .map(|v| unquoted(&v.etag).to_owned());
        let matched = exchange.header("if-match").map(unquoted);
        let absent = exchange.header("if-none-match") == Some("*");
        let linear = match &there {
            Some(etag) => matched == Some(etag.as_str()),
            None => absent,
        };
        if !linear {
            let what = format!("written under {matched:?}, on top of {there:?}");
            self.violated("SS6", number, what);
        }
        let text = String::from_utf8_lossy(&exchange.body).into_owned();
        if text.contains("sig=") || text.contains("AccountKey") {
            self.violated("SS9", number, "a secret in the state document");
        }
        self.state(number, &text, there.is_none());
    }

    /// SS6 and SS7: the fence grows; a cycle ends only when all of it was listed and worked off.
    fn state(&mut self, number: usize, text: &str, first: bool) {
        let root = tags(text, "Containers").next().unwrap_or_default();
        let value = |name| {
            attribute(root, name)
                .and_then(|v| v.parse().ok())
                .unwrap_or(0)
        };
        let (fence, cycle): (u64, u64) = (value("fence"), value("cycle"));
        if !first && fence <= self.ledger.fence {
            let what = format!("fence {fence} after {}", self.ledger.fence);
            self.violated("SS6", number, what);
        }
        let pages = tags(text, "Page").count();
        for container in tags(text, "Container") {
            if attribute(container, "failures").is_some()
                || attribute(container, "lastError").is_some()
            {
                let name = attribute(container, "name").unwrap_or_default();
                self.ledger.failed.insert(name.to_owned());
            }
        }
        if cycle != self.ledger.cycle && !first {
            self.closed(number, pages, cycle);
            self.ledger.failed.clear();
            self.ledger.listed.clear();
            self.ledger.began = number;
        }
        self.ledger.fence = fence;
        self.ledger.cycle = cycle;
        self.ledger.pages_open = pages;
    }

    fn closed(&mut self, number: usize, pages: usize, cycle: u64) {
        self.mark("cycle completed");
        if cycle < self.ledger.cycle || pages > 0 {
            let what = format!(
                "cycle {cycle} after {}, {pages} pages open",
                self.ledger.cycle
            );
            self.violated("SS7", number, what);
        }
        let missed = self.model.blobs.iter().find(|(key, version)| {
            self.is_swept(key)
                && version.number < self.ledger.began
                && !self.ledger.failed.contains(&key.1)
                && !self.ledger.listed.contains(unquoted(&version.etag))
        });
        if let Some((key, version)) = missed {
            let what = format!("{key:?} {} was never listed in the cycle", version.etag);
            self.violated("SS7", number, what);
        }
    }

    /// SL1: what was due is gone.
    fn end(&mut self, now: Timestamp) {
        let left = self.model.blobs.iter().filter(|(key, version)| {
            self.is_swept(key)
                && version.due().is_some_and(|due| due.plus_s(3_600) < now)
                && self.may_go(key, version)
        });
        let found: Vec<Violation> = left
            .map(|(key, version)| {
                let ttl = version.value("timetolive");
                let dead = version.value("deadblobcontainer");
                Violation::of_run("SL1", format!("{key:?} is left: {ttl:?}, {dead:?}"))
            })
            .collect();
        self.violations.extend(found);
        if self.ledger.pages_open > 0 {
            let what = format!("{} pages are open at the end", self.ledger.pages_open);
            self.violations.push(Violation::of_run("SL2", what));
        }
    }

    /// Whether nothing stands in the way of a due blob.
    fn may_go(&self, key: &Key, version: &Version) -> bool {
        if version.value("deadblobcontainer").is_none() {
            return true;
        }
        let Some(wanted) = self.destination(key, version) else {
            return false;
        };
        let taken = self.model.blobs.contains_key(&wanted);
        !taken || self.plan.on_collision != Collision::Fail
    }
}

fn unquoted(etag: &str) -> &str {
    etag.trim_matches('"')
}

/// The opening tags of that name, in a document whose attributes hold no `>`.
fn tags<'a>(xml: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    let open = format!("<{name} ");
    xml.split('<').filter_map(move |part| {
        let part = part.split('>').next()?;
        part.starts_with(&open[1..]).then_some(part)
    })
}

fn attribute<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    let start = tag.find(&format!(" {name}=\""))? + name.len() + 3;
    tag[start..].split('"').next()
}
