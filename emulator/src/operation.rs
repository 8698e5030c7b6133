//! The shape of an operation: parse, check, apply, render.
//!
//! A [`Read`] uses published state. A [`Write`] runs `check` and `apply` in one commit, or not at
//! all; both are pure functions of the input, the view and the stamp. Staging a body is the only
//! asynchronous step; the pipeline does it after asking the operation what body it takes.

use bytes::Bytes;
use smalt_protocol::{StorageError, Timestamp};

use crate::call::Call;
use crate::lane::Room;
use crate::ops::blob::source::{Request as SourceRequest, Source};
use crate::reply::Reply;
use crate::store::{Staged, Stamp, Store, Transaction, View};

/// The kind of body that an operation takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// No body; bytes that are sent are read and dropped.
    Nothing,
    /// A document of at most this many bytes, read whole; more is 413 `RequestBodyTooLarge`.
    Document(u64),
    /// A payload of at most this many bytes, streamed into the store.
    Payload {
        /// Largest length in bytes; more is 413 `RequestBodyTooLarge`.
        most: u64,
        /// Whether the MD5 of the bytes is needed: most of an upload's processor time.
        md5: bool,
    },
}

/// How much work a client can cause with one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// Reads a few records.
    Light,
    /// Reads thousands of records, or renders a document of them; runs in the [lane](crate::lane).
    Long,
    /// Like `Long`, and the response needs much memory while it is sent. It also needs a
    /// [room](Room) once its document has arrived.
    Large,
}

/// A payload that was streamed into the store, with its hashes.
#[derive(Debug)]
pub struct Received {
    /// Place of the bytes in the store.
    pub staged: Staged,
    /// Length in bytes.
    pub length: u64,
    /// MD5 of the bytes; `None` when nobody needs it.
    pub md5: Option<[u8; 16]>,
    /// CRC-64 of Azure Storage, little-endian.
    pub crc64: [u8; 8],
}

/// A write that a read causes, such as recording the last access time.
pub type Note = Box<dyn FnOnce(&mut Transaction<'_>, &Stamp) -> Result<(), StorageError> + Send>;

/// An operation that changes nothing.
pub trait Read: Sized + Send + Sync + 'static {
    /// The result of `read`, which `render` turns into a response without the view.
    type Output: Send;

    /// How much work a client can cause.
    const WEIGHT: Weight = Weight::Light;

    /// Parses the request, without looking at state.
    fn parse(call: &Call) -> Result<Self, StorageError>;

    /// Returns the kind of body that the operation takes.
    fn takes(&self) -> Takes {
        Takes::Nothing
    }

    /// Receives the document that [`Read::takes`] asked for.
    fn document(&mut self, _document: Bytes) -> Result<(), StorageError> {
        Ok(())
    }

    /// Receives the room that its [weight](Read::WEIGHT) requires.
    fn enter(&mut self, _room: Room) {}

    /// Reads published state of one moment.
    fn read(&self, view: &dyn View, now: Timestamp) -> Result<Self::Output, StorageError>;

    /// Returns a write to commit before the response, if the read causes one. When the commit
    /// fails, the failure is logged and the response is sent anyway. Called for
    /// [light](Weight::Light) operations only.
    fn note(&self, _output: &Self::Output, _now: Timestamp) -> Option<Note> {
        None
    }

    /// Renders the response. The store opens payloads that `read` located.
    fn render(
        self,
        output: Self::Output,
        call: &Call,
        store: &Store,
    ) -> Result<Reply, StorageError>;
}

/// An operation that changes state.
pub trait Write: Sized + Send + 'static {
    /// The result of `check` that `apply` uses.
    type Checked;
    /// The result of `apply` that `render` uses.
    type Output: Send + 'static;

    /// Parses the request, without looking at state.
    fn parse(call: &Call) -> Result<Self, StorageError>;

    /// Returns the kind of body that the operation takes.
    fn takes(&self) -> Takes {
        Takes::Nothing
    }

    /// Receives the document that [`Write::takes`] asked for.
    fn document(&mut self, _document: Bytes) -> Result<(), StorageError> {
        Ok(())
    }

    /// Returns the part of the document that is too large for a record; it is staged and passed to
    /// [`Write::payload`].
    fn spill(&mut self) -> Option<Bytes> {
        None
    }

    /// Receives the payload that [`Write::takes`] asked for, and validates its hashes.
    fn payload(&mut self, _received: Received) -> Result<(), StorageError> {
        Ok(())
    }

    /// Returns the blob to copy from, if any. The pipeline checks that the caller may read it and
    /// passes it to [`Write::sourced`].
    fn source(&self) -> Option<SourceRequest> {
        None
    }

    /// Receives the source that [`Write::source`] asked for, and validates its hashes.
    fn sourced(&mut self, _source: Source) -> Result<(), StorageError> {
        Ok(())
    }

    /// Makes all checks that can refuse, in Azure's order. Also runs before a payload is streamed
    /// in or a source is read, so that a request that cannot succeed is refused early.
    fn check(&self, view: &dyn View, stamp: &Stamp) -> Result<Self::Checked, StorageError>;

    /// Applies the change. Refuses nothing: errors are the store's own.
    fn apply(
        self,
        checked: Self::Checked,
        tx: &mut Transaction<'_>,
        stamp: &Stamp,
    ) -> Result<Self::Output, StorageError>;

    /// Renders the response.
    fn render(output: Self::Output, call: &Call) -> Result<Reply, StorageError>;
}
