//! Put Page: writes up to 4 MiB of whole pages.
//!
//! Source: "Put Page".
//!
//! ```http
//! PUT /devstoreaccount1/disks/system.vhd?comp=page
//! x-ms-page-write: update
//! x-ms-range: bytes=0-511
//! Content-Length: 512
//!
//! 201 Created
//! x-ms-content-crc64: qaHtT3LwL1s=
//! x-ms-blob-sequence-number: 0
//! ```

use smalt_protocol::StorageError;
use smalt_protocol::limits::PUT_PAGE_BYTES_MAX;

use super::Target;
use crate::call::Call;
use crate::operation::{Received, Takes, Write};
use crate::ops::blob::content::pages;
use crate::ops::blob::headers::BodyHashes;
use crate::ops::blob::written::Hashes;
use crate::ops::lookup::Found;
use crate::records::BlobRecord;
use crate::reply::Reply;
use crate::store::{self, Stamp, Transaction, View};

/// Put Page.
pub struct PutPage {
    target: Target,
    hashes: BodyHashes,
    received: Option<Received>,
}

/// The blob, and what the written bytes hash to.
pub struct Written {
    /// The blob.
    pub blob: BlobRecord,
    /// Hashes of the bytes.
    pub hashes: Hashes,
}

impl Write for PutPage {
    type Checked = Found;
    type Output = Written;

    fn parse(call: &Call) -> Result<Self, StorageError> {
        let target = Target::of(call, "update")?;
        let length = call.body_length;
        if length.is_some_and(|given| given != target.length() && given <= PUT_PAGE_BYTES_MAX) {
            let given = length.unwrap_or_default().to_string();
            return Err(StorageError::invalid_header("Content-Length", &given));
        }
        Ok(PutPage {
            target,
            hashes: BodyHashes::of(call)?,
            received: None,
        })
    }

    fn takes(&self) -> Takes {
        Takes::Payload {
            most: PUT_PAGE_BYTES_MAX,
        }
    }

    fn payload(&mut self, received: Received) -> Result<(), StorageError> {
        self.hashes.check(&received)?;
        self.received = Some(received);
        Ok(())
    }

    fn check(&self, view: &dyn View, stamp: &Stamp) -> Result<Found, StorageError> {
        self.target.check(view, stamp.now)
    }

    fn apply(
        self,
        found: Found,
        tx: &mut Transaction<'_>,
        stamp: &Stamp,
    ) -> Result<Written, StorageError> {
        let received = self
            .received
            .ok_or_else(|| StorageError::internal("pages are put without their bytes"))?;
        let payload = store::adopt(tx, received.staged)?;
        let range = self.target.range.clone();
        let content = pages::write(tx, found.blob.content, range, payload)?;
        let blob = self.target.keep(tx, found, content, stamp)?;
        let hashes = Hashes {
            md5: received.md5,
            crc64: received.crc64,
            by_md5: self.hashes.md5.is_some(),
        };
        Ok(Written { blob, hashes })
    }

    fn render(written: Written, call: &Call) -> Result<Reply, StorageError> {
        let Written { blob, hashes } = written;
        Ok(super::with_hashes(
            super::reply(201, &blob),
            &blob,
            hashes,
            call,
        ))
    }
}
