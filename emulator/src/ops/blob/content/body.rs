//! A response body that reads several payloads, one open at a time.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::BodyExt;

use super::located::Piece;
use crate::body::Body;
use crate::store::{self, PayloadReader, Store, StoreResult};

pub(super) static ZEROS: [u8; 64 * 1024] = [0; 64 * 1024];

enum Open {
    Payload(PayloadReader),
    Zeros(u64),
}

impl Open {
    fn next_chunk(&mut self) -> StoreResult<Option<Bytes>> {
        match self {
            Open::Payload(reader) => reader.next_chunk(),
            Open::Zeros(0) => Ok(None),
            Open::Zeros(left) => {
                let count = (*left).min(ZEROS.len() as u64);
                *left -= count;
                Ok(Some(Bytes::from_static(&ZEROS[..count as usize])))
            }
        }
    }
}

/// Yields pieces one after the other.
pub struct ContentBody {
    store: Store,
    pieces: VecDeque<Piece>,
    open: Option<Open>,
    left: u64,
}

impl ContentBody {
    pub(super) fn new(store: Store, pieces: Vec<Piece>, length: u64) -> Self {
        ContentBody {
            store,
            pieces: pieces.into(),
            open: None,
            left: length,
        }
    }

    pub(super) fn boxed(self) -> Body {
        self.boxed_unsync()
    }

    /// Returns the next bytes; `None` at the end.
    ///
    /// # Errors
    /// When the disk fails, or the blob is gone.
    pub fn next(&mut self) -> StoreResult<Option<Bytes>> {
        loop {
            if let Some(open) = &mut self.open
                && let Some(chunk) = open.next_chunk()?
            {
                self.left = self.left.saturating_sub(chunk.len() as u64);
                return Ok(Some(chunk));
            }
            self.open = match self.pieces.pop_front() {
                None => return Ok(None),
                Some(piece) => self.open(piece)?,
            };
        }
    }

    /// Opens a piece. A piece that has not been located yet is replaced by the pieces found.
    fn open(&mut self, piece: Piece) -> StoreResult<Option<Open>> {
        Ok(match piece {
            Piece::Held(payload, range) => Some(Open::Payload(payload.reader(range))),
            Piece::Later(id, range) => {
                let payload = self.store.read(|view| store::location(view, id))?;
                Some(Open::Payload(payload.reader(range)))
            }
            Piece::Zeros(count) => Some(Open::Zeros(count)),
            Piece::Pages(content, range) => {
                let found = self
                    .store
                    .read(|view| super::locate(view, content, range))?;
                self.pieces = found.into_pieces().into();
                None
            }
        })
    }
}

impl HttpBody for ContentBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let next = self.next().map_err(io::Error::other).transpose();
        Poll::Ready(next.map(|chunk| chunk.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
