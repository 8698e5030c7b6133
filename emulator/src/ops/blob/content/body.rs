//! A response body over several payloads, one open at a time.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::BodyExt;

use super::located::Piece;
use crate::body::Body;
use crate::store::{self, PayloadReader, Store, StoreResult};

impl Piece {
    /// Opens the range.
    pub(super) fn open(&self, store: &Store) -> StoreResult<PayloadReader> {
        match self {
            Piece::Held(payload, range) => Ok(payload.reader(range.clone())),
            Piece::Later(id, range) => {
                let payload = store.read(|view| store::location(view, *id))?;
                Ok(payload.reader(range.clone()))
            }
        }
    }
}

/// Yields pieces one after the other.
pub struct ContentBody {
    store: Store,
    pieces: std::vec::IntoIter<Piece>,
    open: Option<PayloadReader>,
    left: u64,
}

impl ContentBody {
    pub(super) fn new(store: Store, pieces: Vec<Piece>, length: u64) -> Self {
        ContentBody {
            store,
            pieces: pieces.into_iter(),
            open: None,
            left: length,
        }
    }

    pub(super) fn boxed(self) -> Body {
        self.boxed_unsync()
    }

    /// The next bytes; none at the end.
    ///
    /// # Errors
    /// When the disk fails, or the blob is gone.
    pub fn next_chunk(&mut self) -> StoreResult<Option<Bytes>> {
        loop {
            if let Some(reader) = &mut self.open
                && let Some(chunk) = reader.next_chunk()?
            {
                self.left = self.left.saturating_sub(chunk.len() as u64);
                return Ok(Some(chunk));
            }
            let Some(piece) = self.pieces.next() else {
                self.open = None;
                return Ok(None);
            };
            self.open = Some(piece.open(&self.store)?);
        }
    }
}

impl HttpBody for ContentBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let next = self.next_chunk().map_err(io::Error::other).transpose();
        Poll::Ready(next.map(|chunk| chunk.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
