//! Put Page (clear): frees any number of whole pages, which then read as zeros.
//!
//! Source: "Put Page".
//!
//! ```http
//! PUT /devstoreaccount1/disks/system.vhd?comp=page
//! x-ms-page-write: clear
//! x-ms-range: bytes=0-1048575
//! Content-Length: 0
//!
//! 201 Created
//! x-ms-blob-sequence-number: 0
//! ```

use smalt_protocol::StorageError;

use super::Target;
use crate::call::Call;
use crate::operation::Write;
use crate::ops::blob::content::pages;
use crate::ops::lookup::Found;
use crate::records::BlobRecord;
use crate::reply::Reply;
use crate::store::{Stamp, Transaction, View};

/// The Put Page operation that clears pages.
pub struct ClearPages {
    target: Target,
}

impl Write for ClearPages {
    type Checked = Found;
    type Output = BlobRecord;

    fn parse(call: &Call) -> Result<Self, StorageError> {
        const MD5: &str = "content-md5";
        let target = Target::of(call, "clear")?;
        super::refuse_body(call)?;
        if let Some(md5) = call.header(MD5)? {
            return Err(StorageError::invalid_header("Content-MD5", md5));
        }
        Ok(ClearPages { target })
    }

    fn check(&self, view: &dyn View, stamp: &Stamp) -> Result<Found, StorageError> {
        self.target.check(view, stamp.now)
    }

    fn apply(
        self,
        found: Found,
        tx: &mut Transaction<'_>,
        stamp: &Stamp,
    ) -> Result<BlobRecord, StorageError> {
        let range = self.target.range.clone();
        let content = pages::clear(tx, found.blob.content, range, stamp.tick.ticks())?;
        self.target.keep(tx, found, content, stamp)
    }

    fn render(blob: BlobRecord, _: &Call) -> Result<Reply, StorageError> {
        Ok(super::reply(201, &blob))
    }
}
