//! The committer: takes waiting commits in order, in groups, and publishes a group when it is
//! durable. In memory it runs inline, on disk on two threads.
//!
//! Jobs of a group run on the published state, plus the writes of the group before, which may still
//! be on its way to the disk, plus the earlier writes of their own group. Then the committer syncs
//! payloads, records the writes in the log and syncs it, publishes the group and answers every
//! commit. One thread runs the jobs of a group while the other makes the group before durable
//! ([`Line`]). If a write fails, the state on disk is unknown: the group stays unpublished and the
//! store accepts no writes until it is reopened.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

use futures_util::FutureExt as _;
use smalt_protocol::Timestamp;

use super::commit::{Group, Stamps, Work, answer_all};
use super::engine::Engine;
use super::error::{StoreError, StoreResult};
use super::extents::{Reservation, Segments};
use super::failpoint;
use super::home::{Home, Purpose};
use super::keys;
use super::points::Point;
use super::shared::{Shared, bytes_needed, gave_up, guarded};
use super::stamp;
use super::sync::Mutex;
use super::sync::mpsc::{Receiver, SyncSender};
use super::view::{Stamp, Writes};

/// Most commits in one group; limits the memory of a group and the wait of its first member.
const GROUP_COMMITS_MAX: usize = 512;

pub(super) enum Request {
    Commit(Box<dyn Work>),
    /// Write out and sync all commits.
    WriteOut(SyncSender<StoreResult<()>>),
    /// Continue from the clock's time, which is before the last commit's.
    Rebase(SyncSender<StoreResult<()>>),
    /// Continue with another state.
    Replace(Box<Next>, SyncSender<StoreResult<()>>),
    /// Make everything durable and stop.
    Close(SyncSender<StoreResult<()>>),
}

/// The state that replaces the current one.
pub(super) enum Next {
    Empty,
    Built(Built),
}

/// A state that was prepared beside the current one, and is durable if the current one is on disk.
pub(super) struct Built {
    pub(super) engine: Box<dyn Engine>,
    pub(super) reached: Stamp,
    /// The segments that it refers to, in memory.
    pub(super) segments: Segments,
    /// Reservations of its payloads, kept until it is the current state.
    pub(super) held: Vec<Reservation>,
}

type Taken = (Box<dyn Engine>, Segments, Vec<Reservation>);

impl Next {
    fn take(self, home: &Home) -> StoreResult<Taken> {
        match self {
            Next::Empty => Ok((home.next_engine()?, BTreeMap::new(), Vec::new())),
            Next::Built(mut built) => {
                home.switch(built.reached)?;
                let own = built.held.iter().map(Reservation::segment);
                let own = own.map(|segment| (segment.number(), Arc::clone(segment)));
                built.segments.extend(own);
                Ok((built.engine, built.segments, built.held))
            }
        }
    }
}

/// The writes of a group whose jobs have run.
#[derive(Default)]
pub(super) struct Ran {
    pub(super) writes: Writes,
    /// Why the group was not recorded, after a later group may have run on top of it.
    refused: OnceLock<StoreError>,
}

/// The results of a group of commits.
pub(super) struct Collected {
    pub(super) ran: Arc<Ran>,
    /// The group before, on which this one is based.
    on: Arc<Ran>,
    held: Vec<Reservation>,
    /// Estimated bytes that the engine will need.
    bytes: u64,
    /// Whether the group reserves ticks, which may only be used after the reservation is written.
    sets_ticks_aside: bool,
    /// The time of the last commit.
    reached: Timestamp,
}

/// Runs commits. A store has exactly one.
pub(super) struct Committer {
    shared: Arc<Shared>,
    stamps: Stamps,
    /// The last group, which may not be published yet.
    last: Arc<Ran>,
}

/// The committer between its two threads. Each waits for its turn to form a group and to run its
/// jobs, and then for the log; it lets the other one form the next group while it writes.
pub(super) struct Line {
    /// `None` after the end.
    turn: Mutex<Option<Turn>>,
    log: Mutex<()>,
}

