//! Checks the accepted state documents one after the other (SS6, SS7, SL2, SL4, SS10).

use std::collections::{BTreeMap, BTreeSet};

use smalt_protocol::Timestamp;

use super::plan::SweepPlan;
use crate::scenario::campaign::Violation;

/// Seconds within which an expired page is claimed again when no fault happens: polls, the lease of
/// a worker that died, and the write itself.
const RECLAIM_S: u64 = 150;
/// Seconds that a page has, and a second or two for the resolution of `Date`.
const PAGE_S: u64 = 122;
/// Seconds by which a mark may be in the past when it is written: requests can be late.
const LATE_S: u64 = 900;

/// The parts of a state document that are checked.
#[derive(Clone, Debug, Default)]
struct Document {
    fence: u64,
    cycle: u64,
    next_due: Option<Timestamp>,
    purged: u64,
    containers: Vec<Container>,
}

#[derive(Clone, Debug, Default)]
struct Container {
    name: String,
    status: String,
    failed: bool,
    /// Failures that it is not forgiven yet.
    failures: u64,
    /// Whether the circuit breaker has stopped it.
    tripped: bool,
    /// Blobs counted as removed.
    removed: u64,
    pages: Vec<Page>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Page {
    id: String,
    owner: String,
    deadline: Option<Timestamp>,
    fence: u64,
    attempt: u64,
}

impl Page {
    /// Whether its worker still has it at this time.
    fn goes_on(&self, at: Timestamp) -> bool {
        self.deadline.is_some_and(|deadline| deadline > at)
    }
}

/// An accepted write of the state document.
#[derive(Clone, Copy, Debug)]
pub(super) struct Write<'a> {
    /// Index in the history.
    pub number: usize,
    /// When it was accepted.
    pub at: Timestamp,
    pub actor: &'a str,
    /// Text of the document.
    pub text: &'a str,
}

/// What the state documents have said so far.
#[derive(Default)]
pub(super) struct Ledger {
    now: Option<Document>,
    /// Index in the history and time at which the current cycle began.
    pub began: (usize, Timestamp),
    /// Containers that failed in this cycle.
    pub failed: BTreeSet<String>,
    /// Whether the circuit breaker has stopped a container.
    pub tripped: bool,
    /// Workers that have claimed a page in this cycle.
    pub claimants: BTreeSet<String>,
    /// Every claim: page and owner.
    claims: BTreeSet<(String, String)>,
    /// Number of blobs removed, by cycle.
    removed: BTreeMap<u64, u64>,
    /// Number of blobs of which a claim knows that it removed them, by page and owner.
    known: BTreeMap<(String, String), u64>,
    /// Number of pages that were claimed again because their worker had not finished.
    pub reclaimed: u64,
}

impl Ledger {
    /// Returns the cycle to which a page belongs.
    fn cycle_of(page: &str) -> Option<u64> {
        page.split('/').next()?.parse().ok()
    }

    /// Counts a blob that was removed under a claim; `told` is its owner, if it got the answer.
    pub(super) fn removed(&mut self, page: &str, told: Option<&str>) {
        if let Some(owner) = told {
            let claim = (page.to_owned(), owner.to_owned());
            *self.known.entry(claim).or_default() += 1;
        }
        if let Some(cycle) = Self::cycle_of(page) {
            *self.removed.entry(cycle).or_default() += 1;
        }
    }

    /// Whether a worker has durably claimed a page.
    pub(super) fn is_claimed(&self, page: &str, owner: &str) -> bool {
        self.claims.contains(&(page.to_owned(), owner.to_owned()))
    }

