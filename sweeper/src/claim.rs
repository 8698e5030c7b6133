//! One step on the state document: choose, list, hand out, write back.
//!
//! A page is claimed only once the document that lists it has been written; before that, none of
//! its blobs is changed.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use smalt_protocol::Timestamp;
use smalt_sleeve::port::{BlobItem, ErrorKind, PortError};
use smalt_worker::budget::next_day;

use crate::accounts::Place;
use crate::decide::Decision;
use crate::destination::SweptPlace;
use crate::error::SweepError;
use crate::listing::{self, ListedRange};
use crate::outcome::Outcome;
use crate::paced::Paced;
use crate::plan::CALLS_PER_PAGE;
use crate::report::{self, BlobRecord, GUARD_TRIPPED};
use crate::schedule;
use crate::scope;
use crate::shared::Core;
use crate::state::ledger::{self, Choice, Claimant, ClosedCycle, PAGE_ATTEMPTS_MAX};
use crate::state::{Container, Document, Page, Tally};
use crate::store::{self, Patience, Session};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Goal {
    /// Sweeps one cycle after another.
    Run,
    /// Sweeps the next cycle at once; its number is known after the first read.
    Once(Option<u64>),
}

pub(crate) enum Step {
    Work(Box<ClaimedPage>),
    /// The step is done; there may be more to do at once.
    Again,
    /// Another worker wrote in between; try again soon.
    Lost,
    /// There is nothing to do for this long.
    Wait(Duration),
    /// No cycle is due for this long.
    Idle(Duration),
    /// The day's budget does not allow another page before this time.
    Spent(Timestamp),
    /// This worker closed the cycle, which had this many containers.
    Closed(ClosedCycle, usize),
    /// Another worker closed the requested cycle.
    Overtaken,
}

/// A claimed page with the actions for its blobs.
pub(crate) struct ClaimedPage {
    pub(crate) page: Page,
    pub(crate) label: String,
    pub(crate) place: Place,
    pub(crate) swept: Vec<SweptPlace>,
    pub(crate) kept: Kept,
    pub(crate) actions: Vec<(BlobItem, Decision)>,
}

impl ClaimedPage {
    pub(crate) fn source<'a>(&'a self, core: &'a Core) -> Paced<'a> {
        core.paced(self.place.storage.as_ref(), &self.page.id)
    }
}

/// Blobs of a page that stay.
#[derive(Default)]
pub(crate) struct Kept {
    pub(crate) tally: Tally,
    pub(crate) outcomes: BTreeMap<Outcome, u64>,
    pub(crate) records: Vec<BlobRecord>,
}

impl Kept {
    /// Counts and logs the decisions. Called only once the page is settled, because a page that is
    /// listed again decides again.
    pub(crate) fn note(&self, core: &Core, page: &str, label: &str) {
        let mut report = crate::calls::lock(&core.report);
        report.page(label, &self.outcomes);
        for record in &self.records {
            report.note_failure(record);
            record.log(page, None);
        }
    }
}

/// The result of a page, to be written to the state document.
#[derive(Clone, Debug)]
pub(crate) struct Completion {
    pub(crate) id: String,
    pub(crate) fence: u64,
    pub(crate) tally: Tally,
    /// Whether every blob of the page has its outcome.
    pub(crate) finished: bool,
    /// Whether the service denied access to every blob.
    pub(crate) denied: bool,
}

/// Takes one step. Clears `completion` once it is written.
pub(crate) async fn step(
    core: &Core,
    completion: &mut Option<Completion>,
    goal: &mut Goal,
) -> Result<Step, SweepError> {
    let patience = match goal {
        Goal::Run => Patience::UntilStop,
        Goal::Once(_) => Patience::Limited,
    };
    let mut session = store::open(core, patience).await?;
    let result = match agreed(core, &session.document) {
        Ok(()) => step_in(core, &mut session, completion, goal).await,
        Err(error) => Err(error),
    };
    session.close().await;
    result
}

/// Compares the configured containers with the document once, before any work. Later changes to the
/// document are intentional.
fn agreed(core: &Core, document: &Document) -> Result<(), SweepError> {
    if !core.agreed.load(Ordering::Relaxed) {
        scope::agree(&core.config, &core.accounts, document)?;
        core.agreed.store(true, Ordering::Relaxed);
    }
    Ok(())
}