struct Turn {
    committer: Committer,
    requests: Receiver<Request>,
    next: Option<Request>,
}

impl Line {
    pub(super) fn new(committer: Committer, requests: Receiver<Request>) -> Self {
        Line {
            turn: Mutex::new(Some(Turn {
                committer,
                requests,
                next: None,
            })),
            log: Mutex::new(()),
        }
    }

    /// Serves requests until a close, or until all senders are dropped.
    pub(super) fn serve(&self) {
        while self.serve_one() {}
    }

    fn serve_one(&self) -> bool {
        let mut turn = self.turn.lock();
        let Some(Turn {
            committer,
            requests,
            next,
        }) = turn.as_mut()
        else {
            return false;
        };
        let Some(request) = next.take().or_else(|| requests.recv().ok()) else {
            // All handles were dropped without a close: the engine may still lack writes.
            let _log = self.log.lock();
            if let Err(error) = committer.sync_all() {
                tracing::error!(%error, "cannot close the store cleanly");
            }
            *turn = None;
            return false;
        };
        if let Request::Commit(first) = request {
            let mut group = vec![first];
            while group.len() < GROUP_COMMITS_MAX {
                match requests.try_recv() {
                    Ok(Request::Commit(work)) => group.push(work),
                    Ok(other) => {
                        *next = Some(other);
                        break;
                    }
                    Err(_) => break,
                }
            }
            if committer.is_full() {
                let _log = self.log.lock();
                committer.run(group);
                return true;
            }
            let shared = Arc::clone(&committer.shared);
            let collected = committer.collect(&mut group);
            let log = self.log.lock();
            // Before the next group runs on top of this one.
            if let Ok(collected) = &collected {
                collected.inherit_refusal();
            }
            drop(turn);
            let settled = Committer::settle(&shared, collected).now_or_never();
            drop(log);
            let outcome = settled.unwrap_or(Err(StoreError::Closed));
            shared.stats.count_group(group.len());
            answer_all(group, outcome);
            return true;
        }
        let _log = self.log.lock();
        match request {
            Request::Commit(work) => committer.run(vec![work]),
            Request::WriteOut(answer) => drop(answer.send(committer.write_out())),
            Request::Replace(next, answer) => drop(answer.send(committer.replace(*next))),
            Request::Rebase(answer) => drop(answer.send(committer.rebase())),
            Request::Close(answer) => {
                let synced = committer.sync_all();
                *turn = None;
                drop(answer.send(synced));
                return false;
            }
        }
        true
    }
}

impl Collected {
    /// Refuses the group if the one before was refused: its jobs saw writes that do not exist.
    fn inherit_refusal(&self) {
        if let Some(refused) = self.on.refused.get() {
            self.ran.refused.get_or_init(|| refused.clone());
        }
    }
}

impl Committer {
    /// Creates a committer that continues from the last persisted stamp.
    pub(super) fn new(shared: Arc<Shared>) -> StoreResult<Self> {
        let last = shared.read(|view| stamp::read(view))?;
        shared.last_now.store(last.now.ticks(), Ordering::Release);
        let stamps = Stamps::new(&shared, last);
        Ok(Committer {
            shared,
            stamps,
            last: Arc::default(),
        })
    }

    pub(super) fn last_tick(&self) -> Timestamp {
        self.stamps.last().tick
    }

    fn write_out(&self) -> StoreResult<()> {
        guarded(|| self.shared.write_out()).inspect_err(|error| self.shared.fail(error))
    }

    fn sync_all(&self) -> StoreResult<()> {
        guarded(|| self.shared.sync_all()).inspect_err(|error| self.shared.fail(error))
    }

    /// Runs a group of commits, publishes it and answers it.
    pub(super) fn run(&mut self, group: Vec<Box<dyn Work>>) {
        // Ready at once: only a stepped store waits at its points, and it polls by itself.
        let _ = self.run_past_points(group).now_or_never();
    }

    /// Like [`Committer::run`], but waits at every point of a stepped store.
    #[cfg(any(test, feature = "schedule"))]
    pub(super) async fn run_whole(mut self, group: Vec<Box<dyn Work>>) -> Self {
        self.run_past_points(group).await;
        self
    }

