//! The state that readers, stagings and the committer share.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytes::Bytes;
use smalt_protocol::Timestamp;

use super::config::Mode;
use super::engine::{Engine, Records};
use super::error::{StoreError, StoreResult};
use super::extents::{Extents, Segments};
use super::failpoint;
use super::home::{Home, Purpose};
use super::keys;
use super::overlay::{Ahead, Applied, Published, Seen};
use super::points::Points;
use super::stats::Counters;
use super::sync::{IS_CHECKED, Mutex, RwLock, mpsc};
use super::view::{View, Visit, Writes};
use crate::clock::Clock;

/// The state that readers, stagings and the committer share.
pub(super) struct Shared {
    pub(super) mode: Mode,
    pub(super) clock: Clock,
    pub(super) home: Home,
    /// Readers lock it for the whole of a read; the committer locks it to publish.
    pub(super) published: RwLock<Published>,
    /// Locked while the engine takes sealed writes.
    draining: Mutex<()>,
    /// Wakes the thread that drains; a store without one drains when it must.
    pub(super) drainer: Mutex<Option<mpsc::Sender<()>>>,
    /// Bytes that the engine needs for the writes that it does not hold yet.
    undrained: AtomicU64,
    /// The part of them that belongs to sealed writes.
    sealed_bytes: AtomicU64,
    pub(super) extents: Extents,
    /// `now` of the last commit, in ticks.
    pub(super) last_now: AtomicU64,
    /// Number of times that another state replaced the current one.
    pub(super) replacements: AtomicU64,
    pub(super) stats: Counters,
    pub(super) points: Points,
    failure: OnceLock<(StoreError, String)>,
    unexplained: OnceLock<String>,
    closing: AtomicBool,
    closed: AtomicBool,
}

impl Shared {
    pub(super) fn new(
        mode: Mode,
        clock: Clock,
        home: Home,
        engine: Box<dyn Engine>,
        extents: Extents,
    ) -> Self {
        Shared {
            mode,
            clock,
            home,
            published: RwLock::new(Published::of(Arc::from(engine))),
            draining: Mutex::new(()),
            drainer: Mutex::new(None),
            undrained: AtomicU64::new(0),
            sealed_bytes: AtomicU64::new(0),
            extents,
            last_now: AtomicU64::new(0),
            replacements: AtomicU64::new(0),
            stats: Counters::default(),
            points: Points::default(),
            failure: OnceLock::new(),
            unexplained: OnceLock::new(),
            closing: AtomicBool::new(false),
            closed: AtomicBool::new(false),
        }
    }

    /// Returns whether a group is published in one step, because nothing waits between its steps.
    pub(super) fn is_published_at_once(&self) -> bool {
        self.mode == Mode::Memory && !self.points.are_held() && !IS_CHECKED
    }

    pub(super) fn is_durable(&self) -> bool {
        self.mode == Mode::Durable
    }

