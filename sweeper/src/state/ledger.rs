//! Steps of the state document: choosing, handing out, completing, closing. Pure functions; the
//! executor reads the document, applies steps, and writes it back on condition of its ETag.

use std::time::Duration;

use smalt_protocol::Timestamp;

use super::{Container, Document, PAGES_MAX, Page, Status, Tally};
use crate::guard::Burden;

/// From this many failures in a row a cycle no longer waits for a container (SL3).
pub const PARK_AFTER: u32 = 3;
/// A page that was claimed this often without completion is given up for the cycle.
pub const PAGE_ATTEMPTS_MAX: u32 = 5;

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The page of a worker that did not finish: list the same range again.
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
    /// Others still work, or a container waits after a failure: look again at this time.
    Wait {
        /// The earliest change that is foreseeable.
        until: Timestamp,
    },
    /// Every page of every container is completed: the cycle is over.
    Close,
    /// The next cycle is not due.
    Idle {
        /// When it is.
        until: Timestamp,
    },
}

/// Chooses. `force` starts a cycle that is not due yet.
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

/// Whether no cycle is under way.
pub fn is_idle(document: &Document) -> bool {
    document
        .containers
        .iter()
        .filter(|c| c.status != Status::Off)
        .all(|c| c.status == Status::Init && c.pages.is_empty())
}

/// Whether the cycle goes on without this container for now.
pub fn is_parked(container: &Container, now: Timestamp) -> bool {
    container.failures >= PARK_AFTER && is_waiting(container, now)
}

/// Whether nothing of it is left to do in this cycle, or the cycle goes on without it.
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

/// Round-robin: the container that was served longest ago, in the document's order (DS12, DS18).
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

/// Who claims, and until when.
#[derive(Clone, Debug)]
pub struct Claimant<'a> {
    /// Worker id.
    pub worker: &'a str,
    /// The service's time.
    pub now: Timestamp,
    /// When others may take the page.
    pub deadline: Timestamp,
}

/// What a listing brought.
#[derive(Clone, Debug, Default)]
pub struct Listed {
    /// Marker of the next page.
    pub end: Option<String>,
    /// First and last name.
    pub names: Option<(String, String)>,
    /// Counters of what stays, `seen` for all.
    pub kept: Tally,
    /// How many are to go.
    pub due: u64,
}

/// Raises the fence for the write that is being prepared.
pub fn stamp(document: &mut Document, worker: &str) -> u64 {
    document.fence = document.fence.saturating_add(1);
    document.writer = worker.to_owned();
    document.fence
}

/// Hands out the listed page (S22). A page with nothing to remove is complete at once: the answer
/// is `None`. The document must be stamped before.
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

/// Claims an expired page again, after its range was listed anew.
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

/// The place of a page that this claim still owns.
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

/// Completes a page and counts what was done. `false` when somebody else owns it by now: then their
/// completion counts, and this one is idempotent.
pub fn complete(document: &mut Document, id: &str, fence: u64, tally: &Tally) -> bool {
    let Some((at, page)) = find_claim(document, id, fence) else {
        return false;
    };
    let container = &mut document.containers[at];
    container.pages.remove(page);
    container.tally.add(tally);
    true
}

/// Gives a page back unfinished: others may take it at once. What was done of it counts.
pub fn give_back(document: &mut Document, id: &str, fence: u64, done: &Tally, now: Timestamp) {
    if let Some((at, page)) = find_claim(document, id, fence) {
        let container = &mut document.containers[at];
        container.tally.add(done);
        let page = &mut container.pages[page];
        page.deadline = Some(now);
        // Stopping is no failure of the page.
        page.attempt = page.attempt.saturating_sub(1);
    }
}

/// Notes a failure of a container. `park` when waiting cannot help within the cycle.
pub fn fail(container: &mut Container, error: &str, park: bool, retry_at: Timestamp) {
    container.failures = container.failures.saturating_add(1);
    if park {
        container.failures = container.failures.max(PARK_AFTER);
    }
    container.retry_at = Some(retry_at);
    container.last_error = Some(error.to_owned());
}

/// What the guard judges by: this cycle's removals, done and in flight.
pub fn burden(document: &Document, at: usize) -> Burden {
    let in_flight = |c: &Container| c.pages.iter().map(|page| page.due).sum::<u64>();
    // Counters of a container that has not started are those of the last cycle.
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

/// A cycle that was closed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClosedCycle {
    /// Number of the cycle.
    pub cycle: u64,
    /// Blobs removed in it, by all workers.
    pub purged: u64,
    /// Containers that it went on without, each with its last error.
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

/// Moves the deadline of a page that is still owned. `false` when it is not.
pub fn extend(document: &mut Document, id: &str, fence: u64, now: Timestamp, by: Duration) -> bool {
    let Some((at, page)) = find_claim(document, id, fence) else {
        return false;
    };
    document.containers[at].pages[page].deadline = Some(now.plus(by));
    true
}
