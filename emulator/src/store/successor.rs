//! Builds another state beside the current one.

use std::sync::Arc;

use bytes::Bytes;

use super::commit::check_sizes;
use super::committer::Built;
use super::engine::Engine;
use super::error::{StoreError, StoreResult};
use super::extents::{Reservation, Segment};
use super::handle::Inner;
use super::home::{Bare, Purpose};
use super::image::{Entry, Image};
use super::keys;
use super::payload::{Extent, Location, Payload, PayloadId, Source, enter_segment};
use super::staging::{PayloadWriter, Place, Staged};
use super::stamp;
use super::view::{Over, Stamp, Transaction, View, Visit, Writes};

/// Bytes of writes after which they go to the engine; limits the memory of a build.
const PENDING_BYTES_MAX: usize = 4 * 1024 * 1024;

/// A state under construction beside the current one: [`Store::replace`](super::Store::replace). It
/// starts empty.
pub struct Successor<'a> {
    store: &'a Inner,
    engine: Box<dyn Engine>,
    pending: Writes,
    pending_bytes: usize,
    held: Vec<Reservation>,
}

impl<'a> Successor<'a> {
    pub(super) fn new(store: &'a Inner) -> StoreResult<Self> {
        Ok(Successor {
            engine: store.shared().home.prepare()?,
            store,
            pending: Writes::new(),
            pending_bytes: 0,
            held: Vec::new(),
        })
    }

    /// Starts to stage a payload for a later [`transact`](Self::transact).
    ///
    /// # Errors
    /// When the store accepts no writes.
    pub fn stage(&self, len: u64) -> StoreResult<PayloadWriter> {
        self.store.stage(len, Purpose::Grows)
    }

