//! The source of a copy: a URL, the right to read it, and what was read.
//!
//! Sources: "Copy Blob", "Copy Blob From URL", "Put Block From URL", on `x-ms-copy-source`.
//! Copy Blob reads a source of the same account by the caller's own key. Every other source is read
//! as a stranger would read it: in public, or by the shared access signature of the URL; a refusal
//! of such a read is answered with its own status as `CannotVerifyCopySource`, as recorded. What is
//! no account of this emulator is fetched, where the emulator was given something to fetch with.
//!
//! - [`url`]: the header, taken apart and resolved.
//! - [`mod@open`]: authorises, and hashes or stages what the operation wants of the bytes.
//! - `range`: what the operations ask and take that write a range of a source.
//! - `remote`: the same as [`mod@open`] for a source that is elsewhere.

mod open;
mod range;
mod remote;
pub mod url;

use smalt_protocol::{ByteRange, ETag, ErrorCode, StorageError, Timestamp};

pub use open::open;
pub use range::{RANGE, SourceRange};
pub use url::SourceUrl;

use crate::faults::Hold;
use crate::ops::lookup::BlobAddress;
use crate::records::BlobRecord;
use crate::rules::conditions::Conditions;
use crate::store::{Staged, View};

/// What the service says where it does not say why a source could not be read.
const UNVERIFIED: &str = "Could not verify the copy source within the specified time.";

/// What an operation wants of its source.
#[derive(Clone, Debug)]
pub struct Request {
    /// Where it is.
    pub url: SourceUrl,
    /// What to do with its bytes.
    pub wanted: Wanted,
}

/// What an operation wants of the bytes of its source.
#[derive(Clone, Debug)]
pub enum Wanted {
    /// Nothing before the commit, which shares what stands there then: Copy Blob.
    Reference,
    /// All of them, hashed, as a block blob.
    Whole {
        /// Conditions on the source, judged as those of a read.
        conditions: Conditions,
        /// Largest length in bytes.
        most: u64,
    },
    /// A range of them, as a payload of its own.
    Range {
        /// Conditions on the source, judged as those of a read.
        conditions: Conditions,
        /// The range; absent: all.
        range: Option<ByteRange>,
        /// Largest length in bytes.
        most: u64,
    },
}

/// A source that may be read.
#[derive(Debug)]
pub struct Source {
    /// What it is.
    pub origin: Origin,
    /// Its URL without the signature.
    pub shown: String,
    /// Whether the caller's own key opens it.
    pub is_own: bool,
    /// Whether its tags may be read as well.
    pub may_read_tags: bool,
    /// How a rule holds the copy pending, if one does.
    pub hold: Option<Hold>,
    /// Its bytes, unless they were not wanted.
    pub bytes: Option<SourceBytes>,
}

/// Where a source is.
#[derive(Debug)]
pub enum Origin {
    /// A blob of this emulator.
    Here(BlobAddress),
    /// Somewhere else: it was fetched, and this is what it would be as a blob.
    Elsewhere(Box<BlobRecord>),
}

/// The bytes of a source as they were read.
#[derive(Debug)]
pub struct SourceBytes {
    /// Tag of the blob that was read.
    pub etag: ETag,
    /// MD5.
    pub md5: [u8; 16],
    /// CRC64.
    pub crc64: [u8; 8],
    /// Staged; absent where the source's own can be shared.
    pub staged: Option<Staged>,
}

impl Source {
    /// Key of the base blob that it is, if it is one: what can still change.
    ///
    /// # Errors
    /// The store's own.
    pub fn key(&self, view: &dyn View, now: Timestamp) -> Result<Option<Vec<u8>>, StorageError> {
        match &self.origin {
            Origin::Here(address) if address.is_base() => {
                let container = address.name.container.find(view, now)?;
                Ok(Some(address.name.key(container.generation)))
            }
            _ => Ok(None),
        }
    }

    /// The source as it stands at the commit: where its bytes were read before, unchanged since.
    ///
    /// # Errors
    /// 404 `BlobNotFound` or `ContainerNotFound` of an own source, else as [`refused`].
    pub fn blob(&self, view: &dyn View, now: Timestamp) -> Result<BlobRecord, StorageError> {
        let address = match &self.origin {
            Origin::Here(address) => address,
            Origin::Elsewhere(blob) => return Ok((**blob).clone()),
        };
        let found = address.find(view, now);
        let found = found.map_err(|error| if self.is_own { error } else { refused(&error) })?;
        match &self.bytes {
            Some(bytes) if bytes.etag != found.blob.etag => Err(unverified(412)),
            _ => Ok(found.blob),
        }
    }
}

/// What the source answered, as the answer to the copy.
pub fn refused(error: &StorageError) -> StorageError {
    if error.status() >= 500 {
        return error.clone();
    }
    StorageError::new(ErrorCode::CannotVerifyCopySource)
        .with_status(error.status())
        .with_message(error.message())
}

/// A source that cannot be read, for a reason that is not told.
fn unverified(status: u16) -> StorageError {
    StorageError::new(ErrorCode::CannotVerifyCopySource)
        .with_status(status)
        .with_message(UNVERIFIED)
}

/// A source that is nowhere.
fn nowhere() -> StorageError {
    ErrorCode::CannotVerifyCopySource.into()
}
