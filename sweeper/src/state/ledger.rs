//! Steps on the state document: choose, hand out, complete, close. All are pure functions; the
//! executor reads the document, applies steps, and writes it back conditional on its ETag.

use std::time::Duration;

use smalt_protocol::Timestamp;

use super::{Container, Document, PAGES_MAX, Page, Status, Tally};
use crate::guard::Burden;

/// Number of consecutive failures after which a cycle no longer waits for a container (SL3).
pub const PARK_AFTER: u32 = 3;
/// Number of claims without completion after which a page is given up for the cycle.
pub const PAGE_ATTEMPTS_MAX: u32 = 5;

/// The next action of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Reclaim the page of a worker that did not finish: list the same range again.
    Reclaim {
        /// Index of the container.
        container: usize,
        /// Index of the page.
        page: usize,
    },
    /// List the next page of a container.
    List {
        /// Index of the container.
        container: usize,
    },
    /// Wait, because other workers are busy or a container is delayed after a failure.
    Wait {
        /// The earliest foreseeable change.
        until: Timestamp,
    },
    /// Close the cycle: every page of every container is completed.
    Close,
    /// Do nothing until the next cycle is due.
    Idle {
        /// When the next cycle is due.
        until: Timestamp,
    },
}

/// Chooses the next action. `force` starts a cycle that is not due yet.
pub fn choose(document: &Document, now: Timestamp, force: bool) -> Choice {
    if let Some(until) = document.next_due
        && until > now
        && !force
        && is_idle(document)
    {
        return Choice::Idle { until };
    }
    if let Some((container, page)) = oldest_expired(document, now) {
        return Choice::Reclaim { container, page };
    }
    let in_flight: usize = document.containers.iter().map(|c| c.pages.len()).sum();
    if in_flight < PAGES_MAX
        && let Some(container) = next_to_list(document, now)
    {
        return Choice::List { container };
    }
    match next_change(document, now) {
        Some(until) => Choice::Wait { until },
        None => Choice::Close,
    }
}

/// Returns whether no cycle is in progress.
pub fn is_idle(document: &Document) -> bool {
    document
        .containers
        .iter()
        .filter(|c| c.status != Status::Off)
        .all(|c| c.status == Status::Init && c.pages.is_empty())
}

/// Returns whether the cycle currently skips this container.
pub fn is_parked(container: &Container, now: Timestamp) -> bool {
    container.failures >= PARK_AFTER && is_waiting(container, now)
}

/// Returns whether the container has nothing left to do in this cycle, or is skipped.
pub fn is_done(container: &Container, now: Timestamp) -> bool {
    match container.status {
        Status::Off => false,
        Status::FirstAndLast | Status::Last => container.pages.is_empty(),
        Status::Init | Status::Current => is_parked(container, now),
    }
}

fn is_waiting(container: &Container, now: Timestamp) -> bool {
    container.retry_at.is_some_and(|at| at > now)
}

fn is_expired(page: &Page, now: Timestamp) -> bool {
    page.deadline.is_none_or(|deadline| deadline <= now)
}

fn oldest_expired(document: &Document, now: Timestamp) -> Option<(usize, usize)> {
    let usable = |c: &Container| c.status != Status::Off && !is_waiting(c, now);
    document
        .containers
        .iter()
        .enumerate()
        .filter(|(_, container)| usable(container))
        .flat_map(|(at, container)| container.pages.iter().enumerate().map(move |p| (at, p)))
        .filter(|(_, (_, page))| is_expired(page, now))
        .min_by_key(|(_, (_, page))| page.deadline)
        .map(|(container, (page, _))| (container, page))
}

/// Round-robin: returns the container that was served longest ago, in the document's order (DS12,
/// DS18).
fn next_to_list(document: &Document, now: Timestamp) -> Option<usize> {
    document
        .containers
        .iter()
        .enumerate()
        .filter(|(_, c)| matches!(c.status, Status::Init | Status::Current))
        .filter(|(_, c)| !is_waiting(c, now))
        .min_by_key(|(at, c)| (c.order, *at))
        .map(|(at, _)| at)
}