    pub(super) fn read<T>(&self, f: impl FnOnce(&Seen<'_>) -> T) -> T {
        f(&self.published.read().seen(&self.extents))
    }

    /// Reads what jobs see: the published state and a group on top of it. The state is locked for
    /// each call of the view and not in between, so that another group can be published meanwhile.
    pub(super) fn ahead<T>(&self, group: &Writes, f: impl FnOnce(&dyn View) -> T) -> T {
        if self.is_published_at_once() {
            let engine = Arc::clone(&self.published.read().engine);
            return f(&Applied {
                engine: engine.as_ref(),
                extents: &self.extents,
            });
        }
        f(&Ahead {
            published: &self.published,
            extents: &self.extents,
            group,
        })
    }

    /// Returns all records as readers see them, and the segments that they refer to.
    pub(super) fn frozen(&self) -> StoreResult<(Arc<Records>, Segments)> {
        let published = self.published.read();
        let view = published.seen(&self.extents);
        let segments = segments(&view)?;
        if published.active.is_empty()
            && published.sealed.is_empty()
            && let Some(records) = published.engine.frozen()
        {
            return Ok((records, segments));
        }
        let mut records = Records::new();
        view.scan(&[], &LAST_KEY, &mut |key, value| {
            records.insert(key.to_vec(), value.clone());
            ControlFlow::Continue(())
        })?;
        Ok((Arc::new(records), segments))
    }

    /// Returns the time at which a commit is requested. Tokio's paused clock shows its time only on
    /// tokio's threads, and the committer's is not one of them.
    pub(super) fn asked(&self) -> Option<Timestamp> {
        self.clock.follows_tokio().then(|| self.clock.now())
    }

    /// Returns the failure after which writes are refused.
    pub(super) fn failure(&self) -> Option<&str> {
        self.failure.get().map(|(_, text)| text.as_str())
    }

    /// Returns the error after which writes are refused.
    pub(super) fn failed_by(&self) -> Option<&StoreError> {
        self.failure.get().map(|(error, _)| error)
    }

    /// Refuses writes without room.
    pub(super) fn admit(&self, need: u64, purpose: Purpose) -> StoreResult<()> {
        self.home.admit(need, self.promised(), purpose)
    }

    /// Returns the bytes that running uploads and the engine still have to write.
    pub(super) fn promised(&self) -> u64 {
        self.extents.unwritten() + self.undrained.load(Ordering::Acquire)
    }

    /// Checks that the directory still exists. Returns why there is no room; `None` when there is.
    pub(super) fn look(&self) -> Option<String> {
        if self.is_closed() || self.failure().is_some() {
            return None;
        }
        if let Err(error) = self.home.check_is_there() {
            self.fail(&error);
        }
        self.home.look(self.promised())
    }

    /// Returns why garbage is not collected: the files are inconsistent, so apparent garbage may be
    /// data that a user wants to salvage.
    pub(super) fn unexplained(&self) -> Option<&str> {
        self.unexplained.get().map(String::as_str)
    }

    /// Stops collecting garbage.
    pub(super) fn keep_everything(&self, cause: String) {
        tracing::warn!(
            %cause,
            "the store is damaged: it serves the remaining data and deletes no file; \
             run `smalt check`"
        );
        // Only the first cause is kept.
        let _ = self.unexplained.set(cause);
    }

    /// Fails when writes are refused.
    pub(super) fn writable(&self) -> StoreResult<()> {
        if let Some(cause) = self.failure() {
            return Err(StoreError::ReadOnly(cause.to_owned()));
        }
        if self.is_closed() {
            return Err(StoreError::Closed);
        }
        Ok(())
    }

    /// Returns whether the files were released.
    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Refuses writes from now on, for a reason that is not a trouble.
    pub(super) fn take_no_writes(&self, cause: &str) {
        let error = StoreError::ReadOnly(cause.to_owned());
        // Only the first reason is kept.
        let _ = self.failure.set((error, cause.to_owned()));
    }

    /// Refuses writes from now on, after a failed one.
    pub(super) fn fail(&self, error: &StoreError) {
        // Only the first failure is kept as the cause.
        if (self.failure.set((error.clone(), error.to_string()))).is_ok() {
            tracing::error!(%error, "writes are refused until the store is opened again");
        }
    }

    /// Returns false when a close is running or done. Waiting commits are still served.
    pub(super) fn begin_close(&self) -> bool {
        !self.closing.swap(true, Ordering::AcqRel)
    }

    /// Refuses further commits and releases the files. Reads fail from now on.
    pub(super) fn end_close(&self) {
        self.closed.store(true, Ordering::Release);
        let closed = Published::of(Arc::new(ClosedEngine));
        // Dropping it may take a while, and readers should see meanwhile that the store is closed.
        let last = std::mem::replace(&mut *self.published.write(), closed);
        drop(last);
        self.home.close();
    }

    /// Publishes a group, which the log has.
    pub(super) fn publish(&self, writes: &Writes) {
        // Copies, because a value may be a slice that keeps a larger buffer alive.
        let copy = |value: &Bytes| Bytes::copy_from_slice(value);
        let copies: Vec<_> = writes
            .iter()
            .map(|(key, value)| (key.clone(), value.as_ref().map(copy)))
            .collect();
        self.published.write().active.extend(copies);
    }

    /// Seals the writes of the log's current file and continues in the other one. Only for the
    /// committer between groups.
    pub(super) fn turn(&self) -> StoreResult<()> {
        // The other file still holds what the engine does not.
        self.drain()?;
        let mut published = self.published.write();
        if published.active.is_empty() {
            return Ok(());
        }
        published.sealed = Arc::new(std::mem::take(&mut published.active));
        let bytes = self.undrained.load(Ordering::Acquire);
        self.sealed_bytes.store(bytes, Ordering::Release);
        published.engine.turn_log();
        Ok(())
    }

    /// Makes the engine take the sealed writes in the background.
    pub(super) fn wake_drainer(&self) {
        if let Some(drainer) = &*self.drainer.lock() {
            // Fails when the thread has ended; the next turn drains.
            let _ = drainer.send(());
        }
    }

    /// Passes the sealed writes to the engine. Without room they stay, and a later call tries
    /// again.
    pub(super) fn drain(&self) -> StoreResult<()> {
        let _alone = self.draining.lock();
        let (engine, sealed) = {
            let published = self.published.read();
            (Arc::clone(&published.engine), Arc::clone(&published.sealed))
        };
        if sealed.is_empty() {
            return Ok(());
        }
        self.writable()?;
        let bytes = self.sealed_bytes.load(Ordering::Acquire);
        self.home
            .admit(bytes, self.extents.unwritten(), Purpose::Frees)?;
        let drained = guarded(|| {
            engine.apply(&sealed)?;
            failpoint::reach("drain.applied");
            engine.sync()?;
            failpoint::reach("drain.synced");
            engine.recycle_log()
        });
        drained.inspect_err(|error| self.fail(error))?;
        failpoint::reach("drain.recycled");
        self.published.write().sealed = Arc::default();
        self.undrained.fetch_sub(bytes, Ordering::AcqRel);
        Ok(())
    }

    /// Counts writes for which the engine will need room.
    pub(super) fn count_undrained(&self, bytes: u64) {
        self.undrained.fetch_add(bytes, Ordering::AcqRel);
    }

    /// Replaces the published state, including writes that the engine did not take yet.
    pub(super) fn replace(&self, engine: Arc<dyn Engine>, segments: Segments) -> Published {
        let _still = self.draining.lock();
        let mut published = self.published.write();
        self.extents.replace(segments);
        self.undrained.store(0, Ordering::Release);
        std::mem::replace(&mut *published, Published::of(engine))
    }

    /// Writes out and syncs all commits.
    pub(super) fn write_out(&self) -> StoreResult<()> {
        if let Some(cause) = self.failure() {
            return Err(StoreError::ReadOnly(cause.to_owned()));
        }
        self.extents.sync_all()?;
        let engine = Arc::clone(&self.published.read().engine);
        engine.sync_log()
    }

    /// Makes all commits durable, for the last time, and empties the log if there is room.
    pub(super) fn sync_all(&self) -> StoreResult<()> {
        self.write_out()?;
        failpoint::reach("close.durable");
        match self.turn().and_then(|()| self.drain()) {
            // The next start replays the log.
            Err(StoreError::Refused(_)) => {}
            drained => drained?,
        }
        let last = self.read(|view| super::stamp::read(view))?;
        self.home.note(last)?;
        failpoint::reach("close.noted");
        Ok(())
    }
}

/// Estimates the bytes that the engine writes for a group: each value, and the node that contains
/// it.
pub(super) fn bytes_needed(writes: &Writes) -> u64 {
    const NODE_BYTES: usize = 4 * 1024;
    let bytes = |(key, value): (&Vec<u8>, &Option<Bytes>)| {
        2 * (key.len() + value.as_ref().map_or(0, Bytes::len)) + NODE_BYTES
    };
    writes.iter().map(bytes).sum::<usize>() as u64
}

/// Catches sled's panics about its own invariants, so that the committer and readers continue.
pub(super) fn guarded<T>(f: impl FnOnce() -> StoreResult<T>) -> StoreResult<T> {
    catch_unwind(AssertUnwindSafe(f)).unwrap_or_else(|_| Err(gave_up()))
}

pub(super) fn gave_up() -> StoreError {
    StoreError::Io("the engine panicked".to_owned())
}

/// A bound after every key.
pub(super) const LAST_KEY: [u8; 2] = [u8::MAX; 2];

/// Returns the segments that contain payloads of a state.
pub(super) fn segments(view: &dyn View) -> StoreResult<Segments> {
    let (mut found, mut missing) = (BTreeMap::new(), None);
    let (from, to) = (keys::segment(0), keys::segment(u64::MAX));
    view.scan(&from, &to, &mut |key, _| {
        let Some(number) = keys::segment_of(key) else {
            return ControlFlow::Continue(());
        };
        match view.pin(number) {
            Some(segment) => drop(found.insert(number, segment)),
            None => missing = Some(number),
        }
        ControlFlow::Continue(())
    })?;
    match missing {
        Some(number) => Err(StoreError::Corrupt(format!("segment {number} is missing"))),
        None => Ok(found),
    }
}

/// The engine of a closed store; every call fails.
struct ClosedEngine;

impl Engine for ClosedEngine {
    fn get(&self, _: &[u8]) -> StoreResult<Option<Bytes>> {
        Err(StoreError::Closed)
    }

    fn scan(&self, _: &[u8], _: &[u8], _: &mut Visit<'_>) -> StoreResult<()> {
        Err(StoreError::Closed)
    }

    fn apply(&self, _: &Writes) -> StoreResult<()> {
        Err(StoreError::Closed)
    }

    fn sync(&self) -> StoreResult<()> {
        Err(StoreError::Closed)
    }

    fn disk_bytes(&self) -> u64 {
        0
    }
}
