//! A worker: one call after another, in the order of the executors.

use std::sync::Arc;
use std::time::Duration;

use smalt_protocol::Timestamp;
use smalt_sleeve::port::{BlobKind, BlobProperties, LeaseState, Metadata, Tag};
use smalt_sweeper::decide::{Decision, Policy, Scene, decide};
use smalt_sweeper::provenance::{self, Origin};
use smalt_sweeper::state::ledger::{self, Choice, Claimant, Listed};
use smalt_sweeper::state::{Document, Page, Tally};

use crate::scene::{CallResult, CopyState, Doc, Mistake, Small, Version, World};
use crate::service::{Refused, Wanted};

/// Number of claims that a worker makes before it ends.
const CLAIMS: u8 = 1;
const TICK_S: u64 = 60;
/// How far the wrong clock is ahead, in ticks.
const AHEAD: u8 = 1;
const URL: &str = "http://service/account/c/b";

fn time(tick: u8) -> Timestamp {
    Timestamp::from_unix_s(1_800_000_000 + u64::from(tick) * TICK_S)
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Worker {
    name: &'static str,
    claims: u8,
    /// A processed page to settle: id and fence.
    completion: Option<(String, u64)>,
    pub(crate) phase: Phase,
    /// Outcome of the last blob that it processed.
    pub(crate) last: Option<WorkerOutcome>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum WorkerOutcome {
    Deleted,
    Moved,
    Gone,
    Changed,
    CopyFailed,
    /// The page was handed out to another worker in between.
    Overtaken,
}

/// The next step of a worker.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Phase {
    /// Read the state document and list the page to hand out. Anything that happens between the two
    /// could as well happen before or after both.
    Read,
    /// Write the document.
    Write {
        document: Doc,
        etag: u8,
        then: Option<Claim>,
    },
    /// The response to the write was lost: look for its own fence.
    LookForFence {
        document: Doc,
        then: Option<Claim>,
    },
    /// Process the claimed page.
    Work(Claim, Task),
    Ended,
}

/// A claimed page with the blob to remove.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Claim {
    id: String,
    fence: u64,
    seen: Version,
    looks: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Task {
    Copy {
        slot: u8,
        wanted: Wanted,
        broken: u8,
    },
    /// Check the copy; `refused` if the service refused to start it.
    Look {
        slot: u8,
        wanted: Wanted,
        broken: u8,
        refused: bool,
    },
    /// Delete the source; `moved` if its copy was verified.
    Delete { moved: bool },
    /// Check the source again, because it has changed.
    LookAgain,
}

impl Worker {
    pub(crate) fn new(name: &'static str) -> Self {
        Worker {
            name,
            claims: CLAIMS,
            completion: None,
            phase: Phase::Read,
            last: None,
        }
    }

    /// Records the outcome of its blob; the page is then to be settled.
    fn done(&mut self, claim: &Claim, outcome: WorkerOutcome) {
        self.last = Some(outcome);
        self.completion = Some((claim.id.clone(), claim.fence));
        self.phase = Phase::Read;
    }
}

/// Returns the possible results of a worker's next call. Losing the response of a read equals
/// making the read later.
pub(crate) fn actions(worker: &Worker, may_lose: bool) -> &'static [CallResult] {
    let writes = match &worker.phase {
        Phase::Ended => return &[],
        Phase::Write { .. } => true,
        Phase::Work(_, task) => matches!(task, Task::Copy { .. } | Task::Delete { .. }),
        _ => false,
    };
    match writes && may_lose {
        true => &[
            CallResult::Arrives,
            CallResult::LostAfter,
            CallResult::LostBefore,
        ],
        false => &[CallResult::Arrives],
    }
}

/// Returns the blob as a listing shows it.
fn properties(version: &Version) -> BlobProperties {
    let mut metadata = Metadata::new();
    metadata.insert("TimeToLive".to_owned(), time(version.due).iso_s());
    if version.kept {
        metadata.insert("DeadBlobContainer".to_owned(), "dead".to_owned());
    }
    BlobProperties {
        etag: tag(version.etag),
        last_modified: time(0),
        length: 1,
        content_md5: Some(version.content.to_string()),
        content_type: None,
        metadata,
        lease: LeaseState::Unlocked,
        kind: BlobKind::Block,
        copy: None,
        access_tier: None,
        tag_count: 0,
        tags: None,
    }
}

fn tag(etag: u8) -> Tag {
    Tag(format!("\"{etag}\""))
}

fn origin(version: &Version) -> Origin {
    Origin::new(URL, &tag(version.etag))
}

/// Returns the first task for this version; `None` if it stays.
fn task(small: &Small, seen: &Version, now: u8) -> Option<Task> {
    let scene = Scene {
        account: "account",
        container: "c",
        dead_account: Some("account"),
        state: None,
        swept: &[],
    };
    let ahead = AHEAD * u8::from(small.makes(Mistake::DecidesByItsOwnClock));
    let at = time(now + ahead);
    let policy = Policy {
        allow: vec!["dead".to_owned()],
        ..Policy::default()
    };
    match decide(&policy, &scene, "b", &properties(seen), at) {
        Decision::Keep(_) => None,
        Decision::Delete { .. } => Some(Task::Delete { moved: false }),
        Decision::Move { .. } => Some(Task::Copy {
            slot: 0,
            wanted: Wanted::Absent,
            broken: 0,
        }),
    }
}

