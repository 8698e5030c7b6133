//! Runs commits in order, each on the published state plus the earlier writes of its group.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use bytes::Bytes;
use smalt_protocol::time::TICKS_PER_SECOND;
use smalt_protocol::{StorageError, Timestamp};
use tokio::runtime::Handle;

use super::config::Mode;
use super::error::{StoreError, StoreResult};
use super::extents::{Reservation, Segment};
use super::home::Purpose;
use super::keys;
use super::shared::Shared;
use super::stamp;
use super::view::{Over, Stamp, Transaction, VALUE_BYTES_MAX, View, Visit, Writes};
use crate::clock::Clock;

/// Fewest answers that a task of the runtime sends; spawning it costs about as much as waking so
/// many.
const ANSWERED_THERE_MIN: usize = 4;

/// A commit that waits for its turn and then for its answer.
pub(super) trait Work: Send {
    /// Returns the time of the call if the committer's thread cannot see the caller's clock.
    fn asked(&self) -> Option<Timestamp>;

    /// Returns the runtime on which the caller waits, if known.
    fn runtime(&self) -> Option<&Handle>;

    /// Returns the purpose, which decides whether the commit may run when there is little room.
    fn purpose(&self) -> Purpose;

    /// Runs the operation and keeps its result for the answer. Returns `None` when it refused.
    fn run(&mut self, below: &dyn View, stamp: &Stamp) -> Option<(Writes, Vec<Reservation>)>;

    /// Answers with the result of `run`, or with the group's error.
    fn answer(self: Box<Self>, group: Result<(), StoreError>);
}

/// A job and the receiver of its result.
pub(super) struct Commit<T, J, A> {
    asked: Option<Timestamp>,
    purpose: Purpose,
    runtime: Option<Handle>,
    job: Option<J>,
    result: Option<Result<T, StorageError>>,
    answer: A,
}

