//! Checks a sweeper's run from its history alone (SS1 to SS10, SL1 to SL4): the blobs here, the
//! state document in [`ledger`].

mod left;
mod lives;
mod moves;

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use smalt_protocol::Timestamp;
use smalt_protocol::metadata::FOLDER_MARKER;

use self::lives::Lives;
use super::extras::RULED;
use super::ledger::{Ledger, Write};
use super::model::{self, Deed, Key, Model, Version};
use super::notes::{DUE_DIRECTORY, Notes, TESTS};
use super::plan::{Names, SWEPT, SweepPlan};
use crate::scenario::campaign::Violation;
use crate::scenario::history::{Answer, Event, Exchange, Happening, elements};
use crate::scenario::marks::{Marks, tested};

/// Seconds for which a listed blob was due, from which on the cycle must have tried it: a listing
/// that is older is never written.
const LISTED_DUE_S: u64 = 600;

struct Judge<'a> {
    plan: &'a SweepPlan,
    names: &'a Names,
    /// Names of the main account and of the account for dead blobs.
    accounts: [&'a str; 2],
    history: &'a [Event],
    model: Model,
    ledger: Ledger,
    notes: Notes,
    cycle: Cycle,
    /// Since when no fault happens.
    calm: Option<Timestamp>,
    /// Content of every version of every source, by ETag.
    contents: BTreeMap<String, Bytes>,
    /// ETags of sources of which a worker has seen a complete copy.
    verified: BTreeSet<String>,
    /// ETags of sources whose copy was replaced afterwards, by its owner or, where the policy
    /// allows it, by a blob with the same destination: no worker can prevent that between its last
    /// look and its delete.
    replaced: BTreeSet<String>,
    snapshots: BTreeSet<Key>,
    /// ETags that a life has seen in listings and properties.
    seen: BTreeSet<(String, String)>,
    lives: Lives,
    violations: Vec<Violation>,
}

/// Events of the current cycle.
#[derive(Default)]
struct Cycle {
    /// ETags that were listed, with the service's time.
    listed: BTreeMap<String, Timestamp>,
    /// ETags in the conditions of a delete or a copy.
    tried: BTreeSet<String>,
    /// Blobs that were leased.
    leased: BTreeSet<Key>,
    /// Blobs whose tags could not be read.
    unread: BTreeSet<Key>,
    /// Whether a container for dead blobs could not be created.
    create_failed: bool,
}

/// Returns the violations and marks of a run.
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
        history,
        model: Model::default(),
        ledger: Ledger::default(),
        notes: Notes::new(plan),
        cycle: Cycle::default(),
        calm: None,
        contents: BTreeMap::new(),
        verified: BTreeSet::new(),
        replaced: BTreeSet::new(),
        snapshots: BTreeSet::new(),
        seen: BTreeSet::new(),
        lives: Lives::new(plan),
        violations: Vec::new(),
    };
    for (number, event) in history.iter().enumerate() {
        judge.event(number, event);
    }
    if let Some(last) = history.last() {
        judge.end(last.at);
    }
    let mut marks = judge.notes.marks;
    tested(&mut marks, TESTS);
    (judge.violations, marks)
}