fn next_change(document: &Document, now: Timestamp) -> Option<Timestamp> {
    let deadlines = document
        .containers
        .iter()
        .flat_map(|c| &c.pages)
        .filter_map(|page| page.deadline.filter(|deadline| *deadline > now));
    let retries = document
        .containers
        .iter()
        .filter(|c| c.status != Status::Off && !is_parked(c, now))
        .filter(|c| !c.pages.is_empty() || matches!(c.status, Status::Init | Status::Current))
        .filter_map(|c| c.retry_at.filter(|at| *at > now));
    deadlines.chain(retries).min()
}

/// The worker that claims a page, and its deadline.
#[derive(Clone, Debug)]
pub struct Claimant<'a> {
    /// Worker id.
    pub worker: &'a str,
    /// The service's current time.
    pub now: Timestamp,
    /// When other workers may take the page.
    pub deadline: Timestamp,
}

/// The result of a listing.
#[derive(Clone, Debug, Default)]
pub struct Listed {
    /// Marker of the next page; `None` after the last page.
    pub end: Option<String>,
    /// First and last blob name; `None` for an empty page.
    pub names: Option<(String, String)>,
    /// Counters of the blobs that stay; `seen` counts all.
    pub kept: Tally,
    /// Number of blobs to remove.
    pub due: u64,
}

/// Increments the fence for the write in preparation, and returns it.
pub fn stamp(document: &mut Document, worker: &str) -> u64 {
    document.fence = document.fence.saturating_add(1);
    document.writer = worker.to_owned();
    document.fence
}

/// Hands out the listed page (S22). Returns `None` for a page with nothing to remove, which is
/// complete at once. The document must be stamped first.
pub fn hand_out(
    document: &mut Document,
    at: usize,
    listed: &Listed,
    claimant: &Claimant<'_>,
) -> Option<Page> {
    let (fence, cycle) = (document.fence, document.cycle);
    let container = document.containers.get_mut(at)?;
    let start = std::mem::take(&mut container.token);
    if container.status == Status::Init {
        container.tally = Tally::default();
    }
    container.status = match (&listed.end, container.status) {
        (Some(_), _) => Status::Current,
        (None, Status::Init) => Status::FirstAndLast,
        (None, _) => Status::Last,
    };
    container.token = listed.end.clone().unwrap_or_default();
    container.last_token.clone_from(&start);
    container.order = fence;
    recover(container);
    if listed.due == 0 {
        container.tally.add(&listed.kept);
        return None;
    }
    let (first, last) = listed.names.clone().unwrap_or_default();
    let page = Page {
        id: format!("{cycle}/{}/{fence}", container.name),
        end: container.token.clone(),
        start,
        first,
        last,
        owner: claimant.worker.to_owned(),
        fence,
        claimed: Some(claimant.now),
        deadline: Some(claimant.deadline),
        attempt: 1,
        due: listed.due,
        ..Page::default()
    };
    container.pages.push(page.clone());
    Some(page)
}

/// Claims an expired page again after its range was listed anew.
pub fn hand_out_again(
    document: &mut Document,
    at: (usize, usize),
    listed: &Listed,
    claimant: &Claimant<'_>,
) -> Option<Page> {
    let fence = document.fence;
    let container = document.containers.get_mut(at.0)?;
    recover(container);
    if listed.due == 0 {
        container.pages.remove(at.1);
        container.tally.add(&listed.kept);
        return None;
    }
    let page = container.pages.get_mut(at.1)?;
    page.owner = claimant.worker.to_owned();
    page.fence = fence;
    page.claimed = Some(claimant.now);
    page.deadline = Some(claimant.deadline);
    page.attempt = page.attempt.saturating_add(1);
    page.due = listed.due;
    Some(page.clone())
}

fn recover(container: &mut Container) {
    container.failures = 0;
    container.retry_at = None;
    container.last_error = None;
}