    /// Records a document and returns whether it closes a cycle. `calm` is the time since which no
    /// fault happens.
    pub(super) fn accepted(
        &mut self,
        plan: &SweepPlan,
        write: Write<'_>,
        calm: Option<Timestamp>,
    ) -> (bool, Vec<Violation>) {
        let new = read(write.text);
        let old = self.now.replace(new.clone());
        let mut wrong = Vec::new();
        let mut say = |property, what| wrong.push(Violation::at(property, write.number, what));
        for container in &new.containers {
            if container.failed {
                self.failed.insert(container.name.clone());
            }
            for page in &container.pages {
                self.claimants.insert(page.owner.clone());
                self.claims.insert((page.id.clone(), page.owner.clone()));
            }
        }
        self.tripped |= write.text.contains("GuardTripped");
        let Some(old) = old else {
            return (false, wrong);
        };
        if new.fence <= old.fence {
            say("SS6", format!("fence {} after {}", new.fence, old.fence));
        }
        deadlines(&old, &new, &write)
            .into_iter()
            .for_each(|w| say("SL2", w));
        self.settled(&old, &new, &write)
            .into_iter()
            .for_each(|(p, w)| say(p, w));
        let tripped = |document: &Document| document.containers.iter().any(|c| c.tripped);
        let is_few = u64::from(plan.page_size) <= plan.removals_max;
        if is_few && is_idle(&old) && !tripped(&old) && tripped(&new) {
            say(
                "SS10",
                "stopped before the cycle has removed anything".to_owned(),
            );
        }
        self.reclaimed += reclaimed(&old, &new);
        let closed = new.cycle != old.cycle;
        if closed {
            closing(&old, &new, &write, &self.failed)
                .into_iter()
                .for_each(|(p, w)| say(p, w));
            marks(plan, &new, &write, calm.is_some())
                .into_iter()
                .for_each(|w| say("SL4", w));
            let counted = self.removed.get(&old.cycle).copied().unwrap_or(0);
            let in_calm = calm.is_some_and(|calm| self.began.1 > calm.plus_s(LATE_S));
            if in_calm && new.purged != counted {
                let what = format!("{} removals reported, {counted} counted", new.purged);
                say("DS19", what);
            }
        } else {
            others(&old, &new, &write)
                .into_iter()
                .for_each(|w| say("SS6", w));
            let begins = early(&old, &new, &write).map(|what| ("SL4", what));
            let begins = (begins.into_iter()).chain(unforgiven(&old, &new, &write));
            begins.for_each(|(p, w)| say(p, w));
        }
        if calm.is_some_and(|calm| write.at > calm.plus_s(LATE_S)) {
            overdue(&new, write.at)
                .into_iter()
                .for_each(|w| say("SL2", w));
        }
        (closed, wrong)
    }

    /// Checks the pages that their owner has completed or given back: what it removed is counted
    /// (DS19), and that it stops is no failed attempt (SL5).
    fn settled(
        &mut self,
        old: &Document,
        new: &Document,
        write: &Write<'_>,
    ) -> Vec<(&'static str, String)> {
        let mut wrong = Vec::new();
        for (before, after) in old.containers.iter().zip(&new.containers) {
            for page in &after.pages {
                let is_old = |it: &Page| it.id == page.id && it.fence == page.fence;
                if !before.pages.iter().any(is_old) {
                    self.known.remove(&(page.id.clone(), page.owner.clone()));
                }
            }
            for page in before.pages.iter().filter(|it| it.owner == write.actor) {
                let same = after.pages.iter().find(|it| it.id == page.id);
                if same.is_some_and(|it| it.fence != page.fence || it.deadline >= page.deadline) {
                    continue;
                }
                if same.is_some_and(|it| it.attempt + 1 != page.attempt) {
                    wrong.push(("SL5", format!("{page:?} was given back as {same:?}")));
                }
                let claim = (page.id.clone(), page.owner.clone());
                let removed = self.known.remove(&claim).unwrap_or_default();
                if !after.failed && after.removed < before.removed + removed {
                    let what = format!("{removed} removals of {page:?} are not counted");
                    wrong.push(("DS19", what));
                }
            }
        }
        wrong
    }

    /// Begins a new cycle.
    pub(super) fn begins(&mut self, number: usize, at: Timestamp) {
        self.began = (number, at);
        self.failed.clear();
        self.claimants.clear();
    }

