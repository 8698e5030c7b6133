//! The state that readers, stagings and the committer share.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytes::Bytes;
use smalt_protocol::Timestamp;

use super::config::Mode;
use super::engine::{Engine, Records};
use super::error::{StoreError, StoreResult};
use super::extents::{Extents, Segment, Segments};
use super::failpoint;
use super::home::{Home, Purpose};
use super::keys;
use super::points::Points;
use super::stats::Counters;
use super::sync::{IS_CHECKED, RwLock};
use super::view::{View, Visit, Writes, merged_scan};
use crate::clock::Clock;

/// The state that readers, stagings and the committer share.
pub(super) struct Shared {
    pub(super) mode: Mode,
    pub(super) clock: Clock,
    pub(super) home: Home,
    /// Readers lock it for the whole of a read; the committer locks it to publish.
    pub(super) published: RwLock<Published>,
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

/// The readers' state: the engine, masked by the old values of keys that are not durable yet.
pub(super) struct Published {
    pub(super) engine: Arc<dyn Engine>,
    pub(super) mask: Writes,
}

/// The readers' view during one read.
pub(super) struct Masked<'a> {
    published: &'a Published,
    extents: &'a Extents,
}

/// The committer's view: everything that was applied.
pub(super) struct Unmasked<'a> {
    engine: &'a dyn Engine,
    extents: &'a Extents,
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
            published: RwLock::new(Published {
                engine: Arc::from(engine),
                mask: Writes::new(),
            }),
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

    pub(super) fn read<T>(&self, f: impl FnOnce(&Masked<'_>) -> T) -> T {
        let published = self.published.read();
        f(&Masked {
            published: &published,
            extents: &self.extents,
        })
    }

    /// Reads the applied state; only for the committer, between groups.
    pub(super) fn unmasked<T>(&self, f: impl FnOnce(&Unmasked<'_>) -> T) -> T {
        let engine = Arc::clone(&self.published.read().engine);
        f(&Unmasked {
            engine: engine.as_ref(),
            extents: &self.extents,
        })
    }

    /// Returns all records as readers see them, and the segments that they refer to.
    pub(super) fn frozen(&self) -> StoreResult<(Arc<Records>, Segments)> {
        let published = self.published.read();
        let view = Masked {
            published: &published,
            extents: &self.extents,
        };
        let segments = segments(&view)?;
        if published.mask.is_empty()
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
        self.home.admit(need, self.extents.unwritten(), purpose)
    }

    /// Checks that the directory still exists. Returns why there is no room; `None` when there is.
    pub(super) fn look(&self) -> Option<String> {
        if self.is_closed() || self.failure().is_some() {
            return None;
        }
        if let Err(error) = self.home.check_is_there() {
            self.fail(&error);
        }
        self.home.look(self.extents.unwritten())
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
        let closed = Published {
            engine: Arc::new(ClosedEngine),
            mask: Writes::new(),
        };
        // Dropping it may take a while, and readers should see meanwhile that the store is closed.
        let last = std::mem::replace(&mut *self.published.write(), closed);
        drop(last);
        self.home.close();
    }

    /// Writes out and syncs all commits.
    pub(super) fn write_out(&self) -> StoreResult<()> {
        if let Some(cause) = self.failure() {
            return Err(StoreError::ReadOnly(cause.to_owned()));
        }
        self.extents.sync_all()?;
        let engine = Arc::clone(&self.published.read().engine);
        engine.sync()
    }

    /// Makes all commits durable, for the last time.
    pub(super) fn sync_all(&self) -> StoreResult<()> {
        self.write_out()?;
        failpoint::reach("close.durable");
        let last = self.unmasked(|view| super::stamp::read(view))?;
        self.home.note(last)?;
        failpoint::reach("close.noted");
        Ok(())
    }
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

impl View for Masked<'_> {
    fn get(&self, key: &[u8]) -> StoreResult<Option<Bytes>> {
        match self.published.mask.get(key) {
            Some(old) => Ok(old.clone()),
            None => self.published.engine.get(key),
        }
    }

    fn scan(&self, from: &[u8], to: &[u8], visit: &mut Visit<'_>) -> StoreResult<()> {
        let applied = Unmasked {
            engine: self.published.engine.as_ref(),
            extents: self.extents,
        };
        if self.published.mask.is_empty() {
            return applied.scan(from, to, visit);
        }
        merged_scan(&applied, &self.published.mask, from, to, visit)
    }

    fn pin(&self, segment: u64) -> Option<Arc<Segment>> {
        self.extents.pin(segment)
    }
}

impl View for Unmasked<'_> {
    fn get(&self, key: &[u8]) -> StoreResult<Option<Bytes>> {
        self.engine.get(key)
    }

    fn scan(&self, from: &[u8], to: &[u8], visit: &mut Visit<'_>) -> StoreResult<()> {
        self.engine.scan(from, to, visit)
    }

    fn pin(&self, segment: u64) -> Option<Arc<Segment>> {
        self.extents.pin(segment)
    }
}

/// The engine of a closed store; every call fails.
struct ClosedEngine;

impl Engine for ClosedEngine {
    fn get(&self, _: &[u8]) -> StoreResult<Option<Bytes>> {
        Err(StoreError::Closed)
    }

    fn first_from(&self, _: &[u8]) -> StoreResult<Option<(Vec<u8>, Bytes)>> {
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
