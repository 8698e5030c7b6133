//! The committer: takes waiting commits in order, in groups, and publishes a group when it is
//! durable. In memory it runs inline; on disk on a thread of its own.
//!
//! A group: jobs run over the published state plus what the group did; payloads are synced; a mask
//! of the old values hides the batch from readers; the batch is applied and synced; the mask goes;
//! everybody is answered. If a write fails in between, what is on disk is unknown: the mask stays
//! and the store takes no more writes until it is opened again.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, SyncSender};

use super::commit::{Group, Stamps, Work, read_stamp};
use super::engine::Engine;
use super::error::{StoreError, StoreResult};
use super::extents::Reservation;
use super::failpoint;
use super::keys;
use super::shared::{Published, Shared, Unmasked};
use super::view::Writes;
use crate::planted::planted;

/// Commits in one group: bounds the memory of a group and the wait of its first member.
const GROUP_COMMITS_MAX: usize = 512;

/// What the committer is asked.
pub(super) enum Request {
    /// Run a commit.
    Commit(Box<dyn Work>),
    /// Forget everything.
    Reset(SyncSender<StoreResult<()>>),
    /// Make everything durable and end.
    Close(SyncSender<StoreResult<()>>),
}

/// Runs commits. There is one of it.
pub(super) struct Committer {
    shared: Arc<Shared>,
    stamps: Stamps,
}

impl Committer {
    /// Goes on from the last stamp that was persisted.
    pub(super) fn new(shared: Arc<Shared>) -> StoreResult<Self> {
        let last = shared.unmasked(|view| read_stamp(view))?;
        shared.last_now.store(last.now.ticks(), Ordering::Release);
        let stamps = Stamps::new(shared.clock.clone(), last);
        Ok(Committer { shared, stamps })
    }

    /// Serves requests until it is told to close, or nobody is left to ask.
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
                Request::Reset(answer) => {
                    let _ = answer.send(self.reset());
                }
                Request::Close(answer) => {
                    let _ = answer.send(self.sync_all());
                    return;
                }
            }
            next = next.or_else(|| requests.recv().ok());
        }
        // Every handle is gone without a close: fast mode still has something to write.
        if let Err(error) = self.sync_all() {
            tracing::error!(%error, "the store could not be closed");
        }
    }

    fn sync_all(&self) -> StoreResult<()> {
        guarded(|| self.shared.sync_all()).inspect_err(|error| self.shared.fail(error))
    }

    /// Runs a group of commits, publishes it and answers it.
    pub(super) fn run(&mut self, mut group: Vec<Box<dyn Work>>) {
        let outcome = self.shared.writable().and_then(|()| {
            let (writes, held) = self.collect(&mut group);
            failpoint::reach("commit.collected");
            self.publish(&writes, &held)
        });
        self.shared.stats.count_group(group.len());
        for work in group {
            work.answer(outcome.clone());
        }
    }

    fn collect(&mut self, group: &mut [Box<dyn Work>]) -> (Writes, Vec<Reservation>) {
        let stamps = &mut self.stamps;
        self.shared.unmasked(|view| {
            let mut done = Group::new(view);
            for work in group {
                done.run(work.as_mut(), &stamps.next());
            }
            (done.writes, done.held)
        })
    }

    fn publish(&self, writes: &Writes, held: &[Reservation]) -> StoreResult<()> {
        if !writes.is_empty() {
            let published = guarded(|| {
                if self.shared.is_volatile() {
                    self.publish_in_memory(writes, held)
                } else {
                    self.publish_on_disk(writes, held)
                }
            });
            published.inspect_err(|error| {
                if !planted("failure-forgotten") {
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
        for reservation in held {
            self.shared.extents.enter(reservation.segment());
        }
        published.engine.apply(writes)?;
        for (key, written) in writes {
            if let (None, Some(segment)) = (written, keys::segment_of(key)) {
                self.shared.extents.forget(segment);
            }
        }
        Ok(())
    }

    fn publish_on_disk(&self, writes: &Writes, held: &[Reservation]) -> StoreResult<()> {
        let engine = Arc::clone(&self.shared.published.read().engine);
        if self.shared.is_durable() && !planted("payload-not-synced") {
            self.shared.extents.sync(held)?;
            failpoint::reach("commit.payloads_durable");
        }
        let mask = old_values(engine.as_ref(), writes)?;
        if !planted("unsynced-visible") {
            self.shared.published.write().mask = mask;
        }
        failpoint::reach("commit.masked");
        engine.apply(writes)?;
        failpoint::reach("commit.applied");
        if self.shared.is_durable() && !planted("acknowledged-before-sync") {
            engine.sync()?;
            failpoint::reach("commit.durable");
        }
        let mask = std::mem::take(&mut self.shared.published.write().mask);
        drop(mask);
        failpoint::reach("commit.published");
        Ok(())
    }

    /// Forgets everything: state, payloads, time.
    pub(super) fn reset(&mut self) -> StoreResult<()> {
        self.shared.writable()?;
        // After a failure it is unknown which of the two engines a restart would find.
        let empty = guarded(|| self.shared.home.next_engine());
        let empty = empty.inspect_err(|error| self.shared.fail(error))?;
        let old = {
            let mut published = self.shared.published.write();
            self.shared.extents.clear();
            std::mem::replace(
                &mut *published,
                Published {
                    engine: Arc::from(empty),
                    mask: Writes::new(),
                },
            )
        };
        drop(old);
        failpoint::reach("reset.published");
        self.shared.last_now.store(0, Ordering::Release);
        let last = self
            .shared
            .unmasked(|view: &Unmasked<'_>| read_stamp(view))?;
        self.stamps = Stamps::new(self.shared.clock.clone(), last);
        self.shared.home.remove_others()
    }
}

/// sled panics when its own invariants break: the committer, its readers and the process go on.
fn guarded<T>(f: impl FnOnce() -> StoreResult<T>) -> StoreResult<T> {
    catch_unwind(AssertUnwindSafe(f))
        .unwrap_or_else(|_| Err(StoreError::Io("the engine gave up".to_owned())))
}

fn old_values(engine: &dyn Engine, writes: &Writes) -> StoreResult<Writes> {
    let old = writes.keys().map(|key| Ok((key.clone(), engine.get(key)?)));
    old.collect()
}