    /// Runs a job like a commit, and keeps its writes if it succeeds.
    ///
    /// # Errors
    /// The job's own; also when the engine cannot write.
    pub fn transact<T, E: From<StoreError>>(
        &mut self,
        job: impl FnOnce(&mut Transaction<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut tx = Transaction::new(&*self);
        let result = job(&mut tx)?;
        let (writes, held) = tx.into_parts();
        check_sizes(&writes).map_err(|error| StoreError::Corrupt(error.to_string()))?;
        self.held.extend(held);
        for (key, written) in writes {
            self.write(key, written)?;
        }
        Ok(result)
    }

    /// Adds the whole content of an image.
    ///
    /// # Errors
    /// When the image is damaged or the engine cannot write.
    pub fn take(&mut self, image: &Image) -> StoreResult<()> {
        image.scan(|entry| match entry {
            Entry::Payload(id, payload) => self.payload(id, &payload),
            Entry::Record(key, value) => self.record(key, value.clone()),
        })
    }

    /// Adds a record. Skips records that concern a single store; those about places of payloads
    /// come from [`payload`](Self::payload).
    ///
    /// # Errors
    /// When the record is too large, or the engine cannot write.
    pub fn record(&mut self, key: &[u8], value: Bytes) -> StoreResult<()> {
        if keys::is_local(key) {
            return Ok(());
        }
        let writes = Writes::from([(key.to_vec(), Some(value))]);
        check_sizes(&writes).map_err(|error| StoreError::Corrupt(error.to_string()))?;
        for (key, written) in writes {
            self.write(key, written)?;
        }
        Ok(())
    }

    /// Adds a payload under its id. Shares it if it is in this store already, and copies it
    /// otherwise.
    ///
    /// # Errors
    /// When it cannot be read, or the disk fails.
    pub fn payload(&mut self, id: PayloadId, payload: &Payload) -> StoreResult<()> {
        let at = match payload.source() {
            Source::Inline(bytes) => {
                let location = Location::Inline(bytes.clone());
                return self.write(keys::location(id), Some(location.encode().into()));
            }
            Source::Extent { segment, offset } => self.is_own(segment).then(|| Extent {
                segment: segment.number(),
                offset: *offset,
                len: payload.len(),
            }),
        };
        let at = match at {
            Some(at) => at,
            None => self.copy(payload)?,
        };
        self.enter(id, at)
    }

    /// Adds staged bytes under an id.
    ///
    /// # Errors
    /// When the engine cannot write.
    pub fn staged(&mut self, id: PayloadId, staged: Staged) -> StoreResult<()> {
        match staged.place {
            Place::Inline(bytes) => {
                let location = Location::Inline(bytes);
                self.write(keys::location(id), Some(location.encode().into()))
            }
            Place::Extent(reservation) => {
                let at = place(&reservation, staged.len);
                self.held.push(reservation);
                self.enter(id, at)
            }
        }
    }

    /// Adds a copy of an added payload under another id.
    ///
    /// # Errors
    /// When it cannot be read, or the disk fails.
    pub fn duplicate(&mut self, id: PayloadId, of: PayloadId) -> StoreResult<()> {
        let payload = super::payload::location(self, of)?;
        let at = self.copy(&payload)?;
        self.enter(id, at)
    }

    /// Sets the stamp of this state's last commit.
    ///
    /// # Errors
    /// When the engine cannot write.
    pub fn stamp(&mut self, stamp: Stamp) -> StoreResult<()> {
        self.write(keys::STAMP.to_vec(), Some(stamp::encode(stamp)))
    }

    fn is_own(&self, segment: &Arc<Segment>) -> bool {
        let own = self.store.shared().extents.pin(segment.number());
        own.is_some_and(|own| Arc::ptr_eq(&own, segment))
    }

    fn copy(&mut self, payload: &Payload) -> StoreResult<Extent> {
        let mut writer = self.store.stage(payload.len(), Purpose::Grows)?;
        let mut reader = payload.reader(0..payload.len());
        while let Some(chunk) = reader.next_chunk()? {
            writer.write(&chunk)?;
        }
        let staged = writer.finish_unsynced()?;
        match staged.place {
            Place::Extent(reservation) => {
                let at = place(&reservation, staged.len);
                self.held.push(reservation);
                Ok(at)
            }
            Place::Inline(_) => Err(StoreError::Corrupt("a payload that is too small".into())),
        }
    }

    fn enter(&mut self, id: PayloadId, at: Extent) -> StoreResult<()> {
        self.transact(|tx| {
            enter_segment(tx, id, at)?;
            tx.put(keys::location(id), Location::Extent(at).encode());
            Ok(())
        })
    }

    fn write(&mut self, key: Vec<u8>, written: Option<Bytes>) -> StoreResult<()> {
        self.pending_bytes += key.len() + written.as_ref().map_or(0, Bytes::len);
        self.pending.insert(key, written);
        if self.pending_bytes >= PENDING_BYTES_MAX {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> StoreResult<()> {
        self.pending_bytes = 0;
        self.engine.apply(&std::mem::take(&mut self.pending))
    }

    pub(super) fn finish(mut self) -> StoreResult<Built> {
        self.flush()?;
        self.store.shared().extents.sync(&self.held)?;
        self.engine.sync()?;
        let reached = stamp::read(&Bare(self.engine.as_ref()))?;
        let mut segments = super::shared::segments(&self)?;
        segments.retain(|number, _| {
            self.held
                .iter()
                .all(|own| own.segment().number() != *number)
        });
        Ok(Built {
            engine: self.engine,
            reached,
            segments,
            held: self.held,
        })
    }
}

impl View for Successor<'_> {
    fn get(&self, key: &[u8]) -> StoreResult<Option<Bytes>> {
        Over::new(&Bare(self.engine.as_ref()), &self.pending).get(key)
    }

    fn scan(&self, from: &[u8], to: &[u8], visit: &mut Visit<'_>) -> StoreResult<()> {
        Over::new(&Bare(self.engine.as_ref()), &self.pending).scan(from, to, visit)
    }

    fn pin(&self, segment: u64) -> Option<Arc<Segment>> {
        let mut own = self.held.iter().map(Reservation::segment);
        own.find(|held| held.number() == segment)
            .cloned()
            .or_else(|| self.store.shared().extents.pin(segment))
    }
}

fn place(reservation: &Reservation, len: u64) -> Extent {
    Extent {
        segment: reservation.segment().number(),
        offset: reservation.offset(),
        len,
    }
}
