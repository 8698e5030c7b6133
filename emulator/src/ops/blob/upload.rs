//! A request body of bytes: shared code of Put Blob, Put Block, Append Block and Put Page.
//!
//! Sources: the four documents, on `Content-MD5` and `x-ms-content-crc64`.

use smalt_protocol::{ErrorCode, StorageError};

use super::headers::BodyHashes;
use super::written::Hashes;
use crate::call::Call;
use crate::operation::{Received, Takes};
use crate::store::Staged;

/// The hashes that a request gives for its body, and the body once it was received.
pub struct Upload {
    /// The hashes that the body must have.
    pub given: BodyHashes,
    bytes_max: u64,
    needs_md5: bool,
    received: Option<Received>,
}

impl Upload {
    /// Parses a request with a body of at most `bytes_max` bytes.
    ///
    /// # Errors
    /// As [`BodyHashes::of`]; 501 for a structured body, whose frames would else become content.
    pub fn of(call: &Call, bytes_max: u64) -> Result<Self, StorageError> {
        if call.headers.contains_key("x-ms-structured-body") {
            return Err(StorageError::new(ErrorCode::NotImplemented).with_message(
                "smalt does not read structured bodies yet: send the body without \
                 x-ms-structured-body, and its CRC64 in x-ms-content-crc64.",
            ));
        }
        Ok(Upload {
            given: BodyHashes::of(call)?,
            bytes_max,
            needs_md5: true,
            received: None,
        })
    }

    /// Like [`Upload::of`], for bytes whose MD5 at most the response has.
    ///
    /// # Errors
    /// As [`Upload::of`].
    pub fn of_block(call: &Call, bytes_max: u64) -> Result<Self, StorageError> {
        let mut upload = Self::of(call, bytes_max)?;
        upload.needs_md5 = Hashes::is_md5(call.version, upload.given.md5.is_some());
        Ok(upload)
    }

    /// Returns the kind of body that the operation accepts.
    pub fn takes(&self) -> Takes {
        Takes::Payload {
            most: self.bytes_max,
            md5: self.needs_md5,
        }
    }

    /// Stores the received body after comparing its hashes.
    ///
    /// # Errors
    /// 400 `Md5Mismatch`, `Crc64Mismatch`.
    pub fn receive(&mut self, received: Received) -> Result<(), StorageError> {
        self.given.check(&received)?;
        self.received = Some(received);
        Ok(())
    }

    /// Returns the bytes and their hashes.
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
