//! The source of a copy: a URL that names a blob of this emulator, and the right to read it.
//!
//! Sources: "Copy Blob", "Copy Blob From URL", "Put Block From URL", on `x-ms-copy-source`.
//! Copy Blob reads a source of the same account by the caller's own key. Every other source is read
//! as a stranger would read it: in public, or by the shared access signature of the URL; a refusal
//! of such a read is answered with its own status as `CannotVerifyCopySource`, as recorded.
//!
//! - [`url`]: the header, taken apart and resolved.
//! - [`open`]: authorises, and hashes or stages what the operation wants of the bytes.

mod open;
pub mod url;

use smalt_protocol::{ByteRange, ETag, ErrorCode, StorageError, Timestamp};

pub use open::open;
pub use url::SourceUrl;

use crate::ops::lookup::{BlobAddress, Found};
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
    pub address: BlobAddress,
    /// Its URL without the signature.
    pub shown: String,
    /// Whether the caller's own key opens it.
    pub is_own: bool,
    /// Whether its tags may be read as well.
    pub may_read_tags: bool,
    /// Its bytes, unless they were not wanted.
    pub bytes: Option<SourceBytes>,
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
    /// The source as it stands at the commit: where its bytes were read before, unchanged since.
    ///
    /// # Errors
    /// 404 `BlobNotFound` or `ContainerNotFound` of an own source, else as [`refused`].
    pub fn find(&self, view: &dyn View, now: Timestamp) -> Result<Found, StorageError> {
        let found = self.address.find(view, now);
        let found = found.map_err(|error| if self.is_own { error } else { refused(&error) })?;
        match &self.bytes {
            Some(bytes) if bytes.etag != found.blob.etag => {
                Err(StorageError::new(ErrorCode::CannotVerifyCopySource)
                    .with_status(412)
                    .with_message(UNVERIFIED))
            }
            _ => Ok(found),
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

/// A source that is no blob of this emulator: nothing is fetched from elsewhere.
fn elsewhere() -> StorageError {
    ErrorCode::CannotVerifyCopySource.into()
}
