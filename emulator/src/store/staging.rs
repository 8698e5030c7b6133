//! Staging: writes a payload's bytes before the commit that takes them.

use bytes::Bytes;

use super::error::{StoreError, StoreResult};
use super::extents::{FRAME_BYTES, Reservation};

/// Receives a payload of known length piece by piece. Dropping it frees the bytes.
#[derive(Debug)]
pub struct PayloadWriter {
    len: u64,
    written: u64,
    /// The bytes of an incomplete frame, or all bytes of an inline payload.
    buffer: Vec<u8>,
    frames: u64,
    reservation: Option<Reservation>,
}

/// Bytes that wait for a commit to take them ([`super::adopt`]). Dropping it frees them.
#[derive(Debug)]
pub struct Staged {
    pub(super) len: u64,
    pub(super) place: Place,
}

#[derive(Debug)]
pub(super) enum Place {
    Inline(Bytes),
    Extent(Reservation),
}

impl Staged {
    /// Creates a small payload, of at most [`super::INLINE_BYTES_MAX`], from bytes in memory.
    ///
    /// # Errors
    /// When it is larger: stage it with [`super::Store::stage`].
    pub fn inline(bytes: Bytes) -> StoreResult<Self> {
        if bytes.len() > super::INLINE_BYTES_MAX {
            return Err(StoreError::Io(format!(
                "{} bytes are too many for an inline payload",
                bytes.len()
            )));
        }
        Ok(Staged {
            len: bytes.len() as u64,
            place: Place::Inline(bytes),
        })
    }

    /// Returns the length in bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Returns whether the payload has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl PayloadWriter {
    pub(super) fn new(len: u64, reservation: Option<Reservation>) -> Self {
        PayloadWriter {
            len,
            written: 0,
            buffer: Vec::with_capacity(Reservation::buffer_bytes(len)),
            frames: 0,
            reservation,
        }
    }

    /// Appends bytes. Keeps at most one frame in memory.
    ///
    /// # Errors
    /// When there are more bytes than announced, or the disk fails.
    pub fn write(&mut self, mut bytes: &[u8]) -> StoreResult<()> {
        if bytes.len() as u64 > self.len - self.written {
            return Err(self.wrong_length("more"));
        }
        self.written += bytes.len() as u64;
        while !bytes.is_empty() {
            let room = FRAME_BYTES - self.buffer.len();
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            self.buffer.extend_from_slice(now);
            bytes = later;
            if self.buffer.len() == FRAME_BYTES {
                self.flush_frame()?;
            }
        }
        Ok(())
    }

    /// Completes the payload. Makes a large one durable here, on a thread that may block, so that
    /// no commit waits for it; a small one becomes durable with the group that takes it.
    ///
    /// # Errors
    /// When there are fewer bytes than announced, or the disk fails.
    pub async fn finish(self) -> StoreResult<Staged> {
        let staged = self.finish_unsynced()?;
        if let Place::Extent(reservation) = &staged.place
            && let Some(sync) = reservation.sync_alone(staged.len)
        {
            match tokio::runtime::Handle::try_current() {
                Ok(runtime) => runtime
                    .spawn_blocking(sync)
                    .await
                    .map_err(|error| StoreError::Io(error.to_string()))??,
                Err(_) => sync()?,
            }
        }
        Ok(staged)
    }

    /// Completes the payload for a [`Successor`](super::Successor), which makes it durable with all
    /// others.
    ///
    /// # Errors
    /// When there are fewer bytes than announced, or the disk fails.
    pub fn end(self) -> StoreResult<Staged> {
        self.finish_unsynced()
    }

    /// Completes the payload without waiting for the disk.
    pub(super) fn finish_unsynced(mut self) -> StoreResult<Staged> {
        if self.written != self.len {
            return Err(self.wrong_length("fewer"));
        }
        if !self.buffer.is_empty() && self.reservation.is_some() {
            self.flush_frame()?;
        }
        let place = match self.reservation {
            Some(mut reservation) => {
                reservation.complete();
                Place::Extent(reservation)
            }
            None => Place::Inline(Bytes::from(self.buffer)),
        };
        Ok(Staged {
            len: self.len,
            place,
        })
    }

    fn flush_frame(&mut self) -> StoreResult<()> {
        if let Some(reservation) = &mut self.reservation {
            reservation.write_frame(self.frames, &mut self.buffer)?;
            self.frames += 1;
        }
        Ok(())
    }

    fn wrong_length(&self, what: &str) -> StoreError {
        StoreError::Io(format!("{what} bytes than the announced {}", self.len))
    }
}
