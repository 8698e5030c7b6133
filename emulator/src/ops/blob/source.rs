//! The source of a copy: its URL, the permission to read it, and the bytes that were read.
//!
//! Sources: "Copy Blob", "Copy Blob From URL", "Put Block From URL", on `x-ms-copy-source`. Copy
//! Blob reads a source of the same account with the caller's own key. Every other source is read
//! without the caller's identity: it must be public or have a shared access signature in its URL;
//! if that read is rejected, the response is `CannotVerifyCopySource` with the status of the
//! rejection, as recorded. A source that is not in an account of this emulator is fetched, if the
//! emulator was given a [`Fetch`](crate::fetch::Fetch).
//!
//! - [`url`]: parses and resolves the header.
//! - [`mod@open`]: authorises, and hashes or stages the bytes that the operation needs.
//! - `range`: shared code of the operations that write a range of a source.
//! - `remote`: does what [`mod@open`] does for a source outside the emulator.

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
use crate::ops::tree;
use crate::records::BlobRecord;
use crate::rules::conditions::Conditions;
use crate::store::{Staged, View};

/// The service's message when it does not say why a source could not be read.
const UNVERIFIED: &str = "Could not verify the copy source within the specified time.";

/// A request for a source.
#[derive(Clone, Debug)]
pub struct Request {
    /// The URL of the source.
    pub url: SourceUrl,
    /// What to read of it.
    pub wanted: Wanted,
}

/// The bytes that an operation needs from its source.
#[derive(Clone, Debug)]
pub enum Wanted {
    /// None before the commit, which shares the content at that time: Copy Blob.
    Reference,
    /// All bytes of a block blob, hashed.
    Whole {
        /// Conditions on the source, checked as those of a read.
        conditions: Conditions,
        /// Largest length in bytes.
        most: u64,
    },
    /// A range of bytes, as a new payload.
    Range {
        /// Conditions on the source, checked as those of a read.
        conditions: Conditions,
        /// The range; `None` means all bytes.
        range: Option<ByteRange>,
        /// Largest length in bytes.
        most: u64,
    },
}

/// A source that may be read.
#[derive(Debug)]
pub struct Source {
    /// Where the source is.
    pub origin: Origin,
    /// Its URL without the signature.
    pub shown: String,
    /// Whether the caller's own key authorises the read.
    pub is_own: bool,
    /// Whether its tags may be read as well.
    pub may_read_tags: bool,
    /// How a rule holds the copy pending, if one does.
    pub hold: Option<Hold>,
    /// Its bytes, if they were read.
    pub bytes: Option<SourceBytes>,
}

/// Where a source is.
#[derive(Debug)]
pub enum Origin {
    /// A blob of this emulator.
    Here(BlobAddress),
    /// Outside the emulator; the record describes the fetched source as a blob.
    Elsewhere(Box<BlobRecord>),
}

/// The bytes of a source as they were read.
#[derive(Debug)]
pub struct SourceBytes {
    /// ETag of the blob that was read.
    pub etag: ETag,
    /// MD5 of the bytes.
    pub md5: Option<[u8; 16]>,
    /// CRC64 of the bytes.
    pub crc64: [u8; 8],
    /// The staged bytes; `None` if the source's own content can be shared.
    pub staged: Option<Staged>,
}

impl Source {
    /// Returns the key of the source if it is a base blob, which can still change.
    ///
    /// # Errors
    /// When the store fails.
    pub fn key(&self, view: &dyn View, now: Timestamp) -> Result<Option<Vec<u8>>, StorageError> {
        match &self.origin {
            Origin::Here(address) if address.is_base() => {
                let folder = tree::folder_of(view, &address.name, now)?;
                Ok(Some(address.name.key(folder)))
            }
            _ => Ok(None),
        }
    }

    /// Returns the source as it is at the commit; if its bytes were read before, it must be
    /// unchanged.
    ///
    /// # Errors
    /// 404 `BlobNotFound` or `ContainerNotFound` for a source of the caller's own account,
    /// otherwise as [`refused`].
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

/// Converts an error of the source into the error of the copy.
pub fn refused(error: &StorageError) -> StorageError {
    if error.status() >= 500 {
        return error.clone();
    }
    StorageError::new(ErrorCode::CannotVerifyCopySource)
        .with_status(error.status())
        .with_message(error.message())
}

/// Returns the error for a source that cannot be read, without a reason.
fn unverified(status: u16) -> StorageError {
    StorageError::new(ErrorCode::CannotVerifyCopySource)
        .with_status(status)
        .with_message(UNVERIFIED)
}

fn nowhere() -> StorageError {
    ErrorCode::CannotVerifyCopySource.into()
}
