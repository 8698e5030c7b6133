//! The store as operations hold it.

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

/// The store. Clones are cheap and share it; the last one to go closes it.
#[derive(Clone)]
pub struct Store(pub(super) Arc<Inner>);

pub(super) struct Inner {
    shared: Arc<Shared>,
    dispatch: Dispatch,
    /// Payloads whose bytes maintenance found damaged. Held while it runs: two at once would move
    /// the same payloads.
    damaged: parking_lot::Mutex<BTreeSet<PayloadId>>,
    saved: Saved,
    /// Held by whoever prepares another state.
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

    /// Opens or creates a store on a disk of the caller's, which takes everything but the files
    /// that the metadata engine opens by itself.
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
            let told = format!("{copy} holds what an earlier opening found damaged");
            shared.keep_everything(format!("{told}; remove it when nothing is missed"));
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
        let dispatch =
            Dispatch::start(config, committer).map_err(|e| StoreError::Io(e.to_string()))?;
        Ok(Store(Arc::new(Inner {
            shared,
            dispatch,
            damaged: parking_lot::Mutex::default(),
            saved,
            replacing: Mutex::new(()),
            opened_after,
        })))
    }

    /// A store of these parts that takes no writes.
    pub(super) fn to_read(
        mode: Mode,
        clock: Clock,
        home: Home,
        engine: Box<dyn Engine>,
        extents: Extents,
    ) -> StoreResult<Store> {
        let shared = Arc::new(Shared::new(mode, clock, home, engine, extents));
        shared.take_no_writes("it was opened to be read");
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

    /// Reads published, durable state of one moment. Not to be nested, and not to wait in: the next
    /// commit waits for it to end.
    pub fn read<T>(&self, f: impl FnOnce(&dyn View) -> T) -> T {
        self.0.shared.read(|view| f(view))
    }

    /// Runs an operation as one atomic step in commit order and waits until it is durable. A job
    /// that refuses leaves nothing. A caller that goes away does not take its commit back.
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

    /// As [`Store::commit`]; the purpose says whether it goes on when there is little room.
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
            // Nobody waits any more when the client has gone; the commit stands.
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

    /// Lets a stepped store take one step: the point that it has reached, `None` when no commit
    /// waits. A group that is formed now has at most so many commits.
    #[cfg(any(test, feature = "schedule"))]
    pub fn step(&self, most: usize) -> Option<Point> {
        match &self.0.dispatch {
            Dispatch::Stepped(stepped) => stepped.step(most),
            _ => None,
        }
    }

    /// The emulator's time: never before that of a published commit.
    pub fn now(&self) -> Timestamp {
        self.0.shared.clock.now().max(self.last_used())
    }

    /// The highest time that was used: the clock may not be set below it.
    pub fn last_used(&self) -> Timestamp {
        Timestamp::from_ticks(self.0.shared.last_now.load(Ordering::Acquire))
    }

    /// The tick of the last commit before this opening, which no other opening that kept a commit
    /// has; zero for a fresh store.
    pub fn opened_after(&self) -> Timestamp {
        self.0.opened_after
    }

    /// Starts to stage a payload of `len` bytes: in memory up to [`INLINE_BYTES_MAX`], else in an
    /// extent.
    ///
    /// # Errors
    /// When the store takes no writes, or has no room for it.
    pub fn stage(&self, len: u64) -> StoreResult<PayloadWriter> {
        self.0.stage(len, Purpose::Grows)
    }

    /// Reads a range of a payload that [`super::location`] found; what lies beyond the end is left
    /// out.
    pub fn payload(&self, payload: &Payload, range: Range<u64>) -> PayloadReader {
        payload.reader(range)
    }

    /// Why no more writes are taken, when one has failed.
    pub fn failure(&self) -> Option<&str> {
        self.0.shared.failure()
    }

    /// As [`Store::commit`], for background work: blocks the thread until it is durable.
    ///
    /// # Errors
    /// The job's own; when the store cannot write.
    pub fn commit_blocking<T, F>(&self, job: F) -> StoreResult<T>
    where
        F: FnOnce(&mut Transaction<'_>) -> StoreResult<T> + Send + 'static,
        T: Send + 'static,
    {
        self.0.commit_blocking(job)
    }

    /// Forgets everything: state, payloads, time. What is being staged or read stays whole.
    ///
    /// # Errors
    /// When the store takes no writes.
    pub fn reset(&self) -> StoreResult<()> {
        let _alone = self.0.replacing.lock();
        self.0.replace(Next::Empty)
    }

    /// Builds another state beside the current one and goes on with it: after a crash there is the
    /// one or the other. What is written to the current state meanwhile goes with it.
    ///
    /// # Errors
    /// Those of `build`, which leave the current state as it is; when the store takes no writes.
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
                // What is left of it is in nobody's way, and gone after the next start.
                let _ = self.0.shared.home.remove_others();
                Err(error)
            }
        }
    }

    /// Lets time go on from the clock's, when that is behind the last commit's. Times that are kept
    /// stay as they are; ticks go on, so that no ETag and no id is given twice.
    ///
    /// # Errors
    /// When the store takes no writes.
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

    /// Makes everything durable, ends the committer and lets go of the files. Commits that wait are
    /// served first; whatever comes later gets [`StoreError::Closed`]. A second close does nothing.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn close(&self) -> StoreResult<()> {
        self.0.close()
    }

    /// Whether it keeps nothing on disk.
    pub fn is_in_memory(&self) -> bool {
        self.0.shared.mode == Mode::Memory
    }

    /// Whether nothing was ever committed to it.
    pub fn is_fresh(&self) -> bool {
        self.last_used().ticks() == 0
    }

    /// The store's figures.
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

    /// The lock of whoever prepares another state.
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
            // A segment that cannot be made may be the first to tell that the directory is gone.
            Some(reserved.inspect_err(|_| drop(self.shared.look()))?)
        } else {
            None
        };
        Ok(PayloadWriter::new(len, reservation))
    }

    /// As [`Store::commit`], waiting on the thread.
    pub(super) fn commit_blocking<T, F>(&self, job: F) -> StoreResult<T>
    where
        F: FnOnce(&mut Transaction<'_>) -> StoreResult<T> + Send + 'static,
        T: Send + 'static,
    {
        let (sender, answer) = mpsc::sync_channel(1);
        let run = move |tx: &mut Transaction<'_>, _: &Stamp| Ok(job(tx)?);
        let asked = self.shared.asked();
        let work = Commit::new(asked, run, move |result: Result<T, StorageError>| {
            // The receiver waits below.
            let _ = sender.send(result);
        });
        let work = work.meant_for(Purpose::Frees);
        self.dispatch.submit(Box::new(work));
        #[cfg(any(test, feature = "schedule"))]
        if let Dispatch::Stepped(stepped) = &self.dispatch {
            // Whoever would step waits here.
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

    /// Waits until no crash brings back a state before the published one. Where every commit is
    /// durable before it is published that is so already.
    pub(super) fn write_out(&self) -> StoreResult<()> {
        match &self.dispatch {
            Dispatch::Thread { requests, .. } if self.shared.mode == Mode::Fast => {
                let asked = ask(requests.read().as_ref(), Request::WriteOut);
                asked.and_then(answer_of)
            }
            _ => Ok(()),
        }
    }

    /// Where the caller's task runs, if the committer has a thread that answers it and the
    /// runtime has threads of its own: another one may stand still.
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
            tracing::error!(%error, "the store could not be closed");
        }
    }
}
