//! The shape of an operation: parse, check, apply, render.
//!
//! A [`Read`] looks at published state. A [`Write`] runs `check` and `apply` in one commit, or not
//! at all; both are pure functions of the input, the view and the stamp. Staging a body is the only
//! asynchronous step and belongs to the pipeline, which asks the operation what body it takes.

use bytes::Bytes;
use smalt_protocol::{StorageError, Timestamp};

use crate::call::Call;
use crate::lane::Room;
use crate::ops::blob::source::{Request as SourceRequest, Source};
use crate::reply::Reply;
use crate::store::{Staged, Stamp, Store, Transaction, View};

/// What body an operation takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// None: what is sent is read and dropped.
    Nothing,
    /// A document of at most this many bytes, read whole.
    Document {
        /// Largest length in bytes; more is 413 `RequestBodyTooLarge`.
        most: u64,
    },
    /// A payload of at most this many bytes, streamed into the store.
    Payload {
        /// Largest length in bytes; more is 413 `RequestBodyTooLarge`.
        most: u64,
    },
}

/// How much work a client can make of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// A few records are looked at.
    Light,
    /// Thousands of records, or a document that is made of them: it runs in the
    /// [lane](crate::lane).
    Long,
    /// The same, and what is answered holds much memory as long as it is sent: it needs a
    /// [room](Room) besides, once its document is there.
    Large,
}

/// A payload that was streamed in, with what its bytes hash to.
#[derive(Debug)]
pub struct Received {
    /// Where the bytes are.
    pub staged: Staged,
    /// Length in bytes.
    pub length: u64,
    /// MD5.
    pub md5: [u8; 16],
    /// CRC-64 of Azure Storage, little-endian.
    pub crc64: [u8; 8],
}

/// A write that a read asks for on its way.
pub type Note = Box<dyn FnOnce(&mut Transaction<'_>, &Stamp) -> Result<(), StorageError> + Send>;

/// An operation that changes nothing.
pub trait Read: Sized + Send + Sync + 'static {
    /// What was found; `render` turns it into a response outside of the view.
    type Output: Send;

    /// How much a client can make of it.
    const WEIGHT: Weight = Weight::Light;

    /// Syntax only: no state is looked at.
    fn parse(call: &Call) -> Result<Self, StorageError>;

    /// What body the operation takes.
    fn takes(&self) -> Takes {
        Takes::Nothing
    }

    /// Takes the document that [`Read::takes`] asked for.
    fn document(&mut self, _document: Bytes) -> Result<(), StorageError> {
        Ok(())
    }

    /// Takes the room that its [weight](Read::WEIGHT) asks for.
    fn enter(&mut self, _room: Room) {}

    /// Looks at published state of one moment.
    fn read(&self, view: &dyn View, now: Timestamp) -> Result<Self::Output, StorageError>;

    /// What is to be noted of the read, in a commit before the response. A note that cannot be
    /// taken is logged, and the response sent all the same.
    /// Only [light](Weight::Light) operations are asked.
    fn note(&self, _output: &Self::Output, _now: Timestamp) -> Option<Note> {
        None
    }

    /// The response. The store is at hand to open payloads that `read` located.
    fn render(
        self,
        output: Self::Output,
        call: &Call,
        store: &Store,
    ) -> Result<Reply, StorageError>;
}

/// An operation that changes state.
pub trait Write: Sized + Send + 'static {
    /// What `check` found and `apply` goes on with.
    type Checked;
    /// What was done.
    type Output: Send + 'static;

    /// Syntax only: no state is looked at.
    fn parse(call: &Call) -> Result<Self, StorageError>;

    /// What body the operation takes.
    fn takes(&self) -> Takes {
        Takes::Nothing
    }

    /// Takes the document that [`Write::takes`] asked for.
    fn document(&mut self, _document: Bytes) -> Result<(), StorageError> {
        Ok(())
    }

    /// What of the document is too large for a record: it is staged and handed to
    /// [`Write::payload`].
    fn spill(&mut self) -> Option<Bytes> {
        None
    }

    /// Takes the payload that [`Write::takes`] asked for, and validates its hashes.
    fn payload(&mut self, _received: Received) -> Result<(), StorageError> {
        Ok(())
    }

    /// The blob that the operation copies from: the pipeline proves that the caller may read it and
    /// hands it to [`Write::sourced`].
    fn source(&self) -> Option<SourceRequest> {
        None
    }

    /// Takes the source that [`Write::source`] asked for, and validates its hashes.
    fn sourced(&mut self, _source: Source) -> Result<(), StorageError> {
        Ok(())
    }

    /// Everything that can refuse, in Azure's order. Also run before a payload is streamed in or a
    /// source is read, so that a doomed request is refused early.
    fn check(&self, view: &dyn View, stamp: &Stamp) -> Result<Self::Checked, StorageError>;

    /// Does it. Refuses nothing: errors are the store's own.
    fn apply(
        self,
        checked: Self::Checked,
        tx: &mut Transaction<'_>,
        stamp: &Stamp,
    ) -> Result<Self::Output, StorageError>;

    /// The response.
    fn render(output: Self::Output, call: &Call) -> Result<Reply, StorageError>;
}