impl<T, J, A> Commit<T, J, A>
where
    J: FnOnce(&mut Transaction<'_>, &Stamp) -> Result<T, StorageError> + Send,
    A: FnOnce(Result<T, StorageError>) + Send,
    T: Send,
{
    pub(super) fn new(asked: Option<Timestamp>, job: J, answer: A) -> Self {
        Commit {
            asked,
            purpose: Purpose::Grows,
            runtime: None,
            job: Some(job),
            result: None,
            answer,
        }
    }

    pub(super) fn meant_for(mut self, purpose: Purpose) -> Self {
        self.purpose = purpose;
        self
    }

    /// Sets the runtime on which the caller waits for the answer.
    pub(super) fn awaited_on(mut self, runtime: Option<Handle>) -> Self {
        self.runtime = runtime;
        self
    }
}

impl<T, J, A> Work for Commit<T, J, A>
where
    J: FnOnce(&mut Transaction<'_>, &Stamp) -> Result<T, StorageError> + Send,
    A: FnOnce(Result<T, StorageError>) + Send,
    T: Send,
{
    fn asked(&self) -> Option<Timestamp> {
        self.asked
    }

    fn purpose(&self) -> Purpose {
        self.purpose
    }

    fn runtime(&self) -> Option<&Handle> {
        self.runtime.as_ref()
    }

    fn run(&mut self, below: &dyn View, stamp: &Stamp) -> Option<(Writes, Vec<Reservation>)> {
        let job = self.job.take()?;
        let mut tx = Transaction::new(below);
        // A panic in an operation must not end the committer: its transaction is dropped.
        let result = catch_unwind(AssertUnwindSafe(|| job(&mut tx, stamp)))
            .unwrap_or_else(|_| Err(StorageError::internal("the operation panicked")));
        let (writes, held) = tx.into_parts();
        let result = result.and_then(|value| check_sizes(&writes).map(|()| value));
        let done = result.is_ok();
        self.result = Some(result);
        done.then_some((writes, held))
    }

    fn answer(self: Box<Self>, group: Result<(), StoreError>) {
        let result = match (group, self.result) {
            (Ok(()), Some(result)) => result,
            (Ok(()), None) => Err(StoreError::Closed.into()),
            (Err(error), _) => Err(error.into()),
        };
        (self.answer)(result);
    }
}

/// The pending answers of a group; dropping it sends them.
struct Answers {
    group: Vec<Box<dyn Work>>,
    outcome: Result<(), StoreError>,
}

impl Drop for Answers {
    fn drop(&mut self) {
        for work in self.group.drain(..) {
            work.answer(self.outcome.clone());
        }
    }
}

/// Answers a group. On the committer's thread each answer would be a system call that wakes a
/// thread of the runtime. When many callers wait on one runtime, a task on it answers them instead.
/// A runtime that is shutting down drops the task, which answers them as well.
pub(super) fn answer_all(group: Vec<Box<dyn Work>>, outcome: Result<(), StoreError>) {
    let runtime = match group.first().and_then(|work| work.runtime()) {
        Some(runtime) if group.len() >= ANSWERED_THERE_MIN => runtime.clone(),
        _ => return drop(Answers { group, outcome }),
    };
    let (there, group) = group
        .into_iter()
        .partition(|work| work.runtime().map(Handle::id) == Some(runtime.id()));
    let there = Answers {
        group: there,
        outcome: outcome.clone(),
    };
    runtime.spawn(async move { drop(there) });
    drop(Answers { group, outcome });
}

pub(super) fn check_sizes(writes: &Writes) -> Result<(), StorageError> {
    let largest = writes.values().flatten().map(Bytes::len).max();
    match largest {
        Some(bytes) if bytes > VALUE_BYTES_MAX => Err(StorageError::internal(format!(
            "a value of {bytes} bytes is too large for a record and belongs in an extent"
        ))),
        _ => Ok(()),
    }
}

/// Assigns the stamps. Time never goes back, whatever the clock does.
///
/// When a crash can lose the last commits, it can also lose their ticks, from which ETags and ids
/// come. So the ticks of some time ahead are reserved, and the reservation is written before any of
/// them is used. The next opening continues after them.
#[derive(Debug)]
pub(super) struct Stamps {
    clock: Clock,
    last: Stamp,
    /// The last reserved tick; `None` in a mode without reservations.
    aside: Option<Timestamp>,
}

/// Number of ticks reserved at once. After a crash, snapshots are named by times up to this far
/// ahead; and a store that is never idle syncs once in this time.
const TICKS_ASIDE: u64 = TICKS_PER_SECOND;

impl Stamps {
    pub(super) fn new(shared: &Shared, last: Stamp) -> Self {
        Stamps {
            clock: shared.clock.clone(),
            last,
            aside: (shared.mode == Mode::Fast).then_some(last.tick),
        }
    }

    /// Makes a group persist the last reserved tick instead of its own. Returns whether it reserves
    /// new ones.
    pub(super) fn set_aside(&mut self, writes: &mut Writes) -> bool {
        let Some(aside) = &mut self.aside else {
            return false;
        };
        let Some(kept) = writes.get_mut(keys::STAMP.as_slice()) else {
            return false;
        };
        let is_short = self.last.tick > *aside;
        if is_short {
            *aside = self.last.tick.plus_ticks(TICKS_ASIDE);
        }
        *kept = Some(stamp::encode(Stamp {
            tick: *aside,
            ..self.last
        }));
        is_short
    }

    /// Reserves ticks again with the next group, after a reservation may not have been written.
    pub(super) fn forget_aside(&mut self) {
        self.aside = self.aside.map(|_| Timestamp::from_ticks(0));
    }

    pub(super) fn last(&self) -> Stamp {
        self.last
    }

    /// Returns a stamp at the clock's time, which may be before the last one; its tick is not.
    pub(super) fn rebased(&mut self) -> Stamp {
        self.last.now = self.clock.now();
        self.next(None)
    }

    pub(super) fn next(&mut self, asked: Option<Timestamp>) -> Stamp {
        let now = asked.unwrap_or_else(|| self.clock.now()).max(self.last.now);
        let after = Timestamp::from_ticks(self.last.tick.ticks() + Stamp::TICKS);
        self.last = Stamp {
            now,
            tick: now.max(after),
        };
        self.last
    }
}

/// The results of a group of commits so far.
pub(super) struct Group<'a> {
    below: &'a dyn View,
    pub(super) writes: Writes,
    pub(super) held: Vec<Reservation>,
}

impl<'a> Group<'a> {
    pub(super) fn new(below: &'a dyn View) -> Self {
        Group {
            below,
            writes: Writes::new(),
            held: Vec::new(),
        }
    }

    /// Runs a commit and keeps its writes if it succeeds.
    pub(super) fn run(&mut self, work: &mut dyn Work, stamp: &Stamp) {
        if let Some((writes, held)) = work.run(self, stamp) {
            self.held.extend(held);
            if !writes.is_empty() {
                self.writes.extend(writes);
                self.writes
                    .insert(keys::STAMP.to_vec(), Some(stamp::encode(*stamp)));
            }
        }
    }
}

impl View for Group<'_> {
    fn get(&self, key: &[u8]) -> StoreResult<Option<Bytes>> {
        Over::new(self.below, &self.writes).get(key)
    }

    fn scan(&self, from: &[u8], to: &[u8], visit: &mut Visit<'_>) -> StoreResult<()> {
        Over::new(self.below, &self.writes).scan(from, to, visit)
    }

    fn pin(&self, segment: u64) -> Option<Arc<Segment>> {
        let mut own = self.held.iter().map(Reservation::segment);
        own.find(|held| held.number() == segment)
            .cloned()
            .or_else(|| self.below.pin(segment))
    }
}
