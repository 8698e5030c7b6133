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

use super::{Target, answer};
use crate::call::Call;
use crate::operation::{Received, Takes, Write};
use crate::ops::blob::upload::Upload;
use crate::ops::blob::written::Written;
use crate::ops::lookup::Found;
use crate::reply::Reply;
use crate::store::{Stamp, Transaction, View};

/// The Put Page operation.
pub struct PutPage {
    target: Target,
    upload: Upload,
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
            upload: Upload::of(call, PUT_PAGE_BYTES_MAX)?,
        })
    }

    fn takes(&self) -> Takes {
        self.upload.takes()
    }

    fn payload(&mut self, received: Received) -> Result<(), StorageError> {
        self.upload.receive(received)
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
        let (staged, hashes) = self.upload.into_bytes()?;
        self.target.write(found, staged, hashes, tx, stamp)
    }

    fn render(written: Written, call: &Call) -> Result<Reply, StorageError> {
        Ok(answer(&written, call))
    }
}
