//! The store as operations hold it.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use parking_lot::{Mutex, RwLock};
use smalt_protocol::{StorageError, Timestamp};
use tokio::sync::oneshot;

use super::commit::{Commit, Group, Stamps, Work, read_stamp};
use super::config::{Mode, StoreConfig};
use super::engine::{Engine, MemoryEngine};
use super::error::{OpenError, StoreError, StoreResult};
use super::extents::{Extents, Segment};
use super::keys;
use super::payload::Payload;
use super::reader::PayloadReader;
use super::staging::PayloadWriter;
use super::view::{INLINE_BYTES_MAX, Stamp, Transaction, View, Visit};
use crate::clock::Clock;

/// What [`Store::maintain`] did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MaintainReport {
    /// Payloads moved out of segments that were mostly garbage.
    pub payloads_moved: usize,
    /// Their bytes.
    pub bytes_moved: u64,
    /// Segments deleted.
    pub segments_removed: usize,
    /// Bytes given back to the disk.
    pub bytes_freed: u64,
    /// Whether the budget ended before the work.
    pub more: bool,
}

/// The store. Clones are cheap and share it.
#[derive(Clone)]
pub struct Store(Arc<Inner>);

struct Inner {
    clock: Clock,
    /// Readers hold it for the whole of a read; the committer takes it to publish.
    engine: RwLock<Box<dyn Engine>>,
    extents: Extents,
    stamps: Mutex<Stamps>,
    closed: AtomicBool,
}

impl Store {
    /// Opens or creates a store.
    ///
    /// # Errors
    /// [`OpenError`] says what is wrong and what to do; nothing is ever reset.
    pub fn open(config: StoreConfig) -> Result<Store, OpenError> {
        if config.mode != Mode::Memory {
            return Err(OpenError::NoDirectory);
        }
        let none = Stamp {
            now: Timestamp::MIN,
            tick: Timestamp::MIN,
        };
        Ok(Store(Arc::new(Inner {
            engine: RwLock::new(Box::new(MemoryEngine::default())),
            extents: Extents::default(),
            stamps: Mutex::new(Stamps::new(config.clock.clone(), none)),
            clock: config.clock,
            closed: AtomicBool::new(false),
        })))
    }

    /// Reads published, durable state of one moment. Not to be nested, and not to wait in: the next
    /// commit waits for it to end.
    pub fn read<T>(&self, f: impl FnOnce(&dyn View) -> T) -> T {
        let engine = self.0.engine.read();
        f(&Published {
            engine: engine.as_ref(),
            extents: &self.0.extents,
        })
    }

    /// Runs an operation as one atomic step in commit order and waits until it is durable. A job
    /// that refuses leaves nothing.
    ///
    /// # Errors
    /// The job's own; 500 when the store cannot write.
    pub async fn commit<T, F>(&self, job: F) -> Result<T, StorageError>
    where
        F: FnOnce(&mut Transaction<'_>, &Stamp) -> Result<T, StorageError> + Send + 'static,
        T: Send + 'static,
    {
        let (sender, mut answer) = oneshot::channel();
        let work = Commit::new(job, move |result| {
            // Nobody waits any more when the client has gone; the commit stands.
            let _ = sender.send(result);
        });
        self.commit_inline(Box::new(work));
        answer
            .try_recv()
            .unwrap_or_else(|_| Err(StoreError::Closed.into()))
    }

    fn commit_inline(&self, mut work: Box<dyn Work>) {
        let mut stamps = self.0.stamps.lock();
        if self.0.closed.load(Ordering::Acquire) {
            return work.answer(Err(StoreError::Closed));
        }
        let stamp = stamps.next();
        let (writes, held) = self.read(|published| {
            let mut group = Group::new(published);
            group.run(work.as_mut(), &stamp);
            (group.writes, group.held)
        });
        let engine = self.0.engine.write();
        for reservation in &held {
            self.0.extents.enter(reservation.segment());
        }
        let applied = engine.apply(&writes);
        for (key, written) in &writes {
            if let (None, Some(segment)) = (written, keys::segment_of(key)) {
                self.0.extents.forget(segment);
            }
        }
        drop(engine);
        work.answer(applied);
    }

    /// The emulator's time: never before a time that was persisted.
    pub fn now(&self) -> Timestamp {
        self.0.clock.now().max(self.0.stamps.lock().last().now)
    }

    /// The highest time that was used: the clock may not be set below it.
    pub fn last_used(&self) -> Timestamp {
        self.0.stamps.lock().last().now
    }

    /// Starts to stage a payload of `len` bytes: in memory up to [`INLINE_BYTES_MAX`], else in an
    /// extent.
    ///
    /// # Errors
    /// When the store takes no writes.
    pub fn stage(&self, len: u64) -> StoreResult<PayloadWriter> {
        if self.0.closed.load(Ordering::Acquire) {
            return Err(StoreError::Closed);
        }
        let reservation = if len > INLINE_BYTES_MAX as u64 {
            Some(self.0.extents.reserve(len)?)
        } else {
            None
        };
        Ok(PayloadWriter::new(len, reservation))
    }

    /// Reads a range of a payload that [`super::location`] found.
    pub fn payload(&self, payload: &Payload, range: Range<u64>) -> PayloadReader {
        payload.reader(range)
    }

    /// Forgets everything: state, payloads, time.
    ///
    /// # Errors
    /// When the store takes no writes.
    pub fn reset(&self) -> StoreResult<()> {
        let mut stamps = self.0.stamps.lock();
        let mut engine = self.0.engine.write();
        *engine = Box::new(MemoryEngine::default());
        self.0.extents.clear();
        let none = read_stamp(&Published {
            engine: engine.as_ref(),
            extents: &self.0.extents,
        })?;
        *stamps = Stamps::new(self.0.clock.clone(), none);
        Ok(())
    }

    /// Does background work in at most `budget` steps: a payload moved or a segment removed is one.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn maintain(&self, budget: usize) -> StoreResult<MaintainReport> {
        let _ = budget;
        Ok(MaintainReport::default())
    }

