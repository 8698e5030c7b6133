//! The location of a range of a blob, from which a response is built after the view is gone.

use std::ops::{ControlFlow, Range};

use bytes::{Bytes, BytesMut};

use super::body::{ContentBody, ZEROS};
use super::pages;
use crate::records::BlobContent;
use crate::reply::Content;
use crate::store::{self, Payload, PayloadId, Store, StoreResult, View};

/// Bytes of small payloads kept in memory for one response. Others are looked up when they are
/// sent, so that a blob of many small blocks is never in memory as a whole.
const HELD_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Pieces of a page blob located at once; others are located when they are sent. 4 MiB have at most
/// this many pieces, so a range of that length is consistent.
const PAGE_PIECES_MAX: usize = 8 * 1024;

/// The location of a range of bytes, in order.
#[derive(Debug, Default)]
pub struct Located {
    pieces: Vec<Piece>,
    length: u64,
    held_bytes: u64,
}

#[derive(Clone, Debug)]
pub(super) enum Piece {
    /// Bytes of a payload that is kept alive.
    Held(Payload, Range<u64>),
    /// Bytes of a payload that is looked up when they are sent; if the blob is gone by then, the
    /// response breaks off.
    Later(PayloadId, Range<u64>),
    Zeros(u64),
    /// A range of a page blob that is located when it is sent; if the blob has changed by then, the
    /// response breaks off.
    Pages(BlobContent, Range<u64>),
}

impl Located {
    pub(super) fn push(&mut self, id: PayloadId, payload: Payload, range: Range<u64>) {
        self.length += range.end - range.start;
        if let Some(bytes) = payload.inline() {
            self.held_bytes += bytes.len() as u64;
        }
        let holds = payload.inline().is_none() || self.held_bytes <= HELD_BYTES_MAX;
        self.pieces.push(if holds {
            Piece::Held(payload, range)
        } else {
            Piece::Later(id, range)
        });
    }

    pub(super) fn push_zeros(&mut self, count: u64) {
        if count > 0 {
            self.length += count;
            self.pieces.push(Piece::Zeros(count));
        }
    }

    /// Appends a range of a page blob, with zeros for pages that were not written.
    pub(super) fn push_pages(
        &mut self,
        view: &dyn View,
        content: BlobContent,
        range: Range<u64>,
    ) -> StoreResult<()> {
        let mut at = range.start;
        pages::visit(view, content, range.clone(), &mut |span| {
            if self.pieces.len() >= PAGE_PIECES_MAX {
                return Ok(ControlFlow::Break(()));
            }
            self.push_zeros(span.range.start - at);
            let length = span.range.end - span.range.start;
            let bytes = span.offset..span.offset + length;
            self.push(span.payload, store::location(view, span.payload)?, bytes);
            at = span.range.end;
            Ok(ControlFlow::Continue(()))
        })?;
        if self.pieces.len() < PAGE_PIECES_MAX {
            self.push_zeros(range.end - at);
        } else if at < range.end {
            self.length += range.end - at;
            self.pieces.push(Piece::Pages(content, at..range.end));
        }
        Ok(())
    }

    pub(super) fn into_pieces(self) -> Vec<Piece> {
        self.pieces
    }

    /// Returns the length of the range in bytes.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Returns the content of a response: in memory if it is small, otherwise streamed.
    pub fn into_content(mut self, store: &Store) -> Content {
        let only = match self.pieces.len() {
            0 => return Content::Bytes(Bytes::new()),
            1 => self.pieces.pop(),
            _ => None,
        };
        match only {
            Some(Piece::Held(payload, range)) => match payload.inline() {
                Some(bytes) => Content::Bytes(slice(bytes, &range)),
                None => Content::Payload(payload.reader(range)),
            },
            Some(Piece::Zeros(count)) if count <= ZEROS.len() as u64 => {
                Content::Bytes(Bytes::from_static(&ZEROS[..count as usize]))
            }
            other => {
                self.pieces.extend(other);
                let length = self.length;
                Content::Stream {
                    body: ContentBody::new(store.clone(), self.pieces, length).boxed(),
                    length,
                }
            }
        }
    }

    /// Returns a reader of the bytes, piece by piece.
    pub fn into_chunks(self, store: &Store) -> ContentBody {
        ContentBody::new(store.clone(), self.pieces, self.length)
    }

    /// Reads all bytes into memory, for ranges whose length the operation limits.
    pub fn read_all(&self, store: &Store) -> StoreResult<Bytes> {
        if let [Piece::Held(payload, range)] = self.pieces.as_slice() {
            return payload.reader(range.clone()).read_all();
        }
        let mut all = BytesMut::new();
        let mut body = ContentBody::new(store.clone(), self.pieces.clone(), self.length);
        while let Some(chunk) = body.next()? {
            all.extend_from_slice(&chunk);
        }
        Ok(all.freeze())
    }
}

fn slice(bytes: &Bytes, range: &Range<u64>) -> Bytes {
    // Inline payloads are small.
    bytes.slice(range.start as usize..range.end as usize)
}
