//! A range of a blob, found: what a response is made of after the view is gone.

use std::ops::{ControlFlow, Range};

use bytes::{Bytes, BytesMut};

use super::body::{ContentBody, ZEROS};
use super::pages;
use crate::records::BlobContent;
use crate::reply::Content;
use crate::store::{self, Payload, PayloadId, Store, StoreResult, View};

/// Small payloads held for one response. Those beyond it are looked up when they are sent, so that
/// a blob of many small blocks is never in memory whole.
const HELD_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Pieces of a page blob found at once. Those beyond it are looked for when it is their turn. As
/// many as 4 MiB can be in, so that a range of that length is found at one moment.
const PAGE_PIECES_MAX: usize = 8 * 1024;

/// Where a range of bytes is, in order.
#[derive(Debug, Default)]
pub struct Located {
    pieces: Vec<Piece>,
    length: u64,
    held_bytes: u64,
}

/// A range of one payload, or what stands for one.
#[derive(Clone, Debug)]
pub(super) enum Piece {
    /// Held alive.
    Held(Payload, Range<u64>),
    /// To be looked up when it is its turn; where the blob is gone by then, the response breaks
    /// off.
    Later(PayloadId, Range<u64>),
    /// This many bytes that are zero.
    Zeros(u64),
    /// A range of a page blob, to be searched when it is its turn; where the blob has changed by
    /// then, the response breaks off.
    Pages(BlobContent, Range<u64>),
}

impl Located {
    /// Appends a range of a payload.
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

    /// Appends zeros.
    pub(super) fn push_zeros(&mut self, count: u64) {
        if count > 0 {
            self.length += count;
            self.pieces.push(Piece::Zeros(count));
        }
    }

    /// Appends a range of a page blob: what was written, and zeros in between.
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

    /// The pieces, in order.
    pub(super) fn into_pieces(self) -> Vec<Piece> {
        self.pieces
    }

    /// Length of the range in bytes.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The content of a response: at hand where it is small, else read while it is sent.
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

    /// The bytes one piece after the other, for whoever reads them himself.
    pub fn into_chunks(self, store: &Store) -> ContentBody {
        ContentBody::new(store.clone(), self.pieces, self.length)
    }

    /// All of it in memory: for ranges whose length an operation limits.
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
    // An inline payload is far below any usize.
    bytes.slice(range.start as usize..range.end as usize)
}