impl World {
    /// Makes the next call of a worker; `None` if it would only wait.
    pub(crate) fn step(&mut self, small: &Small, at: usize, answer: CallResult) -> Option<()> {
        if answer != CallResult::Arrives {
            self.losses -= 1;
        }
        let mut worker = self.workers[at].clone();
        match worker.phase.clone() {
            Phase::Read => self.read(small, &mut worker)?,
            Phase::Write {
                document,
                etag,
                then,
            } => self.write(small, &mut worker, (document, etag), then, answer),
            Phase::LookForFence { document, then } => {
                let arrived = arrived(&document.0, &self.document.0, worker.name);
                written(&mut worker, then, arrived);
            }
            Phase::Work(claim, task) => self.work(small, &mut worker, claim, task, answer)?,
            Phase::Ended => return None,
        }
        self.workers[at] = worker;
        Some(())
    }

    /// Models `claim::step_in`: settle, choose.
    fn read(&self, small: &Small, worker: &mut Worker) -> Option<()> {
        let mut document = Document::clone(&self.document.0);
        let now = time(self.now);
        ledger::stamp(&mut document, worker.name);
        if let Some((id, fence)) = &worker.completion
            && !ledger::complete(&mut document, id, *fence, &Tally::default())
        {
            worker.last = Some(WorkerOutcome::Overtaken);
        }
        let write = |document| Phase::Write {
            document: Doc(Arc::new(document)),
            etag: self.document_etag,
            then: None,
        };
        if worker.claims == 0 {
            // Models `claim::settle_alone`.
            worker.phase = write(document);
            return Some(());
        }
        let page = match ledger::choose(&document, now, false) {
            Choice::Idle { .. } | Choice::Wait { .. } => {
                worker.completion.as_ref()?;
                worker.phase = write(document);
                return Some(());
            }
            Choice::Close => {
                ledger::close(&mut document, now, time(self.now + 1));
                worker.phase = write(document);
                return Some(());
            }
            Choice::List { .. } => None,
            Choice::Reclaim { page, .. } => Some(page),
        };
        self.list(small, worker, document, page);
        Some(())
    }

    /// Models `listing::list` and `claim::hand_out`.
    fn list(
        &self,
        small: &Small,
        worker: &mut Worker,
        mut document: Document,
        page: Option<usize>,
    ) {
        let due = self
            .blob
            .filter(|seen| task(small, seen, self.now).is_some());
        let listed = Listed {
            end: None,
            names: self.blob.map(|_| ("b".to_owned(), "b".to_owned())),
            kept: Tally::default(),
            due: u64::from(due.is_some()),
        };
        let claimant = Claimant {
            worker: worker.name,
            now: time(self.now),
            deadline: time(self.now).plus(Duration::from_secs(TICK_S)),
        };
        let page = match page {
            None => ledger::hand_out(&mut document, 0, &listed, &claimant),
            Some(page) => ledger::hand_out_again(&mut document, (0, page), &listed, &claimant),
        };
        let claim = |page: Page| {
            Some(Claim {
                id: page.id,
                fence: page.fence,
                seen: due?,
                looks: 0,
            })
        };
        worker.phase = Phase::Write {
            document: Doc(Arc::new(document)),
            etag: self.document_etag,
            then: page.and_then(claim),
        };
    }

    /// Models `store::Session::commit`.
    fn write(
        &mut self,
        small: &Small,
        worker: &mut Worker,
        (document, etag): (Doc, u8),
        then: Option<Claim>,
        answer: CallResult,
    ) {
        let result = match answer {
            CallResult::LostBefore => Ok(()),
            _ => self.write_state(small, &document.0, etag),
        };
        if answer == CallResult::Arrives {
            written(worker, then, result.is_ok());
        } else {
            worker.phase = Phase::LookForFence { document, then };
        }
    }

    /// Models `work::handle` and `mover::move_blob`.
    fn work(
        &mut self,
        small: &Small,
        worker: &mut Worker,
        mut claim: Claim,
        task: Task,
        answer: CallResult,
    ) -> Option<()> {
        let next = match task {
            Task::Look { .. } => self.look(small, &claim, task)?,
            Task::LookAgain => self.look_again(small, &mut claim),
            Task::Copy { .. } | Task::Delete { .. } => {
                let result = match answer {
                    CallResult::LostBefore => Ok(()),
                    _ => self.call(small, &claim.seen, task),
                };
                match answer {
                    CallResult::Arrives => after_call(&claim, task, result),
                    // The call is repeated; giving up equals never repeating it.
                    _ => Ok(task),
                }
            }
        };
        match next {
            Ok(task) => worker.phase = Phase::Work(claim, task),
            Err(outcome) => worker.done(&claim, outcome),
        }
        Some(())
    }

