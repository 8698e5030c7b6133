//! Reads a payload in chunks of at most one frame, verifies their checksums, and is a response
//! body.

use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};

use super::error::{StoreError, StoreResult};
use super::extents::FRAME_BYTES;
use super::payload::Source;

/// Frames read at once: few system calls, and memory that does not grow with the payload.
const FRAMES_AHEAD: u64 = 4;

/// Yields a range of a payload in chunks of at most one frame (64 KiB).
#[derive(Debug)]
pub struct PayloadReader {
    source: Source,
    payload_len: u64,
    left: Range<u64>,
    /// Frames that were read and not yet yielded, in reverse order.
    ahead: Vec<Bytes>,
}

impl PayloadReader {
    pub(super) fn new(source: Source, payload_len: u64, range: Range<u64>) -> Self {
        PayloadReader {
            source,
            payload_len,
            left: range,
            ahead: Vec::new(),
        }
    }

    /// Returns the number of bytes that are still to come.
    pub fn remaining(&self) -> u64 {
        self.left.end - self.left.start
    }

    /// Returns the next chunk; `None` at the end and after an error.
    ///
    /// # Errors
    /// When the disk fails, or the bytes are not those that were written.
    pub fn next_chunk(&mut self) -> StoreResult<Option<Bytes>> {
        if self.left.is_empty() {
            return Ok(None);
        }
        let chunk = match &self.source {
            Source::Inline(bytes) => {
                Ok(bytes.slice(self.left.start as usize..self.left.end as usize))
            }
            Source::Extent { .. } => self.next_frame(),
        };
        match chunk {
            Ok(chunk) => {
                self.left.start += chunk.len() as u64;
                Ok(Some(chunk))
            }
            Err(error) => {
                self.left.start = self.left.end;
                Err(error)
            }
        }
    }

    /// Returns all remaining bytes at once, for payloads whose size an operation limits.
    ///
    /// # Errors
    /// As [`PayloadReader::next_chunk`].
    pub fn read_all(mut self) -> StoreResult<Bytes> {
        let mut all = BytesMut::new();
        while let Some(chunk) = self.next_chunk()? {
            if self.left.is_empty() && all.is_empty() {
                return Ok(chunk);
            }
            all.reserve(chunk.len() + self.remaining() as usize);
            all.extend_from_slice(&chunk);
        }
        Ok(all.freeze())
    }

    fn next_frame(&mut self) -> StoreResult<Bytes> {
        let Source::Extent { segment, offset } = &self.source else {
            return Err(StoreError::Corrupt("not an extent".to_owned()));
        };
        let frame_bytes = FRAME_BYTES as u64;
        let index = self.left.start / frame_bytes;
        if self.ahead.is_empty() {
            let until = self.left.end.div_ceil(frame_bytes);
            let frames = index..until.min(index + FRAMES_AHEAD);
            self.ahead = segment.read_frames(*offset, self.payload_len, frames)?;
            self.ahead.reverse();
        }
        let frame = self.ahead.pop().ok_or_else(|| {
            StoreError::Corrupt("a payload is shorter than its record says".to_owned())
        })?;
        let from = self.left.start - index * frame_bytes;
        let to = (self.left.end - index * frame_bytes).min(frame.len() as u64);
        if from >= to {
            return Err(StoreError::Corrupt("a frame is too short".to_owned()));
        }
        Ok(frame.slice(from as usize..to as usize))
    }
}

impl futures_util::Stream for PayloadReader {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.next_chunk().map_err(io::Error::other).transpose())
    }
}

impl Body for PayloadReader {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let chunk = self.next_chunk().map_err(io::Error::other).transpose();
        Poll::Ready(chunk.map(|chunk| chunk.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.left.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.remaining())
    }
}
