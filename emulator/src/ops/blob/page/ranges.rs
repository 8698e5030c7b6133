//! Get Page Ranges: lists the written pages of a page blob or snapshot.
//!
//! Source: "Get Page Ranges".
//!
//! ```http
//! GET /devstoreaccount1/disks/system.vhd?comp=pagelist
//!
//! 200 OK
//! x-ms-blob-content-length: 1048576
//!
//! <PageList><PageRange><Start>0</Start><End>511</End></PageRange></PageList>
//! ```

use std::ops::ControlFlow;

use smalt_protocol::{StorageError, Timestamp};

use super::list::Wanted;
use crate::call::Call;
use crate::operation::{Read, Weight};
use crate::ops::blob::content::pages;
use crate::ops::blob::guard::Guard;
use crate::ops::lookup::BlobAddress;
use crate::records::BlobRecord;
use crate::reply::Reply;
use crate::rules::pages::{Kind, Ranges};
use crate::store::{Store, View};

/// The Get Page Ranges operation.
pub struct GetPageRanges {
    address: BlobAddress,
    guard: Guard,
    wanted: Wanted,
}

impl Read for GetPageRanges {
    type Output = (BlobRecord, Ranges);

    const WEIGHT: Weight = Weight::Long;

    fn parse(call: &Call) -> Result<Self, StorageError> {
        Ok(GetPageRanges {
            address: BlobAddress::of(call)?,
            guard: Guard::of_read(call)?,
            wanted: Wanted::of(call)?,
        })
    }

    fn read(&self, view: &dyn View, now: Timestamp) -> Result<Self::Output, StorageError> {
        let blob = self.address.find(view, now)?.blob;
        self.guard.check_read(&blob, self.address.is_base())?;
        super::check_kind(&blob)?;
        let bytes = self.wanted.bytes(blob.length)?;
        let mut ranges = self.wanted.ranges();
        pages::visit(view, blob.content, bytes, &mut |span| {
            Ok::<ControlFlow<()>, _>(ranges.push(span.range, Kind::Page))
        })?;
        Ok((blob, ranges))
    }

    fn render(
        self,
        (blob, ranges): (BlobRecord, Ranges),
        _: &Call,
        _: &Store,
    ) -> Result<Reply, StorageError> {
        self.wanted.reply(&blob, &ranges)
    }
}