    fn call(&mut self, small: &Small, seen: &Version, task: Task) -> Result<(), Refused> {
        match task {
            Task::Copy { slot, wanted, .. } => self.copy(seen, (slot, wanted)),
            _ => self.delete(small, seen),
        }
    }

    /// Models `mover::look`: recognizes the copy by its recorded origin and compares it.
    fn look(
        &self,
        small: &Small,
        claim: &Claim,
        task: Task,
    ) -> Option<Result<Task, WorkerOutcome>> {
        let Task::Look {
            slot,
            wanted,
            broken,
            refused,
        } = task
        else {
            return None;
        };
        let Some(there) = self.copies.get(&slot) else {
            let outcome = if refused {
                WorkerOutcome::Changed
            } else {
                WorkerOutcome::CopyFailed
            };
            return Some(Err(outcome));
        };
        let stands_in_no_way = refused && wanted == Wanted::Match(there.etag);
        let own = origin(&claim.seen);
        let source = properties(&there.of).metadata;
        let said = provenance::metadata(&source, &["TimeToLive"], &origin(&there.of), &[])?;
        let again = |slot, wanted, broken| {
            Some(Ok(Task::Copy {
                slot,
                wanted,
                broken,
            }))
        };
        if there.state == CopyState::Whole && small.makes(Mistake::TakesAnyCopy) {
            return Some(Ok(Task::Delete { moved: true }));
        }
        if own.made_earlier(&said) {
            return match stands_in_no_way {
                true => Some(Err(WorkerOutcome::Changed)),
                false => again(claim.seen.etag, Wanted::Absent, broken),
            };
        }
        match there.state {
            CopyState::Pending | CopyState::Failed if small.makes(Mistake::DeletesUnverified) => {
                Some(Ok(Task::Delete { moved: true }))
            }
            // The worker keeps checking as long as the copy is pending.
            CopyState::Pending => None,
            CopyState::Failed if stands_in_no_way => Some(Err(WorkerOutcome::Changed)),
            CopyState::Failed if broken > 0 && !refused => Some(Err(WorkerOutcome::CopyFailed)),
            CopyState::Failed => {
                again(slot, Wanted::Match(there.etag), broken + u8::from(!refused))
            }
            CopyState::Whole if there.content == claim.seen.content => {
                Some(Ok(Task::Delete { moved: true }))
            }
            CopyState::Whole => Some(Err(WorkerOutcome::CopyFailed)),
        }
    }

    /// Models `work::look_again`.
    fn look_again(&self, small: &Small, claim: &mut Claim) -> Result<Task, WorkerOutcome> {
        let seen = self.blob.ok_or(WorkerOutcome::Gone)?;
        claim.seen = seen;
        claim.looks += 1;
        task(small, &seen, self.now).ok_or(WorkerOutcome::Changed)
    }
}

/// Continues after a write of the document.
fn written(worker: &mut Worker, then: Option<Claim>, arrived: bool) {
    worker.phase = Phase::Read;
    if !arrived {
        return;
    }
    worker.completion = None;
    let Some(claim) = then else {
        if worker.claims == 0 {
            worker.phase = Phase::Ended;
        }
        return;
    };
    worker.claims -= 1;
    let task = match claim.seen.kept {
        true => Task::Copy {
            slot: 0,
            wanted: Wanted::Absent,
            broken: 0,
        },
        false => Task::Delete { moved: false },
    };
    worker.phase = Phase::Work(claim, task);
}

/// Models `store::arrived`.
fn arrived(written: &Document, found: &Document, worker: &str) -> bool {
    let same = found.fence == written.fence && found.writer == worker;
    let claimed = |page: &Page| page.fence == written.fence && page.owner == worker;
    let built_upon = found.containers.iter().flat_map(|c| &c.pages).any(claimed);
    same || (found.fence > written.fence && built_upon)
}

/// Returns the next task after the response to a copy or a delete.
fn after_call(
    claim: &Claim,
    task: Task,
    result: Result<(), Refused>,
) -> Result<Task, WorkerOutcome> {
    match (task, result) {
        (Task::Copy { .. }, Err(Refused::NotFound)) => Err(WorkerOutcome::Gone),
        (
            Task::Copy {
                slot,
                wanted,
                broken,
            },
            result,
        ) => Ok(Task::Look {
            slot,
            wanted,
            broken,
            refused: result.is_err(),
        }),
        (Task::Delete { moved: true }, Ok(()) | Err(Refused::NotFound)) => {
            Err(WorkerOutcome::Moved)
        }
        (Task::Delete { .. }, Ok(())) => Err(WorkerOutcome::Deleted),
        (Task::Delete { .. }, Err(Refused::NotFound)) => Err(WorkerOutcome::Gone),
        (_, Err(Refused::ConditionNotMet)) if claim.looks == 0 => Ok(Task::LookAgain),
        _ => Err(WorkerOutcome::Changed),
    }
}
