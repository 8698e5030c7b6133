//! The committer: takes waiting commits in order, in groups, and publishes a group when it is
//! durable. In memory it runs inline, on disk on its own thread.
//!
//! Jobs of a group run on the published state plus the earlier writes of the group. Then the
//! committer syncs payloads, hides the batch from readers behind a mask of the old values, applies
//! and syncs the batch, removes the mask, and answers every commit. If a write fails in between,
//! the state on disk is unknown: the mask stays and the store accepts no writes until it is
//! reopened.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use futures_util::FutureExt as _;
use smalt_protocol::Timestamp;

use super::commit::{Group, Stamps, Work, answer_all};
use super::engine::Engine;
use super::error::{StoreError, StoreResult};
use super::extents::{Reservation, Segments};
use super::failpoint;
use super::home::{Home, Purpose};
use super::keys;
use super::known::{Known, Remembering, old_values};
use super::points::Point;
use super::shared::{Published, Shared, Unmasked};
use super::stamp;
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

/// The results of a group of commits.
pub(super) struct Collected {
    writes: Writes,
    held: Vec<Reservation>,
    known: Known,
    /// Whether the group reserves ticks, which may only be used after the reservation is written.
    sets_ticks_aside: bool,
    /// The reason why none of the writes is applied.
    refused: Option<StoreError>,
}

/// Runs commits. A store has exactly one.
pub(super) struct Committer {
    shared: Arc<Shared>,
    stamps: Stamps,
}

impl Committer {
    /// Creates a committer that continues from the last persisted stamp.
    pub(super) fn new(shared: Arc<Shared>) -> StoreResult<Self> {
        let last = shared.unmasked(|view| stamp::read(view))?;
        shared.last_now.store(last.now.ticks(), Ordering::Release);
        let stamps = Stamps::new(&shared, last);
        Ok(Committer { shared, stamps })
    }

    pub(super) fn last_tick(&self) -> Timestamp {
        self.stamps.last().tick
    }