/// Writes only a completion, before waiting and when stopping.
pub(crate) async fn settle_alone(
    core: &Core,
    completion: &mut Option<Completion>,
) -> Result<(), SweepError> {
    while completion.is_some() {
        let mut session = store::open(core, Patience::Unlimited).await?;
        let mut document = session.document.clone();
        ledger::stamp(&mut document, &core.worker);
        settle(core, &mut document, completion.as_ref());
        let written = session.commit(document).await;
        session.close().await;
        if written? {
            *completion = None;
        }
    }
    Ok(())
}

async fn step_in(
    core: &Core,
    session: &mut Session<'_>,
    completion: &mut Option<Completion>,
    goal: &mut Goal,
) -> Result<Step, SweepError> {
    let now = core.now();
    let mut document = session.document.clone();
    ledger::stamp(&mut document, &core.worker);
    settle(core, &mut document, completion.as_ref());
    let force = match goal {
        Goal::Run => false,
        Goal::Once(cycle) => *cycle.get_or_insert(document.cycle) == document.cycle,
    };
    let overtaken = matches!(goal, Goal::Once(_)) && !force;
    if force && ledger::is_idle(&document) && document.next_due.is_some_and(|due| due > now) {
        start_anew(&mut document);
    }
    let change = match ledger::choose(&document, now, force) {
        _ if overtaken => Change::None(Step::Overtaken),
        Choice::Idle { until } => Change::None(Step::Idle(until.since(now))),
        Choice::Wait { until } => Change::None(Step::Wait(until.since(now))),
        Choice::Reclaim { .. } | Choice::List { .. } if core.exceeds_budget(CALLS_PER_PAGE) => {
            Change::None(Step::Spent(next_day(now)))
        }
        Choice::Close => {
            let next = schedule::next_mark(&core.config.schedule, document.next_due, now);
            let closed = ledger::close(&mut document, now, next);
            Change::Some(Step::Closed(closed, document.containers.len()))
        }
        Choice::Reclaim { container, page } => {
            claim(core, session, &mut document, (container, Some(page))).await
        }
        Choice::List { container } => claim(core, session, &mut document, (container, None)).await,
    };
    if completion.is_none()
        && let Change::None(step) = change
    {
        return Ok(step);
    }
    if !session.commit(document).await? {
        return Ok(Step::Lost);
    }
    *completion = None;
    Ok(change.written(core))
}

/// Makes the cycle due at once for the whole fleet and resets all failures, because an operator who
/// requests a cycle has presumably fixed their cause. This is written to the document, so that a
/// container that fails again is not retried forever.
fn start_anew(document: &mut Document) {
    document.next_due = None;
    for container in &mut document.containers {
        container.failures = 0;
        container.retry_at = None;
    }
}

/// Applies a completion to the document.
fn settle(core: &Core, document: &mut Document, completion: Option<&Completion>) {
    let Some(completion) = completion else { return };
    let (id, fence) = (completion.id.as_str(), completion.fence);
    let now = core.now();
    if completion.denied
        && let Some((at, _)) = ledger::find_claim(document, id, fence)
    {
        let container = &mut document.containers[at];
        fail(core, container, report::DENIED, true, now);
    }
    if !completion.finished {
        ledger::give_back(document, id, fence, &completion.tally, now);
    } else if !ledger::complete(document, id, fence, &completion.tally) {
        tracing::warn!(
            page = id,
            "the page was reclaimed by another worker before it was completed"
        );
    }
}

fn fail(core: &Core, container: &mut Container, error: &str, park: bool, now: Timestamp) {
    let least = if park { ledger::PARK_AFTER } else { 0 };
    let failures = container.failures.saturating_add(1).max(least);
    let delay = schedule::container_backoff(failures, core.entropy.fraction());
    ledger::fail(container, error, park, now.plus(delay));
    tracing::warn!(
        container = container.name,
        error,
        failures,
        delay_s = delay.as_secs(),
        "container failed; continuing with the others"
    );
}

/// A change of the document, with the step that follows once it is written.
enum Change {
    /// Only the completion changes the document.
    None(Step),
    /// The document changed, but no page was claimed.
    Some(Step),
    /// A page was listed and all of its blobs stay.
    Kept(Kept, String),
    /// A page was claimed.
    Page(Box<ClaimedPage>),
}