/// Returns the container and page index of a page that this claim still owns.
pub fn find_claim(document: &Document, id: &str, fence: u64) -> Option<(usize, usize)> {
    document
        .containers
        .iter()
        .enumerate()
        .find_map(|(at, container)| {
            let page = container
                .pages
                .iter()
                .position(|page| page.id == id && page.fence == fence)?;
            Some((at, page))
        })
}

/// Completes a page and counts its outcomes. Returns `false` if another worker owns it now; then
/// only that worker's completion counts.
pub fn complete(document: &mut Document, id: &str, fence: u64, tally: &Tally) -> bool {
    let Some((at, page)) = find_claim(document, id, fence) else {
        return false;
    };
    let container = &mut document.containers[at];
    container.pages.remove(page);
    container.tally.add(tally);
    true
}

/// Gives a page back unfinished, free for others at once. The work already done is counted.
pub fn give_back(document: &mut Document, id: &str, fence: u64, done: &Tally, now: Timestamp) {
    if let Some((at, page)) = find_claim(document, id, fence) {
        let container = &mut document.containers[at];
        container.tally.add(done);
        let page = &mut container.pages[page];
        page.deadline = Some(now);
        // Stopping is not a failure of the page.
        page.attempt = page.attempt.saturating_sub(1);
    }
}

/// Records a failure of a container. `park` skips it for the rest of the cycle, where waiting
/// cannot help.
pub fn fail(container: &mut Container, error: &str, park: bool, retry_at: Timestamp) {
    container.failures = container.failures.saturating_add(1);
    if park {
        container.failures = container.failures.max(PARK_AFTER);
    }
    container.retry_at = Some(retry_at);
    container.last_error = Some(error.to_owned());
}

/// Returns this cycle's removals, done and in flight, for the circuit breaker.
pub fn burden(document: &Document, at: usize) -> Burden {
    let in_flight = |c: &Container| c.pages.iter().map(|page| page.due).sum::<u64>();
    // A container that has not started still has the counters of the last cycle.
    let removed = |c: &Container| match c.status {
        Status::Init => 0,
        _ => c.tally.removed().saturating_add(in_flight(c)),
    };
    let container = document.containers.get(at);
    Burden {
        cycle_removed: document.containers.iter().map(removed).sum(),
        container_removed: container.map_or(0, removed),
        container_seen: container.map_or(0, |c| match c.status {
            Status::Init => 0,
            _ => c.tally.seen.saturating_add(in_flight(c)),
        }),
    }
}

/// A closed cycle.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClosedCycle {
    /// Number of the cycle.
    pub cycle: u64,
    /// Blobs removed in the cycle by all workers.
    pub purged: u64,
    /// Containers that the cycle skipped, each with its last error.
    pub parked: Vec<(String, String)>,
}

/// Closes the cycle (S23): every container that is not off starts anew at the next mark.
pub fn close(document: &mut Document, now: Timestamp, next_due: Timestamp) -> ClosedCycle {
    let mut closed = ClosedCycle {
        cycle: document.cycle,
        ..ClosedCycle::default()
    };
    for container in &mut document.containers {
        if container.status == Status::Off {
            container.pages.clear();
            continue;
        }
        if container.status != Status::Init {
            closed.purged = closed.purged.saturating_add(container.tally.removed());
        }
        if is_parked(container, now) {
            let error = container.last_error.clone().unwrap_or_default();
            closed.parked.push((container.name.clone(), error));
        }
        container.status = Status::Init;
        container.token = String::new();
        container.pages.clear();
    }
    document.timestamp = now.iso_s();
    document.next_due = Some(next_due);
    document.purged = closed.purged;
    document.cycle = document.cycle.saturating_add(1);
    closed
}

/// Extends the deadline of a page. Returns `false` if this claim no longer owns it.
pub fn extend(document: &mut Document, id: &str, fence: u64, now: Timestamp, by: Duration) -> bool {
    let Some((at, page)) = find_claim(document, id, fence) else {
        return false;
    };
    document.containers[at].pages[page].deadline = Some(now.plus(by));
    true
}
