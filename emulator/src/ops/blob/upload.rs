//! A body of bytes: what Put Blob, Put Block, Append Block and Put Page have in common.
//!
//! Sources: the four documents, on `Content-MD5` and `x-ms-content-crc64`.

use smalt_protocol::StorageError;

use super::headers::BodyHashes;
use super::written::Hashes;
use crate::call::Call;
use crate::operation::{Received, Takes};
use crate::store::Staged;

/// What a request says of its body, and the body once it was streamed in.
pub struct Upload {
    /// What the bytes have to hash to.
    pub given: BodyHashes,
    bytes_max: u64,
    received: Option<Received>,
}

impl Upload {
    /// Reads a request with a body of at most this many bytes.
    ///
    /// # Errors
    /// As [`BodyHashes::of`].
    pub fn of(call: &Call, bytes_max: u64) -> Result<Self, StorageError> {
        Ok(Upload {
            given: BodyHashes::of(call)?,
            bytes_max,
            received: None,
        })
    }

    /// What body the operation takes.
    pub fn takes(&self) -> Takes {
        Takes::Payload {
            most: self.bytes_max,
        }
    }

    /// Takes the body, if it is what the request says that it is.
    ///
    /// # Errors
    /// 400 `Md5Mismatch`, `Crc64Mismatch`.
    pub fn receive(&mut self, received: Received) -> Result<(), StorageError> {
        self.given.check(&received)?;
        self.received = Some(received);
        Ok(())
    }

    /// The bytes, and what they hash to.
    ///
    /// # Errors
    /// 500 when there was no body.
    pub fn into_bytes(self) -> Result<(Staged, Hashes), StorageError> {
        let missing = || StorageError::internal("a body is used before it was received");
        let received = self.received.ok_or_else(missing)?;
        let hashes = Hashes {
            md5: received.md5,
            crc64: received.crc64,
            by_md5: self.given.md5.is_some(),
        };
        Ok((received.staged, hashes))
    }
}