    /// Takes no more commits.
    pub fn close(&self) {
        self.0.closed.store(true, Ordering::Release);
    }
}

struct Published<'a> {
    engine: &'a dyn Engine,
    extents: &'a Extents,
}

impl View for Published<'_> {
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

#[cfg(test)]
mod tests {
    use super::super::{adopt, location, release, retain};
    use super::*;

    fn store() -> Store {
        let clock = Clock::manual(Timestamp::from_unix_s(1_000));
        Store::open(StoreConfig::memory(clock)).unwrap()
    }

    #[tokio::test]
    async fn a_commit_is_read_back_and_a_refused_one_leaves_nothing() {
        let store = store();
        let put = |tx: &mut Transaction<'_>| tx.put(b"key".to_vec(), "value");
        let refused: Result<(), _> = store
            .commit(move |tx, _| {
                put(tx);
                Err(StorageError::internal("refused"))
            })
            .await;
        assert!(refused.is_err());
        assert_eq!(store.read(|view| view.get(b"key")).unwrap(), None);
        let stamp = store
            .commit(move |tx, stamp| {
                put(tx);
                Ok(*stamp)
            })
            .await
            .unwrap();
        assert!(stamp.tick > stamp.now);
        let value = store.read(|view| view.get(b"key")).unwrap();
        assert_eq!(value.as_deref(), Some(b"value".as_slice()));
    }

    #[tokio::test]
    async fn payloads_of_all_sizes_live_as_long_as_they_are_referred_to() {
        let store = store();
        for len in [0, 1, 16 * 1024, 16 * 1024 + 1, 65_536, 65_537, 300_000] {
            let bytes: Vec<u8> = (0..len).map(|i: u32| (i % 251) as u8).collect();
            let mut writer = store.stage(u64::from(len)).unwrap();
            for piece in bytes.chunks(7_000) {
                writer.write(piece).unwrap();
            }
            let staged = writer.finish().await.unwrap();
            let id = store
                .commit(move |tx, _| {
                    let id = adopt(tx, staged)?;
                    retain(tx, id)?;
                    Ok(id)
                })
                .await
                .unwrap();
            store
                .commit(move |tx, _| Ok(release(tx, id)?))
                .await
                .unwrap();
            let payload = store.read(|view| location(view, id)).unwrap();
            store
                .commit(move |tx, _| Ok(release(tx, id)?))
                .await
                .unwrap();
            assert!(store.read(|view| location(view, id)).is_err());
            let all = store.payload(&payload, 0..u64::MAX).read_all().unwrap();
            assert_eq!(all, bytes);
            let (from, to) = (len / 3, len - len / 4);
            let range = u64::from(from)..u64::from(to);
            let part = store.payload(&payload, range).read_all().unwrap();
            assert_eq!(part, bytes[from as usize..to as usize]);
        }
        assert!(store.0.extents.pin(1).is_none());
    }
}