    /// Returns whether there is no room for writes that add data.
    fn is_full(&self) -> bool {
        self.shared.home.is_full(self.shared.promised())
    }

    async fn run_past_points(&mut self, group: Vec<Box<dyn Work>>) {
        self.shared.points.pass(Point::Taken).await;
        let full = self.is_full().then(|| {
            // Writes that the engine has taken need no more room. An error shows in the commits.
            let _ = self.shared.turn().and_then(|()| self.shared.drain());
            self.shared.admit(0, Purpose::Grows).err()
        });
        let Some(full) = full.flatten() else {
            return self.run_group(group).await;
        };
        // Commits that free room run one by one, so that each needs as little room as possible.
        let (frees, grows): (Vec<_>, Vec<_>) = group
            .into_iter()
            .partition(|work| work.purpose() == Purpose::Frees);
        answer_all(grows, self.shared.writable().and(Err(full)));
        for work in frees {
            self.run_group(vec![work]).await;
        }
    }

    async fn run_group(&mut self, mut group: Vec<Box<dyn Work>>) {
        let collected = self.collect(&mut group);
        let outcome = Self::settle(&self.shared, collected).await;
        self.shared.stats.count_group(group.len());
        answer_all(group, outcome);
    }

    /// Runs the jobs of a group. Fails when none of its writes may be applied.
    pub(super) fn collect(&mut self, group: &mut [Box<dyn Work>]) -> StoreResult<Collected> {
        self.shared.writable()?;
        if self.last.refused.get().is_some() {
            self.last = Arc::default();
            self.stamps.forget_aside();
        }
        let (shared, stamps) = (Arc::clone(&self.shared), &mut self.stamps);
        let on = Arc::clone(&self.last);
        let collected = shared.ahead(&on.writes, |view| -> StoreResult<_> {
            let mut done = Group::new(view);
            let mut purpose = Purpose::Frees;
            for work in group {
                let stamp = stamps.next(work.asked());
                if work.purpose() == Purpose::Grows {
                    purpose = Purpose::Grows;
                }
                done.run(work.as_mut(), &stamp);
            }
            let (mut writes, held) = (done.writes, done.held);
            let bytes = bytes_needed(&writes);
            // Ticks are reserved after that, because those may only be used once written.
            shared.admit(bytes, purpose)?;
            let sets_ticks_aside = stamps.set_aside(&mut writes);
            let ran = Arc::new(Ran {
                writes,
                ..Ran::default()
            });
            Ok(Collected {
                ran,
                on: Arc::clone(&on),
                held,
                bytes,
                sets_ticks_aside,
                reached: stamps.last().now,
            })
        })?;
        if !self.shared.is_published_at_once() {
            self.last = Arc::clone(&collected.ran);
        }
        Ok(collected)
    }

    /// Publishes a group unless its jobs failed.
    async fn settle(shared: &Shared, collected: StoreResult<Collected>) -> StoreResult<()> {
        let outcome = match collected {
            Ok(collected) => {
                shared.points.pass(Point::Collected).await;
                Self::publish(shared, &collected).await
            }
            Err(error) => Err(error),
        };
        shared.points.pass(Point::Published).await;
        outcome
    }

    /// Makes a group durable and visible. Groups come here in order and one at a time.
    pub(super) async fn publish(shared: &Shared, collected: &Collected) -> StoreResult<()> {
        let writes = &collected.ran.writes;
        if let Some(refused) = collected.ran.refused.get() {
            return Err(refused.clone());
        }
        // The group before may have failed, and even a job without writes has seen its writes.
        shared.writable()?;
        if !writes.is_empty() {
            let publishing = AssertUnwindSafe(async {
                if shared.is_published_at_once() {
                    Self::publish_in_memory(shared, writes, &collected.held)
                } else {
                    Self::publish_durably(shared, collected).await
                }
            });
            let published = publishing.catch_unwind().await;
            let published = published.unwrap_or_else(|_| Err(gave_up()));
            published.inspect_err(|error| match error {
                // A payload or a record without room refuses its group before anything is written.
                StoreError::Refused(_) => {
                    collected.ran.refused.get_or_init(|| error.clone());
                }
                _ => shared.fail(error),
            })?;
            shared.stats.count_writes(writes);
        }
        let now = collected.reached.ticks();
        shared.last_now.store(now, Ordering::Release);
        Ok(())
    }