    /// Serves requests until a close, or until all senders are dropped.
    pub(super) fn serve(mut self, requests: &Receiver<Request>) {
        let mut next = requests.recv().ok();
        while let Some(request) = next.take() {
            match request {
                Request::Commit(first) => {
                    let mut group = vec![first];
                    while group.len() < GROUP_COMMITS_MAX {
                        match requests.try_recv() {
                            Ok(Request::Commit(work)) => group.push(work),
                            Ok(other) => {
                                next = Some(other);
                                break;
                            }
                            Err(_) => break,
                        }
                    }
                    self.run(group);
                }
                Request::WriteOut(answer) => {
                    let _ = answer.send(self.write_out());
                }
                Request::Replace(next, answer) => {
                    let _ = answer.send(self.replace(*next));
                }
                Request::Rebase(answer) => {
                    let _ = answer.send(self.rebase());
                }
                Request::Close(answer) => {
                    let _ = answer.send(self.sync_all());
                    return;
                }
            }
            next = next.or_else(|| requests.recv().ok());
        }
        // All handles were dropped without a close: fast mode still has data to write.
        if let Err(error) = self.sync_all() {
            tracing::error!(%error, "cannot close the store cleanly");
        }
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

    async fn run_past_points(&mut self, group: Vec<Box<dyn Work>>) {
        self.shared.points.pass(Point::Taken).await;
        let is_full = self.shared.home.is_full(self.shared.extents.unwritten());
        let full = is_full.then(|| self.shared.admit(0, Purpose::Grows).err());
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
        let outcome = match self.shared.writable() {
            Ok(()) => {
                let mut collected = self.collect(&mut group);
                self.shared.points.pass(Point::Collected).await;
                match collected.refused.take() {
                    None => self.publish(&collected).await,
                    Some(refused) => Err(refused),
                }
            }
            Err(error) => Err(error),
        };
        self.shared.points.pass(Point::Published).await;
        self.shared.stats.count_group(group.len());
        answer_all(group, outcome);
    }

    pub(super) fn collect(&mut self, group: &mut [Box<dyn Work>]) -> Collected {
        let needs_mask = !self.shared.is_published_at_once();
        let (shared, stamps) = (Arc::clone(&self.shared), &mut self.stamps);
        self.shared.unmasked(|view| {
            let remembering = Remembering::new(view);
            let mut done = match needs_mask {
                true => Group::new(&remembering),
                false => Group::new(view),
            };
            let mut purpose = Purpose::Frees;
            for work in group {
                let stamp = stamps.next(work.asked());
                if work.purpose() == Purpose::Grows {
                    purpose = Purpose::Grows;
                }
                done.run(work.as_mut(), &stamp);
            }
            let (mut writes, held) = (done.writes, done.held);
            let refused = shared.admit(bytes_needed(&writes), purpose).err();
            if refused.is_some() {
                // Drops the writes before ticks are reserved, because those may only be used once
                // written.
                writes.clear();
            }
            Collected {
                refused,
                sets_ticks_aside: stamps.set_aside(&mut writes),
                writes,
                held,
                known: remembering.into_known(),
            }
        })
    }

    pub(super) async fn publish(&self, collected: &Collected) -> StoreResult<()> {
        let writes = &collected.writes;
        if !writes.is_empty() {
            let publishing = AssertUnwindSafe(async {
                if self.shared.is_published_at_once() {
                    self.publish_in_memory(writes, &collected.held)
                } else {
                    self.publish_masked(collected).await
                }
            });
            let published = publishing.catch_unwind().await;
            let published = published.unwrap_or_else(|_| Err(gave_up()));
            published.inspect_err(|error| {
                // A payload without room refuses its group before the engine gets any write.
                let is_whole = matches!(error, StoreError::Refused(_));
                if !is_whole {
                    self.shared.fail(error);
                }
            })?;
            self.shared.stats.count_writes(writes);
        }
        let now = self.stamps.last().now.ticks();
        self.shared.last_now.store(now, Ordering::Release);
        Ok(())
    }

    fn publish_in_memory(&self, writes: &Writes, held: &[Reservation]) -> StoreResult<()> {
        let published = self.shared.published.write();
        self.enter_segments(held);
        published.engine.apply(writes)?;
        self.forget_segments(writes);
        Ok(())
    }

    async fn publish_masked(&self, collected: &Collected) -> StoreResult<()> {
        let (writes, held) = (&collected.writes, &collected.held);
        let engine = Arc::clone(&self.shared.published.read().engine);
        if self.shared.is_durable() {
            self.shared.extents.sync(held)?;
            failpoint::reach("commit.payloads_durable");
        }
        let mask = old_values(engine.as_ref(), writes, &collected.known)?;
        self.shared.published.write().mask = mask;
        self.shared.points.pass(Point::Masked).await;
        self.enter_segments(held);
        let applied = self.apply(engine.as_ref(), writes).await;
        applied.map_err(StoreError::cut_off)?;
        self.shared.points.pass(Point::Applied).await;
        if self.shared.is_durable() || collected.sets_ticks_aside {
            engine.sync()?;
        }
        if self.shared.is_durable() {
            // Syncing a removed file succeeds.
            self.shared.home.check_is_there()?;
        }
        self.shared.points.pass(Point::Synced).await;
        let mask = std::mem::take(&mut self.shared.published.write().mask);
        drop(mask);
        self.forget_segments(writes);
        Ok(())
    }

    /// Applies the writes at once; in a stepped store in two parts, because readers may run between
    /// any two keys.
    async fn apply(&self, engine: &dyn Engine, writes: &Writes) -> StoreResult<()> {
        if !self.shared.points.are_held() {
            return engine.apply(writes);
        }
        let mut pairs = writes
            .iter()
            .map(|(key, value)| (key.clone(), value.clone()));
        engine.apply(&pairs.by_ref().take(writes.len() / 2).collect())?;
        self.shared.points.pass(Point::HalfApplied).await;
        engine.apply(&pairs.collect())
    }

    /// Makes segments in memory visible to readers; those in files are visible since their
    /// reservation.
    fn enter_segments(&self, held: &[Reservation]) {
        for reservation in held {
            self.shared.extents.enter(reservation.segment());
        }
    }

    /// Frees segments in memory; files wait for maintenance.
    fn forget_segments(&self, writes: &Writes) {
        for (key, written) in writes {
            if let (None, Some(segment)) = (written, keys::segment_of(key)) {
                self.shared.extents.forget(segment);
            }
        }
    }

    /// Continues `now` from the clock's time, although commits have seen later times. Ticks keep
    /// rising, so that no ETag and no id is used twice.
    pub(super) fn rebase(&mut self) -> StoreResult<()> {
        self.shared.writable()?;
        let stamp = self.stamps.rebased();
        let mut writes = Writes::from([(keys::STAMP.to_vec(), Some(stamp::encode(stamp)))]);
        let collected = Collected {
            sets_ticks_aside: self.stamps.set_aside(&mut writes),
            writes,
            held: Vec::new(),
            known: Known::new(),
            refused: None,
        };
        let published = self.publish(&collected).now_or_never();
        published.unwrap_or(Err(StoreError::Closed))
    }

    #[cfg(any(test, feature = "schedule"))]
    pub(super) fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.shared)
    }

    /// Replaces the current state, payloads and time.
    pub(super) fn replace(&mut self, next: Next) -> StoreResult<()> {
        self.shared.writable()?;
        // After a failure it is unknown which of the two engines a restart opens.
        let engine = guarded(|| next.take(&self.shared.home));
        let (engine, segments, held) = engine.inspect_err(|error| self.shared.fail(error))?;
        let old = {
            let mut published = self.shared.published.write();
            self.shared.extents.replace(segments);
            std::mem::replace(
                &mut *published,
                Published {
                    engine: Arc::from(engine),
                    mask: Writes::new(),
                },
            )
        };
        self.shared.replacements.fetch_add(1, Ordering::SeqCst);
        drop((old, held));
        failpoint::reach("reset.published");
        let last = self
            .shared
            .unmasked(|view: &Unmasked<'_>| stamp::read(view))?;
        let now = last.now.ticks();
        self.shared.last_now.store(now, Ordering::Release);
        self.stamps = Stamps::new(&self.shared, last);
        self.shared.home.remove_others()
    }
}

/// Estimates the bytes that the engine writes for a group: each value, and the node that contains
/// it.
fn bytes_needed(writes: &Writes) -> u64 {
    const NODE_BYTES: usize = 4 * 1024;
    let bytes = |(key, value): (&Vec<u8>, &Option<Bytes>)| {
        2 * (key.len() + value.as_ref().map_or(0, Bytes::len)) + NODE_BYTES
    };
    writes.iter().map(bytes).sum::<usize>() as u64
}

/// Catches sled's panics about its own invariants, so that the committer and readers continue.
fn guarded<T>(f: impl FnOnce() -> StoreResult<T>) -> StoreResult<T> {
    catch_unwind(AssertUnwindSafe(f)).unwrap_or_else(|_| Err(gave_up()))
}

fn gave_up() -> StoreError {
    StoreError::Io("the engine panicked".to_owned())
}