    /// SL2: returns the pages that nobody has taken over.
    pub(super) fn left_over(&self, at: Timestamp) -> Vec<String> {
        self.now.iter().flat_map(|now| overdue(now, at)).collect()
    }

    /// Returns the pages that a worker has at this time.
    pub(super) fn pages_of(&self, owner: &str, at: Timestamp) -> Vec<String> {
        let containers = self.now.iter().flat_map(|now| &now.containers);
        let pages = containers.flat_map(|container| &container.pages);
        let own = pages.filter(|page| page.owner == owner && page.goes_on(at));
        own.map(|page| page.id.clone()).collect()
    }

    /// Returns the number of open pages.
    pub(super) fn pages_open(&self) -> usize {
        let containers = self.now.iter().flat_map(|now| &now.containers);
        containers.map(|container| container.pages.len()).sum()
    }

    /// SS10: returns the cycles that have removed more than one page beyond their limit.
    pub(super) fn beyond(&self, plan: &SweepPlan) -> Vec<String> {
        let limit = plan.removals_max + u64::from(plan.page_size);
        let beyond = self.removed.iter().filter(|(_, count)| **count > limit);
        let beyond = beyond.filter(|_| plan.removals_max > 0);
        let text = |(cycle, count): (&u64, &u64)| {
            format!(
                "cycle {cycle} has removed {count}, the limit is {}",
                plan.removals_max
            )
        };
        beyond.map(text).collect()
    }
}

/// Checks that a writer does not change unexpired pages of others (fencing).
fn others(old: &Document, new: &Document, write: &Write<'_>) -> Vec<String> {
    let mut wrong = Vec::new();
    for (before, after) in old.containers.iter().zip(&new.containers) {
        for page in &before.pages {
            let expired = !page.goes_on(write.at);
            let same = after.pages.iter().find(|p| p.id == page.id);
            let gone_with_container = same.is_none() && after.failed;
            if page.owner == write.actor || expired || gone_with_container {
                continue;
            }
            if same != Some(page) {
                wrong.push(format!("{} wrote over {page:?}: {same:?}", write.actor));
            }
        }
    }
    wrong
}

/// SL2: checks that a writer gives a page no more time than a page has, by the service's clock.
fn deadlines(old: &Document, new: &Document, write: &Write<'_>) -> Vec<String> {
    let known = |page: &Page| old.containers.iter().any(|c| c.pages.contains(page));
    let pages = new.containers.iter().flat_map(|c| &c.pages);
    let latest = write.at.plus_s(PAGE_S);
    pages
        .filter(|page| page.owner == write.actor && !known(page))
        .filter(|page| page.deadline.is_some_and(|deadline| deadline > latest))
        .map(|page| format!("{page:?} has more than {PAGE_S} s at {}", write.at.iso_s()))
        .collect()
}

/// SS7: checks that a cycle ends with every page completed, except those of containers that failed.
fn closing(
    old: &Document,
    new: &Document,
    write: &Write<'_>,
    failed: &BTreeSet<String>,
) -> Vec<(&'static str, String)> {
    let mut wrong = Vec::new();
    if new.cycle < old.cycle || new.containers.iter().any(|c| !c.pages.is_empty()) {
        wrong.push((
            "SS7",
            format!("cycle {} after {} with open pages", new.cycle, old.cycle),
        ));
    }
    for container in &old.containers {
        let others = container.pages.iter().filter(|it| it.owner != write.actor);
        for page in others.filter(|it| it.goes_on(write.at) || !failed.contains(&container.name)) {
            wrong.push(("SS7", format!("closed without {page:?}")));
        }
    }
    wrong
}

/// SL4: checks that the next mark is a multiple of the interval, and the next one.
fn marks(plan: &SweepPlan, new: &Document, write: &Write<'_>, calm: bool) -> Vec<String> {
    let every_s = plan.every_s();
    let Some(due) = new.next_due else {
        return vec!["a closed cycle does not say when the next begins".to_owned()];
    };
    let slack_s = if calm { 30 } else { LATE_S };
    let late = due.plus_s(slack_s) <= write.at;
    let far = due > write.at.plus_s(every_s);
    let aligned = due.unix_s().is_multiple_of(every_s);
    let wrong = late || far || !aligned;
    wrong
        .then(|| format!("the next mark is {}", due.iso_s()))
        .into_iter()
        .collect()
}

