//! The response to a query: reads the blob only as far as the next frame that the client asks for.
//!
//! A query runs in turns of the [lane](crate::lane), each bounded in bytes and steps. Between two
//! turns it blocks no thread; its room limits the memory. A disconnected client is noticed between
//! two turns, and then everything is dropped.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame};
use parking_lot::Mutex;
use smalt_protocol::StorageError;
use tokio::time::Instant;

use crate::lane::{Guest, Lane, Room, Waiting};
use crate::ops::blob::content::ContentBody;
use crate::query::Runner;

/// Bytes of the blob read in one turn.
const TURN_BYTES: usize = 256 * 1024;
/// Largest piece passed to the connection, in bytes: leaving the room cannot free what the
/// connection has.
const PIECE_BYTES_MAX: usize = 64 * 1024;

/// A running query, with its input and its pending output.
pub(super) struct Query {
    runner: Runner,
    chunks: ContentBody,
    /// Bytes of the blob that did not fit into the last turn.
    chunk: Bytes,
    found: VecDeque<Bytes>,
    is_finished: bool,
    room: Option<Room>,
}

impl Query {
    pub(super) fn new(runner: Runner, chunks: ContentBody, room: Option<Room>) -> Self {
        Query {
            runner,
            chunks,
            chunk: Bytes::new(),
            found: VecDeque::new(),
            is_finished: false,
            room,
        }
    }

    /// Reads until the column names are known.
    pub(super) fn read_header(&mut self) -> Result<(), StorageError> {
        while self.runner.awaits_header() {
            self.step()?;
        }
        Ok(())
    }

    fn turn(&mut self) -> Result<(), StorageError> {
        let mut read = 0;
        while read < TURN_BYTES && !self.is_finished {
            let taken = self.step()?;
            read += taken;
            if !self.chunk.is_empty() {
                // The query reached its limit of steps.
                break;
            }
        }
        self.found.extend(self.runner.take());
        Ok(())
    }

    /// Reads the rest of a chunk, or the next one. Returns the number of bytes.
    fn step(&mut self) -> Result<usize, StorageError> {
        if self.runner.is_over() {
            self.chunk.clear();
        } else if self.chunk.is_empty() {
            self.chunk = self.chunks.next()?.unwrap_or_default();
        }
        if self.chunk.is_empty() {
            self.runner.finish()?;
            self.is_finished = true;
            return Ok(0);
        }
        let taken = self.runner.read(&self.chunk)?;
        // Do not keep a finished chunk alive.
        self.chunk = match taken < self.chunk.len() {
            true => self.chunk.split_off(taken),
            false => Bytes::new(),
        };
        Ok(taken)
    }

    /// Returns the next piece for the connection. A part of a large one is copied, so that the
    /// original is freed with the query.
    fn next_piece(&mut self) -> Option<Bytes> {
        let first = self.found.front_mut()?;
        if first.len() <= PIECE_BYTES_MAX {
            return self.found.pop_front();
        }
        Some(Bytes::copy_from_slice(&first.split_to(PIECE_BYTES_MAX)))
    }
}

/// State that the response body shares with the rooms.
struct Held {
    /// `None` when the response has ended, or its room was taken away.
    query: Option<Query>,
    /// When the client last received new output.
    last_turn: Instant,
    /// Whether the client waits for the server.
    waits: bool,
}

/// Owns a query between two reads of its response.
struct Holder(Mutex<Held>);

impl Guest for Holder {
    fn leave(&self, standing_still: Duration) -> bool {
        // A running query is not stalled.
        let Some(mut held) = self.0.try_lock() else {
            return false;
        };
        let stands_still = !held.waits && held.last_turn.elapsed() >= standing_still;
        let left = if stands_still {
            held.query.take()
        } else {
            None
        };
        drop(held);
        left.is_some()
    }
}

pub(super) struct Answer {
    holder: Arc<Holder>,
    lane: Lane,
    waiting: Option<Waiting>,
    has_ended: bool,
}

impl Answer {
    pub(super) fn new(query: Query, lane: Lane) -> Self {
        let holder = Arc::new_cyclic(|holder: &Weak<Holder>| {
            if let Some(room) = &query.room {
                let guest: Weak<Holder> = Weak::clone(holder);
                room.of(guest);
            }
            Holder(Mutex::new(Held {
                query: Some(query),
                last_turn: Instant::now(),
                waits: false,
            }))
        });
        Answer {
            holder,
            lane,
            waiting: None,
            has_ended: false,
        }
    }

    /// Returns the next piece; `None` if there is none yet.
    fn piece(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<Bytes>>> {
        let holder = Arc::clone(&self.holder);
        let mut held = holder.0.lock();
        let held = &mut *held;
        let Some(query) = &mut held.query else {
            let reason = "the response was not read while others waited for its room";
            return Poll::Ready(Err(io::Error::other(reason)));
        };
        if let Some(piece) = query.next_piece() {
            return Poll::Ready(Ok(Some(piece)));
        }
        if query.is_finished {
            self.has_ended = true;
            held.query = None;
            return Poll::Ready(Ok(None));
        }
        let lane = &self.lane;
        let waiting = self.waiting.get_or_insert_with(|| lane.turn());
        held.waits = true;
        let _turn = ready!(waiting.as_mut().poll(cx));
        self.waiting = None;
        held.waits = false;
        if let Err(error) = lane.block(|| query.turn()) {
            held.query = None;
            return Poll::Ready(Err(io::Error::other(error.to_string())));
        }
        held.last_turn = Instant::now();
        // The connection checks that its client is still there before it polls again.
        cx.waker().wake_by_ref();
        Poll::Ready(Ok(query.next_piece()))
    }
}

impl Body for Answer {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if self.has_ended {
            return Poll::Ready(None);
        }
        match ready!(self.piece(cx)) {
            Ok(Some(piece)) => Poll::Ready(Some(Ok(Frame::data(piece)))),
            Ok(None) if self.has_ended => Poll::Ready(None),
            Ok(None) => Poll::Pending,
            Err(error) => {
                self.has_ended = true;
                Poll::Ready(Some(Err(error)))
            }
        }
    }
}