impl Judge<'_> {
    fn violated(&mut self, property: &'static str, number: usize, what: impl Into<String>) {
        self.violations.push(Violation::at(property, number, what));
    }

    fn violations_at(&mut self, number: usize, found: Vec<(&'static str, String)>) {
        for (property, what) in found {
            self.violated(property, number, what);
        }
    }

    fn event(&mut self, number: usize, event: &Event) {
        match &event.what {
            Happening::Exchange(exchange) => self.exchange(number, event, exchange),
            Happening::Delivered { number: of } => {
                let of = self.history.get(*of).map(|event| &event.what);
                if let Some(Happening::Exchange(exchange)) = of {
                    self.was_listed(exchange);
                }
            }
            Happening::Crashed => self.notes.died(&event.actor),
            Happening::Ended(why) => {
                let pages = self.ledger.pages_of(&event.actor, event.at);
                let wrong = self.lives.ended(event, why.as_deref(), &pages);
                self.violations_at(number, wrong);
            }
            Happening::Calm => self.calm = Some(event.at),
            Happening::ToldToStop if event.actor != "harness" => {
                self.lives.told_to_stop(&event.actor);
            }
            Happening::ToldToStop => {
                self.notes.mark("told to stop");
                self.converged(number, event.at);
            }
            _ => {}
        }
    }

    fn exchange(&mut self, number: usize, event: &Event, exchange: &Exchange) {
        let worker = event.actor != "owner";
        if worker {
            let early = self.notes.note(number, event, exchange, &self.model);
            self.violations.extend(early);
            self.tried(exchange);
            let is_state = model::key(exchange).1 == self.names.state();
            let wrong = self
                .lives
                .sent(event, exchange, is_state, self.calm.is_some());
            self.violations_at(number, wrong);
        }
        let Some(answer) = exchange.done() else {
            return;
        };
        if worker {
            self.saw(&event.actor, exchange, answer);
            match model::deed(exchange) {
                Some(Deed::Deleted) => self.deleted(number, event, exchange),
                Some(Deed::Copied) => self.copied(number, event, exchange, answer),
                Some(deed) => self.wrote(number, event, deed, exchange),
                None => {}
            }
        } else {
            self.owner_did(exchange);
        }
        self.model.apply(number, event, exchange, answer);
        if let Some(version) = self.model.blobs.get(&model::key(exchange)) {
            let etag = unquoted(&version.etag).to_owned();
            self.contents.insert(etag, version.content.clone());
        }
    }

    fn owner_did(&mut self, exchange: &Exchange) {
        let key = model::key(exchange);
        if exchange.method == "DELETE" && key.2.is_empty() {
            let gone = self.model.emptied(&key);
            let sources = gone.iter().filter_map(|copy| copy.value("sourceetag"));
            self.replaced.extend(sources.map(str::to_owned));
            self.notes.mark("container for dead blobs deleted");
        } else if exchange.parameter("comp") == Some("snapshot") {
            self.snapshots.insert(key);
        } else if exchange.parameter("comp") == Some("lease") {
            if key.1 == self.names.state() {
                self.notes.mark("lease broken by an operator");
            }
            self.cycle.leased.insert(key);
        } else if let Some(copy) = self.model.blobs.get(&key)
            && model::deed(exchange).is_some()
        {
            let source = copy.value("sourceetag").map(str::to_owned);
            self.replaced.extend(source);
        }
    }

    /// Records what a worker has tried, whether or not it succeeded.
    fn tried(&mut self, exchange: &Exchange) {
        let named = match model::deed(exchange) {
            Some(Deed::Deleted) => exchange.header("if-match"),
            Some(Deed::Copied) => exchange.header("x-ms-source-if-match"),
            _ => None,
        };
        self.cycle
            .tried
            .extend(named.map(|etag| unquoted(etag).to_owned()));
        let (_, _, blob) = exchange.segments();
        let creates = exchange.method == "PUT" && blob.is_empty();
        self.cycle.create_failed |= creates && exchange.done().is_none();
        if exchange.method == "GET" && exchange.parameter("comp") == Some("tags") {
            let key = model::key(exchange);
            match exchange.done().is_some() {
                true => self.cycle.unread.remove(&key),
                false => self.cycle.unread.insert(key),
            };
        }
    }

    /// Records what a life has seen, and what this cycle listed.
    fn saw(&mut self, actor: &str, exchange: &Exchange, answer: &Answer) {
        if exchange.parameter("comp") == Some("list") {
            if answer.text().contains(FOLDER_MARKER) {
                self.notes.mark(DUE_DIRECTORY);
            }
            for etag in elements(&answer.text(), "Etag") {
                let etag = unquoted(etag).to_owned();
                self.seen.insert((actor.to_owned(), etag));
            }
            if exchange.is_told() {
                self.was_listed(exchange);
            }
        } else if let Some(etag) = answer.header("etag") {
            let etag = unquoted(etag).to_owned();
            self.seen.insert((actor.to_owned(), etag));
        }
        if exchange.method == "HEAD" {
            self.looked(&model::key(exchange), answer);
        }
    }

    /// Records that a listing has arrived completely.
    fn was_listed(&mut self, exchange: &Exchange) {
        if let (Some("list"), Some(answer)) = (exchange.parameter("comp"), exchange.done()) {
            let date = answer.header("date").and_then(Timestamp::parse_rfc1123);
            let date = date.unwrap_or(Timestamp::MIN);
            let text = answer.text();
            let etags = elements(&text, "Etag").into_iter();
            let etags: Vec<String> = etags.map(|etag| unquoted(etag).to_owned()).collect();
            self.cycle
                .listed
                .extend(etags.into_iter().map(|etag| (etag, date)));
        }
    }

    /// Records that a worker has looked at a copy, and the state of the copy then.
    fn looked(&mut self, key: &Key, answer: &Answer) {
        self.model.looked(key, answer);
        let Some(copy) = self.model.blobs.get(key) else {
            return;
        };
        if copy.broken {
            self.notes.mark("copy came to nothing");
        }
        let whole = |etag: &str| !copy.pending && self.contents.get(etag) == Some(&copy.content);
        let cut = |etag: &&str| {
            let content = self
                .contents
                .get(*etag)
                .filter(|_| !copy.pending && !copy.broken);
            content.is_some_and(|content| content.len() != copy.content.len())
        };
        let of = copy.value("sourceetag").filter(cut);
        if of.is_some_and(|etag| self.model.lacks_md5(etag)) {
            self.notes.mark("copy cut short, without an MD5");
        }
        let source = copy.value("sourceetag").filter(|etag| whole(etag));
        self.verified.extend(source.map(str::to_owned));
    }

    /// SS1 to SS5: checks the removal of a blob.
    fn deleted(&mut self, number: usize, event: &Event, exchange: &Exchange) {
        let key = model::key(exchange);
        let Some(version) = self.model.blobs.get(&key).cloned() else {
            return self.violated("service", number, format!("{key:?} did not exist"));
        };
        if !self.is_swept(&key) {
            return self.violated("SS3", number, format!("{key:?} is outside the sweep"));
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
        if self.due(&key, &version).is_none_or(|due| due > event.at) {
            let ttl = version.value("timetolive");
            self.violated("SS1", number, format!("{key:?} was not due: {ttl:?}"));
        }
        if exchange.header("x-ms-delete-snapshots").is_some() && !self.plan.with_snapshots {
            self.violated("DS23", number, format!("{key:?} deleted with snapshots"));
        }
        self.snapshots.remove(&key);
        let page = self.under_claim(number, event, exchange);
        let told = exchange.delivered.then_some(event.actor.as_str());
        self.ledger.removed(&page, told);
        if version.value("deadblobcontainer").is_some() {
            self.moved(number, &key, &version);
        } else {
            let by_rule = version.value("timetolive").is_none();
            self.notes.mark(if by_rule {
                "deleted by a rule"
            } else {
                "deleted"
            });
        }
    }

    /// DS8: checks that a worker has durably claimed the page before it removes or copies a blob.
    /// Returns the page.
    fn under_claim(&mut self, number: usize, event: &Event, exchange: &Exchange) -> String {
        let id = exchange
            .header("x-ms-client-request-id")
            .unwrap_or_default();
        let id: serde_json::Value = serde_json::from_str(id).unwrap_or_default();
        let page = id["page"].as_str().unwrap_or_default().to_owned();
        if !self.ledger.is_claimed(&page, &event.actor) {
            let what = format!("{} handles {page}, which it has not claimed", event.actor);
            self.violated("SS6", number, what);
        }
        page
    }

    fn is_swept(&self, key: &Key) -> bool {
        SWEPT.iter().any(|(which, container, prefix)| {
            key.0 == self.accounts[*which as usize]
                && key.1 == self.names.container(container)
                && key.2.starts_with(prefix)
        })
    }

    /// Returns when a version may be removed, by its own time to live or by the rule.
    fn due(&self, key: &Key, version: &Version) -> Option<Timestamp> {
        let due = match version.value("timetolive") {
            Some(_) => version.due()?,
            None => {
                let age_h = self.plan.extras.rule_h?;
                let (which, container, _) = SWEPT[RULED];
                let here = key.0 == self.accounts[which as usize]
                    && key.1 == self.names.container(container);
                let made = version.made.floor_s();
                (here && version.tagged.0).then(|| made.plus_s(3_600 * u64::from(age_h)))?
            }
        };
        Some(due.plus_s(3_600 * self.plan.grace_h))
    }

    /// SS5, SS6: checks any other write of a worker; it must be one of the state document.
    fn wrote(&mut self, number: usize, event: &Event, deed: Deed, exchange: &Exchange) {
        let key = model::key(exchange);
        if deed != Deed::Put || key.1 != self.names.state() {
            return self.violated("SS5", number, format!("{deed:?} of {key:?}"));
        }
        let there = self.model.blobs.get(&key);
        let there = there.map(|v| unquoted(&v.etag).to_owned());
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
        self.notes.mark("state written");
        let wrong = self.lives.wrote(event, exchange, there.is_none());
        self.violations_at(number, wrong);
        let text = String::from_utf8_lossy(&exchange.body).into_owned();
        if text.contains("sig=") || text.contains("AccountKey") {
            self.violated("SS9", number, "a secret in the state document");
        }
        let write = Write {
            number,
            at: event.at,
            actor: &event.actor,
            text: &text,
        };
        let before = self.ledger.reclaimed;
        let (closed, wrong) = self.ledger.accepted(self.plan, write, self.calm);
        self.violations.extend(wrong);
        if self.ledger.reclaimed > before {
            self.notes.mark("page reclaimed");
        }
        if closed {
            self.closed(number, event.at);
        }
    }

    /// SS7: checks that everything was listed, and that every due blob was tried.
    fn closed(&mut self, number: usize, at: Timestamp) {
        self.notes.mark("cycle completed");
        if self.ledger.claimants.len() > 1 {
            self.notes.mark("two sweepers in one cycle");
        }
        let mut missed = Vec::new();
        for (key, version) in &self.model.blobs {
            let etag = unquoted(&version.etag);
            if !self.is_swept(key) || self.ledger.failed.contains(&key.1) {
                continue;
            }
            match self.cycle.listed.get(etag) {
                None if version.number < self.ledger.began.0 => {
                    missed.push(format!("{key:?} {etag} was never listed in the cycle"));
                }
                Some(listed) if self.must_be_tried(key, version, *listed) => {
                    missed.push(format!(
                        "{key:?} {etag} was due and never tried in the cycle"
                    ));
                }
                _ => {}
            }
        }
        for what in missed {
            self.violated("SS7", number, what);
        }
        self.ledger.begins(number, at);
        self.notes.begins();
        self.cycle = Cycle::default();
    }

    fn must_be_tried(&self, key: &Key, version: &Version, listed: Timestamp) -> bool {
        let due = self
            .due(key, version)
            .is_some_and(|due| due.max(version.tagged.1).plus_s(LISTED_DUE_S) <= listed);
        let moves = version.value("deadblobcontainer").is_some();
        due && !self.cycle.tried.contains(unquoted(&version.etag))
            && !self.cycle.leased.contains(key)
            && !self.cycle.unread.contains(key)
            && !(moves && (self.cycle.create_failed || self.destination(key, version).is_none()))
            && self.plan.removals_max == 0
    }
}

fn unquoted(etag: &str) -> &str {
    etag.trim_matches('"')
}
