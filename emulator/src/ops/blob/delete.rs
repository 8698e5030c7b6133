//! Delete Blob: a base blob, its snapshots, or one of them.
//!
//! Source: "Delete Blob".
//!
//! ```http
//! DELETE /devstoreaccount1/events/2026/11/21.json
//! x-ms-delete-snapshots: include
//!
//! 202 Accepted
//! x-ms-delete-type-permanent: true
//! ```

use smalt_protocol::{ApiVersion, ErrorCode, StorageError, Timestamp};

use super::guard::{self, Guard};
use super::{content, pending, replace};
use crate::call::Call;
use crate::keys;
use crate::operation::Write;
use crate::ops::lookup::{BlobAddress, BlobPart, Place};
use crate::records::{BlobContent, Record};
use crate::reply::Reply;
use crate::store::{Stamp, Transaction, View};

/// Since this version a deletion says whether it can be undone. "Version 2017-07-29".
const SAYS_PERMANENT: ApiVersion = ApiVersion::V2017_07_29;
/// Since this version a blob of uncommitted blocks only can be deleted. "Version 2013-08-15".
const DELETES_UNCOMMITTED: ApiVersion = ApiVersion::V2013_08_15;

/// Delete Blob.
pub struct DeleteBlob {
    address: BlobAddress,
    guard: Guard,
    snapshots: Snapshots,
    is_permanent: bool,
    version: ApiVersion,
}

/// `x-ms-delete-snapshots`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Snapshots {
    /// Absent: there may be none.
    Refuse,
    /// `include`: the base blob and all of them.
    Include,
    /// `only`: all of them, not the base blob.
    Only,
}

/// What is to be deleted, and where.
pub struct Doomed {
    place: Place,
    part: Part,
}

enum Part {
    /// The base blob with its snapshots.
    Base,
    /// All snapshots.
    Snapshots,
    /// One snapshot with this content.
    Snapshot(Timestamp, BlobContent),
    /// Uncommitted blocks without a base blob.
    Uncommitted,
}

impl Write for DeleteBlob {
    type Checked = Doomed;
    type Output = ();

    fn parse(call: &Call) -> Result<Self, StorageError> {
        let address = BlobAddress::of(call)?;
        let snapshots = parse_snapshots(call)?;
        if !address.is_base() && snapshots != Snapshots::Refuse {
            let part = call.query("snapshot").unwrap_or_default();
            return Err(StorageError::invalid_query("snapshot", part, ""));
        }
        Ok(DeleteBlob {
            address,
            guard: Guard::of_write(call)?,
            snapshots,
            is_permanent: parse_permanent(call)?,
            version: call.version,
        })
    }

    fn check(&self, view: &dyn View, stamp: &Stamp) -> Result<Doomed, StorageError> {
        let place = self.address.name.find_place(view, stamp.now)?;
        let part = match self.address.part {
            BlobPart::Base => self.check_base(view, &place)?,
            BlobPart::Snapshot(tick) => {
                let snapshot = self.address.find(view, stamp.now)?.blob;
                self.guard.check_conditions(&snapshot)?;
                self.check_permanent()?;
                Part::Snapshot(tick, snapshot.content)
            }
            BlobPart::Version => return Err(ErrorCode::BlobNotFound.into()),
        };
        Ok(Doomed { place, part })
    }

    fn apply(
        self,
        Doomed { place, part }: Doomed,
        tx: &mut Transaction<'_>,
        stamp: &Stamp,
    ) -> Result<(), StorageError> {
        let (name, generation) = (&self.address.name, place.container.generation);
        match part {
            Part::Base => {
                if let Some(blob) = &place.blob {
                    if blob.snapshots > 0 {
                        replace::remove_snapshots(tx, generation, &name.blob)?;
                    }
                    pending::fail_readers(tx, &blob.copied_to, stamp)?;
                    replace::remove(tx, name, generation, blob)?;
                }
            }
            Part::Snapshots => {
                replace::remove_snapshots(tx, generation, &name.blob)?;
                self.recount(tx, place, |_| 0)?;
            }
            Part::Snapshot(tick, bytes) => {
                content::release(tx, bytes)?;
                tx.delete(keys::snapshot(generation, &name.blob, tick));
                self.recount(tx, place, |snapshots| snapshots.saturating_sub(1))?;
            }
            Part::Uncommitted => replace::drop_uncommitted(tx, generation, &name.blob)?,
        }
        Ok(())
    }

    fn render((): (), call: &Call) -> Result<Reply, StorageError> {
        let permanent = (call.version >= SAYS_PERMANENT).then_some("true");
        Ok(Reply::new(202).maybe("x-ms-delete-type-permanent", permanent))
    }
}

impl DeleteBlob {
    fn check_base(&self, view: &dyn View, place: &Place) -> Result<Part, StorageError> {
        let Some(blob) = &place.blob else {
            let key = keys::uncommitted(place.container.generation, &self.address.name.blob);
            if self.version >= DELETES_UNCOMMITTED && view.get(&key)?.is_some() {
                return Ok(Part::Uncommitted);
            }
            return Err(ErrorCode::BlobNotFound.into());
        };
        self.guard.check_write(blob)?;
        guard::check_settled(blob)?;
        self.check_permanent()?;
        match self.snapshots {
            Snapshots::Only => Ok(Part::Snapshots),
            Snapshots::Refuse if blob.snapshots > 0 => Err(ErrorCode::SnapshotsPresent.into()),
            Snapshots::Refuse | Snapshots::Include => Ok(Part::Base),
        }
    }

    /// Writes the number of snapshots that are left into the base blob.
    fn recount(
        &self,
        tx: &mut Transaction<'_>,
        place: Place,
        left: impl Fn(u64) -> u64,
    ) -> Result<(), StorageError> {
        if let Some(mut blob) = place.blob {
            blob.snapshots = left(blob.snapshots);
            blob.save(tx, self.address.name.key(place.container.generation))?;
        }
        Ok(())
    }

    /// No account of ours keeps what was deleted, so none has permanent deletion switched on.
    fn check_permanent(&self) -> Result<(), StorageError> {
        if self.is_permanent {
            return Err(ErrorCode::PermanentDeleteIsOff.into());
        }
        Ok(())
    }
}

fn parse_snapshots(call: &Call) -> Result<Snapshots, StorageError> {
    const NAME: &str = "x-ms-delete-snapshots";
    match call.header(NAME)? {
        None => Ok(Snapshots::Refuse),
        Some(text) if text.eq_ignore_ascii_case("include") => Ok(Snapshots::Include),
        Some(text) if text.eq_ignore_ascii_case("only") => Ok(Snapshots::Only),
        Some(text) => Err(StorageError::invalid_header(NAME, text)),
    }
}

fn parse_permanent(call: &Call) -> Result<bool, StorageError> {
    const NAME: &str = "deletetype";
    match call.query(NAME) {
        None => Ok(false),
        Some(text) if text.eq_ignore_ascii_case("permanent") => Ok(true),
        Some(text) => Err(StorageError::invalid_query(NAME, text, "")),
    }
}
