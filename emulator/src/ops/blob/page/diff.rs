//! Get Page Ranges (difference): lists the pages that were written or cleared since a snapshot.
//!
//! Source: "Get Page Ranges". Pages that were rewritten with the same bytes count as well. The
//! request names the earlier snapshot by its time or, for managed disks, by its URL.
//!
//! ```http
//! GET /devstoreaccount1/disks/system.vhd?comp=pagelist&prevsnapshot=2026-11-21T10:30:00.0000000Z
//!
//! 200 OK
//! x-ms-blob-content-length: 1048576
//!
//! <PageList><PageRange><Start>0</Start><End>511</End></PageRange><ClearRange>...</PageList>
//! ```

use smalt_protocol::{ErrorCode, StorageError, Timestamp, uri};

use super::list::Wanted;
use crate::call::Call;
use crate::keys;
use crate::operation::{Read, Weight};
use crate::ops::blob::content::pages;
use crate::ops::blob::guard::Guard;
use crate::ops::lookup::{BlobAddress, BlobPart};
use crate::records::{BlobRecord, Record};
use crate::reply::Reply;
use crate::rules::pages::Ranges;
use crate::store::{Store, View};

const TIME: &str = "prevsnapshot";
const URL: &str = "x-ms-previous-snapshot-url";

/// The Get Page Ranges operation with `prevsnapshot`.
pub struct GetPageRangesDiff {
    address: BlobAddress,
    guard: Guard,
    wanted: Wanted,
    since: Timestamp,
}

impl Read for GetPageRangesDiff {
    type Output = (BlobRecord, Ranges);

    const WEIGHT: Weight = Weight::Long;

    fn parse(call: &Call) -> Result<Self, StorageError> {
        Ok(GetPageRangesDiff {
            address: BlobAddress::of(call)?,
            guard: Guard::of_read(call)?,
            wanted: Wanted::of(call)?,
            since: previous(call)?,
        })
    }

    fn read(&self, view: &dyn View, now: Timestamp) -> Result<Self::Output, StorageError> {
        let found = self.address.find(view, now)?;
        let blob = found.blob;
        self.guard.check_read(&blob, self.address.is_base())?;
        super::check_kind(&blob)?;
        if matches!(self.address.part, BlobPart::Snapshot(time) if time < self.since) {
            return Err(ErrorCode::PreviousSnapshotCannotBeNewer.into());
        }
        let generation = found.container.generation;
        let key = keys::snapshot(generation, &self.address.name.blob, self.since);
        let old = BlobRecord::load(view, &key)?.ok_or(ErrorCode::PreviousSnapshotNotFound)?;
        if old.kind != blob.kind || old.origin != blob.origin {
            return Err(ErrorCode::BlobOverwritten.into());
        }
        let bytes = self.wanted.bytes(blob.length)?;
        let mut ranges = self.wanted.ranges();
        pages::differences(
            view,
            [old.content, blob.content],
            bytes,
            &mut |range, kind| ranges.push(range, kind),
        )?;
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

fn previous(call: &Call) -> Result<Timestamp, StorageError> {
    if let Some(time) = call.query(TIME) {
        return Timestamp::parse_whole(time)
            .ok_or_else(|| StorageError::invalid_query(TIME, time, "Not a valid snapshot time."));
    }
    let url = call.required_header(URL)?;
    snapshot_of(url, call).ok_or_else(|| StorageError::invalid_header(URL, url))
}

/// Returns the snapshot time in a URL, if it is a snapshot of the same blob.
fn snapshot_of(url: &str, call: &Call) -> Option<Timestamp> {
    let (place, query) = url.split_once('?')?;
    let path = uri::percent_decode(place).ok()?;
    let own = format!("/{}/{}", call.container(), call.blob());
    let query = uri::parse_query(query).ok()?;
    let is_own = path.ends_with(&own);
    uri::lookup(&query, "snapshot")
        .filter(|_| is_own)
        .and_then(Timestamp::parse_whole)
}
