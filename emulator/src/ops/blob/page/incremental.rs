//! Incremental Copy Blob: copies the changes between two snapshots of a page blob to another blob,
//! which gets its own snapshot for each.
//!
//! Source: "Incremental Copy Blob". The response says `pending`, as recorded, although the copy is
//! done by then, since bytes are shared. Only further incremental copies change the destination,
//! and it is read through its snapshots.
//!
//! ```http
//! PUT /devstoreaccount1/backup/system.vhd?comp=incrementalcopy
//! x-ms-copy-source: http://127.0.0.1:10000/devstoreaccount1/disks/system.vhd?snapshot=...
//!
//! 202 Accepted
//! x-ms-copy-id: 4ffa938b-b8bc-4c1a-89f5-3fa04737bcbc
//! x-ms-copy-status: pending
//! ```

use smalt_protocol::{ErrorCode, Metadata, StorageError, Timestamp};

use crate::call::Call;
use crate::keys;
use crate::operation::Write;
use crate::ops::blob::copied;
use crate::ops::blob::copy::with_copy;
use crate::ops::blob::guard::Guard;
use crate::ops::blob::replace::{self, Marks, NewBlob};
use crate::ops::blob::source::{Origin, Request, Source, SourceUrl, Wanted};
use crate::ops::blob::{content, page, properties};
use crate::ops::lookup::{BlobAddress, BlobName, BlobPart, Place};
use crate::records::{
    Access, BlobContent, BlobKind, BlobRecord, ContentHeaders, CopyStatus, IncrementalCopy, Record,
};
use crate::reply::Reply;
use crate::rules::encryption::Requested;
use crate::rules::lease::LeaseState;
use crate::store::{Stamp, Transaction, View};

/// The Incremental Copy Blob operation.
pub struct IncrementalCopyBlob {
    name: BlobName,
    guard: Guard,
    may_overwrite: bool,
    url: SourceUrl,
    copy_id: String,
    source: Option<Source>,
}

/// The current destination, and the source with its time once it may be read.
pub struct Checked {
    place: Place,
    source: Option<(BlobRecord, Timestamp)>,
}

impl Write for IncrementalCopyBlob {
    type Checked = Checked;
    type Output = BlobRecord;

    fn parse(call: &Call) -> Result<Self, StorageError> {
        Ok(IncrementalCopyBlob {
            name: BlobName::of_write(call)?,
            guard: Guard::of_write(call)?,
            may_overwrite: call.identity.may('w'),
            url: SourceUrl::of(call)?,
            copy_id: call.fresh_id.to_string(),
            source: None,
        })
    }

    fn source(&self) -> Option<Request> {
        Some(Request {
            url: self.url.clone(),
            wanted: Wanted::Reference,
        })
    }

    fn sourced(&mut self, source: Source) -> Result<(), StorageError> {
        self.source = Some(source);
        Ok(())
    }

    /// Checks the destination first, then the source.
    fn check(&self, view: &dyn View, stamp: &Stamp) -> Result<Checked, StorageError> {
        let place = self.name.find_place(view, stamp.now)?;
        copied::check_overwrite(&place, self.may_overwrite, None)?;
        match &place.blob {
            None => self.guard.check_create(&place)?,
            Some(blob) => {
                self.guard.check_write(blob)?;
                if blob.incremental.is_none() {
                    return Err(ErrorCode::IncrementalCopyBlobMismatch.into());
                }
            }
        }
        let source = match &self.source {
            None => None,
            Some(source) => Some(self.check_source(view, source, &place, stamp.now)?),
        };
        Ok(Checked { place, source })
    }

