//! The handle with which operations use the store.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use smalt_protocol::{ErrorCode, StorageError, Timestamp};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::oneshot;

use super::commit::Commit;
use super::committer::{Committer, Next, Request};
use super::config::{Mode, StoreConfig};
use super::dispatch::{Dispatch, answer_of, ask};
use super::engine::Engine;
use super::error::{OpenError, StoreError, StoreResult};
use super::extents::{Extents, framed_bytes};
use super::home::{Bare, Home, Purpose};
use super::payload::{self, Payload, PayloadId};
#[cfg(any(test, feature = "schedule"))]
use super::points::Point;
use super::reader::PayloadReader;
use super::saved::Saved;
use super::shared::Shared;
use super::staging::PayloadWriter;
use super::stats::Stats;
use super::successor::Successor;
use super::sync::{Mutex, mpsc};
use super::view::{INLINE_BYTES_MAX, Stamp, Transaction, View};
use crate::clock::Clock;
use crate::disk::{Disk, SystemDisk};

/// The store. Clones are cheap and share it; dropping the last one closes it.
#[derive(Clone)]
pub struct Store(pub(super) Arc<Inner>);

pub(super) struct Inner {
    shared: Arc<Shared>,
    dispatch: Dispatch,
    /// Payloads that maintenance found damaged. Locked while it runs, because two runs at once
    /// would move the same payloads.
    damaged: parking_lot::Mutex<BTreeSet<PayloadId>>,
    saved: Saved,
    /// Locked while another state is prepared.
    replacing: Mutex<()>,
    opened_after: Timestamp,
}

impl Store {
    /// Opens or creates a store.
    ///
    /// # Errors
    /// [`OpenError`] says what is wrong and what to do; nothing is ever reset.
    pub fn open(config: StoreConfig) -> Result<Store, OpenError> {
        Self::open_on(config, Arc::new(SystemDisk))
    }

