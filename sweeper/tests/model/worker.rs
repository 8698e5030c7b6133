//! A worker: one call after another, as the executors make them.

use std::sync::Arc;
use std::time::Duration;

use smalt_protocol::Timestamp;
use smalt_sleeve::port::{BlobKind, BlobProperties, LeaseState, Metadata, Tag};
use smalt_sweeper::decide::{Decision, Policy, Scene, decide};
use smalt_sweeper::provenance::{self, Origin};
use smalt_sweeper::state::ledger::{self, Choice, Claimant, Listed};
use smalt_sweeper::state::{Document, Page, Tally};

use crate::scene::{Answer, CopyState, Doc, Mistake, Small, Version, World};
use crate::service::{Refused, Wanted};

/// Claims that a worker makes before it ends.
const CLAIMS: u8 = 1;
/// Length of a tick.
const TICK_S: u64 = 60;
/// How far the wrong clock is ahead, in ticks.
const AHEAD: u8 = 1;
/// Where the blob is.
const URL: &str = "http://service/account/c/b";

fn time(tick: u8) -> Timestamp {
    Timestamp::from_unix_s(1_800_000_000 + u64::from(tick) * TICK_S)
}

/// A worker and where it stands.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Worker {
    name: &'static str,
    claims: u8,
    /// A page that was worked off and is to be settled: id, fence.
    completion: Option<(String, u64)>,
    pub(crate) phase: Phase,
    /// What became of the blob that it had last.
    pub(crate) last: Option<Outcome>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Outcome {
    Deleted,
    Moved,
    Gone,
    Changed,
    CopyFailed,
    /// The page was handed out to somebody else in between.
    Overtaken,
}

/// What comes next.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Phase {
    /// Read the state document and list the page that is to be handed out. Between the two
    /// anything may happen; but it could as well have happened before both or after both.
    Read,
    /// Write the document.
    Write {
        document: Doc,
        etag: u8,
        then: Option<Claim>,
    },
    /// The answer to the write is lost: look for the own fence.
    LookForFence { document: Doc, then: Option<Claim> },
    /// Work on the claimed page.
    Work(Claim, Task),
    /// It does no more.
    Ended,
}

/// A claimed page with the blob that is to go.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Claim {
    id: String,
    fence: u64,
    seen: Version,
    looks: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Task {
    /// Copy to this name.
    Copy {
        slot: u8,
        wanted: Wanted,
        broken: u8,
    },
    /// Look at the copy; `refused` when the service refused to make it.
    Look {
        slot: u8,
        wanted: Wanted,
        broken: u8,
        refused: bool,
    },
    /// Delete the source; `moved` after its copy was verified.
    Delete { moved: bool },
    /// Look at the source once more, for it has changed.
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

    /// Its blob is done with: the page is to be settled.
    fn done(&mut self, claim: &Claim, outcome: Outcome) {
        self.last = Some(outcome);
        self.completion = Some((claim.id.clone(), claim.fence));
        self.phase = Phase::Read;
    }
}

/// What may become of a worker's next call. A reading whose answer is lost is as good as one that
/// was made later.
pub(crate) fn actions(worker: &Worker, may_lose: bool) -> &'static [Answer] {
    let writes = match &worker.phase {
        Phase::Ended => return &[],
        Phase::Write { .. } => true,
        Phase::Work(_, task) => matches!(task, Task::Copy { .. } | Task::Delete { .. }),
        _ => false,
    };
    match writes && may_lose {
        true => &[Answer::Arrives, Answer::LostAfter, Answer::LostBefore],
        false => &[Answer::Arrives],
    }
}

/// The blob as a listing shows it.
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