impl Change {
    fn written(self, core: &Core) -> Step {
        match self {
            Change::None(step) | Change::Some(step) => step,
            Change::Kept(kept, label) => {
                kept.note(core, "", &label);
                Step::Again
            }
            Change::Page(claimed) => {
                let page = &claimed.page;
                tracing::info!(
                    op = "claim",
                    page = page.id,
                    due = page.due,
                    attempt = page.attempt,
                    "page claimed"
                );
                Step::Work(claimed)
            }
        }
    }
}

/// Lists a page of a container and claims it in the document, or records the failure there. The
/// second part of `at` is the index of an expired page to reclaim.
async fn claim(
    core: &Core,
    session: &Session<'_>,
    document: &mut Document,
    at: (usize, Option<usize>),
) -> Change {
    let again = Change::Some(Step::Again);
    let element = document.containers[at.0].clone();
    let reclaimed = at.1.and_then(|page| element.pages.get(page)).cloned();
    if let Some(page) = reclaimed
        .as_ref()
        .filter(|p| p.attempt >= PAGE_ATTEMPTS_MAX)
    {
        let container = &mut document.containers[at.0];
        container.pages.retain(|p| p.id != page.id);
        fail(core, container, "PageGivenUp", true, core.now());
        return again;
    }
    let swept = core.accounts.swept(document);
    let place = match core.accounts.place(&element) {
        Ok(place) => place,
        Err(reason) => {
            let container = &mut document.containers[at.0];
            tracing::warn!(
                container = element.name,
                reason,
                "container cannot be opened"
            );
            fail(core, container, "NotConfigured", true, core.now());
            return again;
        }
    };
    let listing = listing::list(core, &place, &element, reclaimed.as_ref(), &swept);
    let found = match tokio::time::timeout(session.time_left(), listing).await {
        Ok(Ok(found)) => found,
        Ok(Err(error)) => {
            note_list_failure(core, &mut document.containers[at.0], &error);
            return again;
        }
        Err(_) => {
            let container = &mut document.containers[at.0];
            fail(core, container, "ListTimedOut", false, core.now());
            return again;
        }
    };
    if guarded(core, document, at, &found) {
        return again;
    }
    let now = core.now();
    let claimant = Claimant {
        worker: &core.worker,
        now,
        deadline: now.plus(core.config.page_deadline),
    };
    let page = match at.1 {
        None => ledger::hand_out(document, at.0, &found.listed, &claimant),
        Some(page) => ledger::hand_out_again(document, (at.0, page), &found.listed, &claimant),
    };
    match page {
        None => Change::Kept(found.kept, element.name),
        Some(page) => Change::Page(Box::new(ClaimedPage {
            page,
            label: element.name,
            place,
            swept,
            kept: found.kept,
            actions: found.actions,
        })),
    }
}

/// Returns whether the circuit breaker stops this container for the rest of the cycle.
fn guarded(
    core: &Core,
    document: &mut Document,
    at: (usize, Option<usize>),
    found: &ListedRange,
) -> bool {
    // A reclaimed page was counted at its first claim.
    let burden = ledger::burden(document, at.0);
    let seen = found.listed.kept.seen;
    let trip = core.config.guard.judge(burden, seen, found.listed.due);
    let Some(trip) = trip.filter(|_| at.1.is_none()) else {
        return false;
    };
    let now = core.now();
    let until = schedule::next_mark(&core.config.schedule, document.next_due, now);
    let container = &mut document.containers[at.0];
    tracing::error!(
        container = container.name,
        due = found.listed.due,
        removed = burden.cycle_removed,
        "the circuit breaker stopped this container until the next cycle: {trip}"
    );
    ledger::fail(container, GUARD_TRIPPED, true, until);
    true
}

fn note_list_failure(core: &Core, container: &mut Container, error: &PortError) {
    // D4: errors that waiting within the cycle cannot fix.
    let park = matches!(
        error.kind,
        ErrorKind::Denied | ErrorKind::NotFound | ErrorKind::Invalid | ErrorKind::Refused
    );
    if error.kind == ErrorKind::NotFound {
        // The pages of a missing container have nothing left to do.
        container.pages.clear();
    }
    tracing::warn!(container = container.name, %error, "listing failed");
    fail(
        core,
        container,
        &format!("{:?}", error.kind),
        park,
        core.now(),
    );
}