/// SL4: checks that no cycle begins before its mark, unless somebody asks for it.
fn early(old: &Document, new: &Document, write: &Write<'_>) -> Option<String> {
    let due = old.next_due?;
    let early = is_idle(old) && !is_idle(new) && due > write.at && !is_asked(write);
    early.then(|| format!("cycle {} begins before {}", new.cycle, due.iso_s()))
}

/// Whether the writer was asked for a cycle.
fn is_asked(write: &Write<'_>) -> bool {
    write.actor.starts_with("quiet")
}

/// SL3: checks that a cycle that somebody asks for begins without the failures of earlier ones: at
/// most the container that is listed first has failed again.
fn unforgiven(old: &Document, new: &Document, write: &Write<'_>) -> Option<(&'static str, String)> {
    let is_new = is_idle(old) && old.next_due.is_some_and(|due| due > write.at);
    let begins = is_asked(write) && is_new && new.next_due.is_none();
    let failed = new.containers.iter().filter(|it| it.failures > 0);
    let failed: Vec<&Container> = failed.filter(|_| begins).collect();
    let again = usize::from(is_idle(new));
    let wrong = failed.len() > again;
    wrong.then(|| {
        (
            "SL3",
            format!("a cycle that was asked for begins with {failed:?}"),
        )
    })
}

fn is_idle(document: &Document) -> bool {
    let idle = |c: &Container| c.status == "Init" && c.pages.is_empty();
    document.containers.iter().all(idle)
}

/// Returns the pages that expired long ago.
fn overdue(document: &Document, at: Timestamp) -> Vec<String> {
    let pages = document.containers.iter().flat_map(|c| &c.pages);
    let late = |page: &&Page| page.deadline.is_some_and(|d| d.plus_s(RECLAIM_S) < at);
    pages
        .filter(late)
        .map(|page| format!("no worker took over {page:?}"))
        .collect()
}

fn reclaimed(old: &Document, new: &Document) -> u64 {
    let pages = |document: &Document| -> Vec<Page> {
        document
            .containers
            .iter()
            .flat_map(|c| c.pages.clone())
            .collect()
    };
    let old = pages(old);
    let other = |page: &&Page| old.iter().any(|o| o.id == page.id && o.owner != page.owner);
    pages(new).iter().filter(other).count() as u64
}

fn read(text: &str) -> Document {
    let mut document = Document::default();
    for tag in text.split('<').filter_map(|part| part.split('>').next()) {
        let value = |name| attribute(tag, name);
        let number = |name| value(name).and_then(|v| v.parse().ok()).unwrap_or(0);
        let time = |name| value(name).and_then(Timestamp::parse_iso);
        let word = |name| value(name).unwrap_or_default().to_owned();
        if tag.starts_with("Containers ") {
            document.fence = number("fence");
            document.cycle = number("cycle");
            document.purged = number("purged");
            document.next_due = time("nextDue");
        } else if tag.starts_with("Container ") {
            document.containers.push(Container {
                name: word("name"),
                status: word("status"),
                failures: number("failures"),
                failed: value("failures").is_some() || value("lastError").is_some(),
                tripped: value("lastError") == Some("GuardTripped"),
                removed: number("deleted") + number("moved"),
                pages: Vec::new(),
            });
        } else if tag.starts_with("Page ") {
            let page = Page {
                id: word("id"),
                owner: word("owner"),
                deadline: time("deadline"),
                fence: number("fence"),
                attempt: number("attempt"),
            };
            if let Some(container) = document.containers.last_mut() {
                container.pages.push(page);
            }
        }
    }
    document
}

/// Returns the value of an attribute in the text of a tag.
pub(super) fn attribute<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    let start = tag.find(&format!(" {name}=\""))? + name.len() + 3;
    tag[start..].split('"').next()
}