/// The first thing to do with this version; `None` when it stays.
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
    /// The next call of a worker. `None` when it would only wait.
    pub(crate) fn step(&mut self, small: &Small, at: usize, answer: Answer) -> Option<()> {
        if answer != Answer::Arrives {
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

    /// `claim::step_in`: settle, choose.
    fn read(&self, small: &Small, worker: &mut Worker) -> Option<()> {
        let mut document = Document::clone(&self.document.0);
        let now = time(self.now);
        ledger::stamp(&mut document, worker.name);
        if let Some((id, fence)) = &worker.completion
            && !ledger::complete(&mut document, id, *fence, &Tally::default())
        {
            worker.last = Some(Outcome::Overtaken);
        }
        let write = |document| Phase::Write {
            document: Doc(Arc::new(document)),
            etag: self.document_etag,
            then: None,
        };
        if worker.claims == 0 {
            // `claim::settle_alone`.
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

    /// `listing::list` and `claim::hand_out`.
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

    /// `store::Session::commit`.
    fn write(
        &mut self,
        small: &Small,
        worker: &mut Worker,
        (document, etag): (Doc, u8),
        then: Option<Claim>,
        answer: Answer,
    ) {
        let result = match answer {
            Answer::LostBefore => Ok(()),
            _ => self.write_state(small, &document.0, etag),
        };
        if answer == Answer::Arrives {
            written(worker, then, result.is_ok());
        } else {
            worker.phase = Phase::LookForFence { document, then };
        }
    }

    /// `work::handle` and `mover::move_blob`.
    fn work(
        &mut self,
        small: &Small,
        worker: &mut Worker,
        mut claim: Claim,
        task: Task,
        answer: Answer,
    ) -> Option<()> {
        let next = match task {
            Task::Look { .. } => self.look(small, &claim, task)?,
            Task::LookAgain => self.look_again(small, &mut claim),
            Task::Copy { .. } | Task::Delete { .. } => {
                let result = match answer {
                    Answer::LostBefore => Ok(()),
                    _ => self.call(small, &claim.seen, task),
                };
                match answer {
                    Answer::Arrives => after_call(&claim, task, result),
                    // It is made again; one that is given up is one that is never made again.
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

    /// `mover::look`: the copy is recognised by what it says of its origin, and compared.
    fn look(&self, small: &Small, claim: &Claim, task: Task) -> Option<Result<Task, Outcome>> {
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
                Outcome::Changed
            } else {
                Outcome::CopyFailed
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
                true => Some(Err(Outcome::Changed)),
                false => again(claim.seen.etag, Wanted::Absent, broken),
            };
        }
        match there.state {
            CopyState::Pending | CopyState::Failed if small.makes(Mistake::DeletesUnverified) => {
                Some(Ok(Task::Delete { moved: true }))
            }
            // It looks again, as long as that takes.
            CopyState::Pending => None,
            CopyState::Failed if stands_in_no_way => Some(Err(Outcome::Changed)),
            CopyState::Failed if broken > 0 && !refused => Some(Err(Outcome::CopyFailed)),
            CopyState::Failed => {
                again(slot, Wanted::Match(there.etag), broken + u8::from(!refused))
            }
            CopyState::Whole if there.content == claim.seen.content => {
                Some(Ok(Task::Delete { moved: true }))
            }
            CopyState::Whole => Some(Err(Outcome::CopyFailed)),
        }
    }

    /// `work::look_again`.
    fn look_again(&self, small: &Small, claim: &mut Claim) -> Result<Task, Outcome> {
        let seen = self.blob.ok_or(Outcome::Gone)?;
        claim.seen = seen;
        claim.looks += 1;
        task(small, &seen, self.now).ok_or(Outcome::Changed)
    }
}

/// The document was written, or was not.
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

/// `store::arrived`.
fn arrived(written: &Document, found: &Document, worker: &str) -> bool {
    let same = found.fence == written.fence && found.writer == worker;
    let claimed = |page: &Page| page.fence == written.fence && page.owner == worker;
    let built_upon = found.containers.iter().flat_map(|c| &c.pages).any(claimed);
    same || (found.fence > written.fence && built_upon)
}

/// What follows on the answer to a copy or a delete.
fn after_call(claim: &Claim, task: Task, result: Result<(), Refused>) -> Result<Task, Outcome> {
    match (task, result) {
        (Task::Copy { .. }, Err(Refused::NotFound)) => Err(Outcome::Gone),
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
        (Task::Delete { moved: true }, Ok(()) | Err(Refused::NotFound)) => Err(Outcome::Moved),
        (Task::Delete { .. }, Ok(())) => Err(Outcome::Deleted),
        (Task::Delete { .. }, Err(Refused::NotFound)) => Err(Outcome::Gone),
        (_, Err(Refused::ConditionNotMet)) if claim.looks == 0 => Ok(Task::LookAgain),
        _ => Err(Outcome::Changed),
    }
}