    /// Opens or creates a store on the caller's disk, except for the files that the metadata engine
    /// opens by itself.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open_on(config: StoreConfig, disk: Arc<dyn Disk>) -> Result<Store, OpenError> {
        let (home, engine) = Home::open(&config, &disk)?;
        let cannot_open = |cause: String| OpenError::Io {
            path: config.dir.clone().unwrap_or_default(),
            cause,
        };
        let needed = payload::segments_needed(&Bare(engine.as_ref()));
        let needed = needed.map_err(|error| cannot_open(error.to_string()))?;
        let extents = match &config.dir {
            Some(dir) if config.mode != Mode::Memory => {
                let durable = config.mode == Mode::Durable;
                let dir = dir.join("extents");
                Extents::open(disk, dir, config.segment_bytes, durable, &needed)
                    .map_err(|error| cannot_open(error.to_string()))?
            }
            _ => Extents::in_memory(config.memory_limit.unwrap_or(u64::MAX)),
        };
        let saved = Saved::open(&home, &extents).map_err(|error| cannot_open(error.to_string()))?;
        let lost = extents.lost(&needed);
        let store = Self::start(&config, home, engine, extents, saved);
        let store = store.map_err(|error| cannot_open(error.to_string()))?;
        let shared = store.0.shared();
        if !lost.is_empty() {
            shared.keep_everything(format!("segments {lost:?} are missing or too short"));
        }
        if let Some(copy) = shared.home.damaged_copy() {
            let told = format!("{copy} is a copy of files that an earlier start found damaged");
            shared.keep_everything(format!("{told}; remove it when no data is missing"));
        }
        for trouble in store.troubles() {
            tracing::warn!("{trouble}");
        }
        Ok(store)
    }

    pub(super) fn start(
        config: &StoreConfig,
        home: Home,
        engine: Box<dyn Engine>,
        extents: Extents,
        saved: Saved,
    ) -> StoreResult<Store> {
        let clock = config.clock.clone();
        let shared = Arc::new(Shared::new(config.mode, clock, home, engine, extents));
        let committer = Committer::new(Arc::clone(&shared))?;
        let opened_after = committer.last_tick();
        let dispatch = Dispatch::start(config, committer)?;
        Ok(Store(Arc::new(Inner {
            shared,
            dispatch,
            damaged: parking_lot::Mutex::default(),
            saved,
            replacing: Mutex::new(()),
            opened_after,
        })))
    }

    /// Creates a store of these parts that accepts no writes.
    pub(super) fn to_read(
        mode: Mode,
        clock: Clock,
        home: Home,
        engine: Box<dyn Engine>,
        extents: Extents,
    ) -> StoreResult<Store> {
        let shared = Arc::new(Shared::new(mode, clock, home, engine, extents));
        shared.take_no_writes("it was opened for reading only");
        let committer = Committer::new(Arc::clone(&shared))?;
        Ok(Store(Arc::new(Inner {
            opened_after: committer.last_tick(),
            shared,
            dispatch: Dispatch::Inline(Mutex::new(committer)),
            damaged: parking_lot::Mutex::default(),
            saved: Saved::default(),
            replacing: Mutex::new(()),
        })))
    }

    /// Reads published, durable state of one moment. Do not nest it and do not wait in it: the next
    /// commit waits for its end.
    pub fn read<T>(&self, f: impl FnOnce(&dyn View) -> T) -> T {
        self.0.shared.read(|view| f(view))
    }

    /// Runs an operation as one atomic step in commit order and waits until it is durable. A job
    /// that refuses changes nothing. Dropping the future does not undo the commit.
    ///
    /// # Errors
    /// The job's own; 500 when the store cannot write.
    pub async fn commit<T, F>(&self, job: F) -> Result<T, StorageError>
    where
        F: FnOnce(&mut Transaction<'_>, &Stamp) -> Result<T, StorageError> + Send + 'static,
        T: Send + 'static,
    {
        self.commit_for(Purpose::Grows, job).await
    }

    /// Like [`Store::commit`], with a purpose that decides whether it runs when there is little
    /// room.
    ///
    /// # Errors
    /// The job's own; 503 when there is no room for it; 500 when the store cannot write.
    pub async fn commit_for<T, F>(&self, purpose: Purpose, job: F) -> Result<T, StorageError>
    where
        F: FnOnce(&mut Transaction<'_>, &Stamp) -> Result<T, StorageError> + Send + 'static,
        T: Send + 'static,
    {
        let (sender, mut answer) = oneshot::channel();
        let asked = self.0.shared.asked();
        let work = Commit::new(asked, job, move |result| {
            // Fails when the client is gone; the commit stays.
            let _ = sender.send(result);
        });
        let work = work.awaited_on(self.0.runtime()).meant_for(purpose);
        self.0.dispatch.submit(Box::new(work));
        let closed = || Err(StoreError::Closed.into());
        match &self.0.dispatch {
            Dispatch::Inline(_) => answer.try_recv().unwrap_or_else(|_| closed()),
            // Tokio's paused clock stands still only while its own blocking pool is busy.
            Dispatch::Thread { .. } if self.0.shared.clock.follows_tokio() => {
                match tokio::task::spawn_blocking(|| answer.blocking_recv()).await {
                    Ok(Ok(result)) => result,
                    _ => closed(),
                }
            }
            _ => answer.await.unwrap_or_else(|_| closed()),
        }
    }

    /// Lets a stepped store take one step. Returns the point that it reached, or `None` when no
    /// commit waits. A new group has at most `most` commits.
    #[cfg(any(test, feature = "schedule"))]
    pub fn step(&self, most: usize) -> Option<Point> {
        match &self.0.dispatch {
            Dispatch::Stepped(stepped) => stepped.step(most),
            _ => None,
        }
    }

    /// Returns the emulator's time, which is never before that of a published commit.
    pub fn now(&self) -> Timestamp {
        self.0.shared.clock.now().max(self.last_used())
    }

    /// Returns the highest time used; the clock may not be set to an earlier one.
    pub fn last_used(&self) -> Timestamp {
        Timestamp::from_ticks(self.0.shared.last_now.load(Ordering::Acquire))
    }

    /// Returns how often another state replaced the current one: by a reset, snapshot or import.
    pub fn replacements(&self) -> u64 {
        self.0.shared.replacements.load(Ordering::SeqCst)
    }

    /// Returns the tick of the last commit before this opening, which is unique among openings that
    /// kept a commit; zero for a new store.
    pub fn opened_after(&self) -> Timestamp {
        self.0.opened_after
    }

    /// Starts to stage a payload of `len` bytes: in memory up to [`INLINE_BYTES_MAX`], else in an
    /// extent.
    ///
    /// # Errors
    /// When the store accepts no writes, or has no room for it.
    pub fn stage(&self, len: u64) -> StoreResult<PayloadWriter> {
        self.0.stage(len, Purpose::Grows)
    }

    /// Returns a reader of a payload's range, cut at the end of the payload; [`super::location`]
    /// finds payloads.
    pub fn payload(&self, payload: &Payload, range: Range<u64>) -> PayloadReader {
        payload.reader(range)
    }

    /// Returns the failure since which writes are refused; `None` when there was none.
    pub fn failure(&self) -> Option<&str> {
        self.0.shared.failure()
    }

    /// Like [`Store::commit`], for background work: blocks the thread until the commit is durable.
    ///
    /// # Errors
    /// The job's own; also when the store cannot write.
    pub fn commit_blocking<T, F>(&self, job: F) -> StoreResult<T>
    where
        F: FnOnce(&mut Transaction<'_>) -> StoreResult<T> + Send + 'static,
        T: Send + 'static,
    {
        self.0.commit_blocking(job)
    }

    /// Deletes all state, payloads and time. Payloads that are being staged or read stay intact.
    ///
    /// # Errors
    /// When the store accepts no writes.
    pub fn reset(&self) -> StoreResult<()> {
        let _alone = self.0.replacing.lock();
        self.0.replace(Next::Empty)
    }

    /// Builds another state and replaces the current one with it; after a crash one of the two is
    /// there. Writes to the current state during the build are lost.
    ///
    /// # Errors
    /// Those of `build`, which leave the current state unchanged; also when the store accepts no
    /// writes.
    pub fn replace<T, E: From<StoreError>>(
        &self,
        build: impl FnOnce(&mut Successor<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let _alone = self.0.replacing.lock();
        self.0.shared.writable()?;
        let mut successor = Successor::new(&self.0)?;
        let built = build(&mut successor).and_then(|built| Ok((built, successor.finish()?)));
        match built {
            Ok((built, next)) => {
                self.0.replace(Next::Built(next))?;
                Ok(built)
            }
            Err(error) => {
                // Remaining files do no harm, and the next start removes them.
                let _ = self.0.shared.home.remove_others();
                Err(error)
            }
        }
    }

    /// Continues time from the clock's when that is behind the last commit's. Stored times do not
    /// change; ticks keep rising, so that no ETag and no id is used twice.
    ///
    /// # Errors
    /// When the store accepts no writes.
    pub fn rebase(&self) -> StoreResult<()> {
        match &self.0.dispatch {
            Dispatch::Inline(committer) => committer.lock().rebase(),
            Dispatch::Thread { requests, .. } => {
                let asked = ask(requests.read().as_ref(), Request::Rebase);
                asked.and_then(answer_of)
            }
            #[cfg(any(test, feature = "schedule"))]
            Dispatch::Stepped(stepped) => stepped
                .finish(|committer| committer.map_or(Err(StoreError::Closed), Committer::rebase)),
        }
    }

    /// Makes everything durable, stops the committer and releases the files. Serves waiting commits
    /// first; later calls get [`StoreError::Closed`]. A second close does nothing.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn close(&self) -> StoreResult<()> {
        self.0.close()
    }

    /// Returns whether the store keeps nothing on disk.
    pub fn is_in_memory(&self) -> bool {
        self.0.shared.mode == Mode::Memory
    }

    /// Returns whether the store never had a commit.
    pub fn is_fresh(&self) -> bool {
        self.last_used().ticks() == 0
    }

    /// Returns the store's figures.
    pub fn stats(&self) -> Stats {
        let (segments, segment_bytes) = self.0.shared.extents.size();
        let engine_bytes = self.0.shared.published.read().engine.disk_bytes();
        Stats {
            segments: segments as u64,
            segment_bytes,
            engine_bytes,
            available_bytes: self.0.shared.home.available(),
            ..self.0.shared.stats.read()
        }
    }
}

impl Inner {
    pub(super) fn shared(&self) -> &Shared {
        &self.shared
    }

    pub(super) fn saved(&self) -> &Saved {
        &self.saved
    }

    pub(super) fn damaged(&self) -> &parking_lot::Mutex<BTreeSet<PayloadId>> {
        &self.damaged
    }

    /// Returns the lock that is held while another state is prepared.
    pub(super) fn replacing(&self) -> &Mutex<()> {
        &self.replacing
    }

    pub(super) fn replace(&self, next: Next) -> StoreResult<()> {
        match &self.dispatch {
            Dispatch::Inline(committer) => committer.lock().replace(next),
            Dispatch::Thread { requests, .. } => {
                let asked = ask(requests.read().as_ref(), |answer| {
                    Request::Replace(Box::new(next), answer)
                });
                asked.and_then(answer_of)
            }
            #[cfg(any(test, feature = "schedule"))]
            Dispatch::Stepped(stepped) => stepped.finish(|committer| {
                committer.map_or(Err(StoreError::Closed), |committer| committer.replace(next))
            }),
        }
    }

    pub(super) fn stage(&self, len: u64, purpose: Purpose) -> StoreResult<PayloadWriter> {
        self.shared.writable()?;
        self.shared.stats.count_staging(len);
        let reservation = if len > INLINE_BYTES_MAX as u64 {
            self.shared.admit(framed_bytes(len), purpose)?;
            let reserved = self.shared.extents.reserve(len);
            // A failure to create a segment may be the first sign that the directory is gone.
            Some(reserved.inspect_err(|_| drop(self.shared.look()))?)
        } else {
            None
        };
        Ok(PayloadWriter::new(len, reservation))
    }

    /// Like [`Store::commit`], but blocks the thread.
    pub(super) fn commit_blocking<T, F>(&self, job: F) -> StoreResult<T>
    where
        F: FnOnce(&mut Transaction<'_>) -> StoreResult<T> + Send + 'static,
        T: Send + 'static,
    {
        let (sender, answer) = mpsc::sync_channel(1);
        let run = move |tx: &mut Transaction<'_>, _: &Stamp| Ok(job(tx)?);
        let asked = self.shared.asked();
        let work = Commit::new(asked, run, move |result: Result<T, StorageError>| {
            // Cannot fail: the receiver waits below.
            let _ = sender.send(result);
        });
        let work = work.meant_for(Purpose::Frees);
        self.dispatch.submit(Box::new(work));
        #[cfg(any(test, feature = "schedule"))]
        if let Dispatch::Stepped(stepped) = &self.dispatch {
            // This thread waits, so no other can step.
            stepped.finish(|_| ());
        }
        match answer.recv() {
            Ok(result) => result.map_err(|error| match error.code() {
                ErrorCode::ServerBusy => StoreError::Refused(error.message().to_owned()),
                _ => StoreError::Io(error.to_string()),
            }),
            Err(_) => Err(StoreError::Closed),
        }
    }

    /// Waits until no crash can restore a state before the published one. When every commit is
    /// durable before it is published, that is so already.
    pub(super) fn write_out(&self) -> StoreResult<()> {
        match &self.dispatch {
            Dispatch::Thread { requests, .. } if self.shared.mode == Mode::Fast => {
                let asked = ask(requests.read().as_ref(), Request::WriteOut);
                asked.and_then(answer_of)
            }
            _ => Ok(()),
        }
    }

    /// Returns the caller's runtime if the committer has a thread to answer it and the runtime has
    /// its own threads; a single-threaded runtime may not be running.
    fn runtime(&self) -> Option<Handle> {
        let is_driven = |on: &Handle| on.runtime_flavor() == RuntimeFlavor::MultiThread;
        match &self.dispatch {
            Dispatch::Thread { .. } if !self.shared.clock.follows_tokio() => {
                Handle::try_current().ok().filter(is_driven)
            }
            _ => None,
        }
    }

    fn close(&self) -> StoreResult<()> {
        if !self.shared.begin_close() {
            return Ok(());
        }
        let synced = self.dispatch.close();
        self.shared.end_close();
        synced
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Err(error) = self.close() {
            tracing::error!(%error, "cannot close the store cleanly");
        }
    }
}