    fn apply(
        self,
        checked: Checked,
        tx: &mut Transaction<'_>,
        stamp: &Stamp,
    ) -> Result<BlobRecord, StorageError> {
        let missing = || StorageError::internal("a blob is copied without a source");
        let source = self.source.ok_or_else(missing)?;
        let (found, time) = checked.source.ok_or_else(missing)?;
        let incremental = IncrementalCopy {
            source: name_of(address(&source)?),
            source_origin: found.origin,
            source_snapshot: time,
            snapshot: stamp.tick,
        };
        let copy = copied::finished(self.copy_id, source.shown, found.length, stamp.now);
        // One reference for the destination, one for its snapshot.
        content::retain(tx, found.content)?;
        content::retain(tx, found.content)?;
        let generation = checked.place.container.generation;
        let mut blob = match &checked.place.blob {
            Some(old) => {
                content::release(tx, old.content)?;
                old.clone()
            }
            None => {
                let new = new_blob(&checked.place)?;
                replace::replace(tx, &self.name, &checked.place, new, stamp)?
            }
        };
        // Recorded: the response to the first copy has a version id, although the blob has none.
        let made = blob.version_id.take_if(|_| checked.place.blob.is_none());
        let blob = BlobRecord {
            length: found.length,
            content: found.content,
            headers: found.headers,
            metadata: found.metadata,
            copy: Some(copy),
            sequence_number: found.sequence_number,
            incremental: Some(incremental),
            snapshots: blob.snapshots + 1,
            ..blob
        };
        let blob = replace::touch(tx, &self.name, generation, blob, stamp)?;
        let snapshot = BlobRecord {
            lease: LeaseState::Available,
            snapshots: 0,
            ..blob.clone()
        };
        snapshot.save(tx, keys::snapshot(generation, &self.name.blob, stamp.tick))?;
        Ok(BlobRecord {
            version_id: made,
            ..blob
        })
    }

    fn render(mut blob: BlobRecord, call: &Call) -> Result<Reply, StorageError> {
        if let Some(copy) = &mut blob.copy {
            copy.status = CopyStatus::Pending;
        }
        let reply = Reply::new(202).version(blob.etag, blob.last_modified);
        let reply = properties::with_version(reply, &blob, call.version);
        Ok(with_copy(reply, blob.copy.as_ref()))
    }
}

impl IncrementalCopyBlob {
    /// Checks the source: a snapshot of a page blob, of the same blob as before and not an earlier
    /// one.
    fn check_source(
        &self,
        view: &dyn View,
        source: &Source,
        place: &Place,
        now: Timestamp,
    ) -> Result<(BlobRecord, Timestamp), StorageError> {
        let address = address(source)?;
        let BlobPart::Snapshot(time) = address.part else {
            return Err(ErrorCode::IncrementalCopySourceMustBeSnapshot.into());
        };
        let found = source.blob(view, now)?;
        Requested::default().check_read(found.encryption.as_ref())?;
        page::check_kind(&found).map_err(|_| ErrorCode::InvalidSourceBlobType)?;
        let last = place
            .blob
            .as_ref()
            .and_then(|blob| blob.incremental.as_ref());
        if let Some(last) = last {
            let is_same = last.source == name_of(address);
            if !is_same || last.source_origin != found.origin {
                return Err(ErrorCode::IncrementalCopyBlobMismatch.into());
            }
            if time < last.source_snapshot {
                return Err(ErrorCode::IncrementalCopyOfEarlierVersionSnapshotNotAllowed.into());
            }
        }
        Ok((found, time))
    }
}

/// Returns the source's address. Rejects sources outside the emulator: they have no history of
/// changes.
fn address(source: &Source) -> Result<&BlobAddress, StorageError> {
    match &source.origin {
        Origin::Here(address) => Ok(address),
        Origin::Elsewhere(_) => Err(ErrorCode::InvalidSourceBlobUrl.into()),
    }
}

fn new_blob(place: &Place) -> Result<NewBlob, StorageError> {
    Ok(NewBlob {
        kind: BlobKind::Page,
        length: 0,
        content: BlobContent::Empty,
        headers: ContentHeaders::default(),
        metadata: Metadata::default(),
        tags: Vec::new(),
        access: Access::default(),
        copy: None,
        encryption: Requested::default().of_new(&place.container.encryption_scope)?,
        sequence_number: 0,
        marks: Marks::default(),
    })
}

fn name_of(address: &BlobAddress) -> String {
    let name = &address.name;
    let container = &name.container;
    format!(
        "{}/{}/{}",
        container.account, container.container, name.blob
    )
}