    fn publish_in_memory(
        shared: &Shared,
        writes: &Writes,
        held: &[Reservation],
    ) -> StoreResult<()> {
        let published = shared.published.write();
        Self::enter_segments(shared, held);
        published.engine.apply(writes)?;
        Self::forget_segments(shared, writes);
        Ok(())
    }

    async fn publish_durably(shared: &Shared, collected: &Collected) -> StoreResult<()> {
        let (writes, held) = (&collected.ran.writes, &collected.held);
        let engine = Arc::clone(&shared.published.read().engine);
        if shared.is_durable() {
            shared.extents.sync(held)?;
            failpoint::reach("commit.payloads_durable");
        }
        if engine.is_log_full(writes) {
            shared.turn()?;
            failpoint::reach("commit.log_turned");
            shared.wake_drainer();
        }
        engine.record(writes)?;
        shared.points.pass(Point::Logged).await;
        if shared.is_durable() || collected.sets_ticks_aside {
            engine.sync_log()?;
        }
        if shared.is_durable() {
            // Syncing a removed file succeeds.
            shared.home.check_is_there()?;
        }
        shared.points.pass(Point::Synced).await;
        Self::enter_segments(shared, held);
        shared.count_undrained(collected.bytes);
        shared.publish(writes);
        Self::forget_segments(shared, writes);
        Ok(())
    }

    /// Makes segments in memory visible to readers; those in files are visible since their
    /// reservation.
    fn enter_segments(shared: &Shared, held: &[Reservation]) {
        for reservation in held {
            shared.extents.enter(reservation.segment());
        }
    }

    /// Frees segments in memory; files wait for maintenance.
    fn forget_segments(shared: &Shared, writes: &Writes) {
        for (key, written) in writes {
            if let (None, Some(segment)) = (written, keys::segment_of(key)) {
                shared.extents.forget(segment);
            }
        }
    }

    /// Continues `now` from the clock's time, although commits have seen later times. Ticks keep
    /// rising, so that no ETag and no id is used twice.
    pub(super) fn rebase(&mut self) -> StoreResult<()> {
        self.shared.writable()?;
        self.last = Arc::default();
        let stamp = self.stamps.rebased();
        let mut writes = Writes::from([(keys::STAMP.to_vec(), Some(stamp::encode(stamp)))]);
        let sets_ticks_aside = self.stamps.set_aside(&mut writes);
        let collected = Collected {
            bytes: bytes_needed(&writes),
            ran: Arc::new(Ran {
                writes,
                ..Ran::default()
            }),
            on: Arc::default(),
            held: Vec::new(),
            sets_ticks_aside,
            reached: stamp.now,
        };
        let published = Self::publish(&self.shared, &collected).now_or_never();
        published.unwrap_or(Err(StoreError::Closed))
    }

    pub(super) fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.shared)
    }

    /// Replaces the current state, payloads and time.
    pub(super) fn replace(&mut self, next: Next) -> StoreResult<()> {
        self.shared.writable()?;
        // After a failure it is unknown which of the two engines a restart opens.
        let engine = guarded(|| next.take(&self.shared.home));
        let (engine, segments, held) = engine.inspect_err(|error| self.shared.fail(error))?;
        let old = self.shared.replace(Arc::from(engine), segments);
        self.last = Arc::default();
        self.shared.replacements.fetch_add(1, Ordering::SeqCst);
        drop((old, held));
        failpoint::reach("reset.published");
        let last = self.shared.read(|view| stamp::read(view))?;
        let now = last.now.ticks();
        self.shared.last_now.store(now, Ordering::Release);
        self.stamps = Stamps::new(&self.shared, last);
        self.shared.home.remove_others()
    }
}
