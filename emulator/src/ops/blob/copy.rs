//! Copy Blob: copies a blob or snapshot from the same or another account of the emulator.
//!
//! Source: "Copy Blob". It completes at once, with status `success`, as recorded for copies within
//! a region: bytes are shared, so that its cost does not depend on the length. A source outside the
//! emulator is fetched first. A rule of the control endpoint can delay a copy; then the blob is
//! empty and its status `pending` until the emulator's clock has advanced that far.
//!
//! Properties, the block list and, unless the request has its own, metadata are copied; snapshots,
//! lease and tier are not. An archived source needs an online tier in the request, and the copy is
//! pending for as long as the rehydration of such a blob takes ("Blob rehydration from the archive
//! tier").
//!
//! ```http
//! PUT /devstoreaccount1/events/copy.json
//! x-ms-copy-source: http://127.0.0.1:10000/devstoreaccount1/events/2026/11/21.json
//!
//! 202 Accepted
//! x-ms-copy-id: 4ffa938b-b8bc-4c1a-89f5-3fa04737bcbc
//! x-ms-copy-status: success
//! ```

use smalt_protocol::{ApiVersion, ErrorCode, StorageError};

use super::copied::{self, Overrides};
use super::creation;
use super::guard::{self, Guard};
use super::pending;
use super::properties;
use super::replace::NewBlob;
use super::source::{Request, Source, SourceUrl, Wanted};
use crate::call::Call;
use crate::operation::Write;
use crate::ops::lookup::{BlobName, Place};
use crate::ops::tree;
use crate::records::{BlobRecord, CopyRecord};
use crate::reply::Reply;
use crate::rules::conditions::Conditions;
use crate::rules::encryption::Requested;
use crate::rules::lease::LeaseState;
use crate::store::{Stamp, Transaction, View};

/// Since this version, copies have an id and a status, and leased destinations need an infinite
/// lease. "Version 2012-02-12".
const COPIES_HAVE_IDS: ApiVersion = ApiVersion::V2012_02_12;

/// The Copy Blob operation.
pub struct CopyBlob {
    name: BlobName,
    guard: Guard,
    may_overwrite: bool,
    overrides: Overrides,
    url: SourceUrl,
    source_conditions: Conditions,
    copy_id: String,
    version: ApiVersion,
    source: Option<Source>,
}

/// The current destination, and the current source once it may be read.
pub struct Checked {
    place: Place,
    source: Option<BlobRecord>,
}

impl Write for CopyBlob {
    type Checked = Checked;
    type Output = BlobRecord;

    fn parse(call: &Call) -> Result<Self, StorageError> {
        Ok(CopyBlob {
            name: BlobName::of_write(call)?,
            guard: Guard::of_write(call)?,
            may_overwrite: call.identity.may('w'),
            overrides: Overrides::of(call)?,
            url: SourceUrl::of(call)?,
            source_conditions: Conditions::of_source(&call.headers)?,
            copy_id: call.fresh_id.to_string(),
            version: call.version,
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
        self.overrides.check_tags(&source)?;
        self.source = Some(source);
        Ok(())
    }

    /// Checks the destination first, then the source: a copy that the destination rejects reads
    /// nothing.
    fn check(&self, view: &dyn View, stamp: &Stamp) -> Result<Checked, StorageError> {
        let place = self.name.find_place(view, stamp.now)?;
        copied::check_overwrite(&place, self.may_overwrite, None)?;
        self.guard.check_copy_target(&place)?;
        self.check_lease_without_end(&place)?;
        let Some(source) = &self.source else {
            return Ok(Checked {
                place,
                source: None,
            });
        };
        let found = source.blob(view, stamp.now)?;
        self.source_conditions.check_source((&found).into())?;
        Requested::default().check_read(found.encryption.as_ref())?;
        if !self.overrides.has_online_tier() {
            guard::check_online(&found)?;
        }
        self.overrides.check_tier(found.kind)?;
        copied::check_overwrite(&place, self.may_overwrite, Some(found.kind))?;
        Ok(Checked {
            place,
            source: Some(found),
        })
    }

    fn apply(
        self,
        checked: Checked,
        tx: &mut Transaction<'_>,
        stamp: &Stamp,
    ) -> Result<BlobRecord, StorageError> {
        let (Some(mut source), Some(found)) = (self.source, checked.source) else {
            return Err(StorageError::internal("a blob is copied without a source"));
        };
        let staged = source.bytes.take().and_then(|bytes| bytes.staged);
        let content = copied::content(tx, staged, &found)?;
        let key = source.key(tx, stamp.now)?;
        let thaw = self.overrides.thaw(&found);
        let thaws = thaw.is_some();
        let copy = copied::finished(self.copy_id, source.shown, found.length, stamp.now);
        let new = NewBlob {
            kind: found.kind,
            length: found.length,
            content,
            metadata: self.overrides.metadata(&found),
            tags: self.overrides.tags(&found),
            access: self.overrides.access(stamp.now),
            marks: self.overrides.marks(&found),
            headers: found.headers,
            copy: Some(copy),
            encryption: Requested::default().of_new(&checked.place.container.encryption_scope)?,
            sequence_number: found.sequence_number,
        };
        let blob = creation::make(tx, &self.name, &checked.place, new, stamp)?;
        let folder = tree::folder_of(tx, &self.name, stamp.now)?;
        let destination = self.name.key(folder);
        match source.hold.or(thaw) {
            // A copy of a blob onto itself is not delayed.
            Some(hold) if key.as_ref() != Some(&destination) && self.version >= COPIES_HAVE_IDS => {
                pending::hold(tx, blob, destination, key, (&hold, thaws), stamp)
            }
            _ => Ok(blob),
        }
    }

    fn render(blob: BlobRecord, call: &Call) -> Result<Reply, StorageError> {
        if call.version < COPIES_HAVE_IDS {
            return Ok(Reply::new(201).version(blob.etag, blob.last_modified));
        }
        let reply = Reply::new(202).version(blob.etag, blob.last_modified);
        let reply = properties::with_version(reply, &blob, call.version);
        Ok(with_copy(reply, blob.copy.as_ref()))
    }
}

impl CopyBlob {
    /// Rejects leases that end: a copy may outlast them.
    fn check_lease_without_end(&self, place: &Place) -> Result<(), StorageError> {
        let lease = place.blob.as_ref().map(|blob| blob.lease);
        let ends = matches!(
            lease,
            Some(LeaseState::Leased {
                duration_s: Some(_),
                ..
            })
        );
        if ends && self.version >= COPIES_HAVE_IDS {
            return Err(ErrorCode::InfiniteLeaseDurationRequired.into());
        }
        Ok(())
    }
}

/// Adds id and status of a copy to a response.
pub fn with_copy(reply: Reply, copy: Option<&CopyRecord>) -> Reply {
    reply
        .maybe("x-ms-copy-id", copy.map(|copy| copy.id.as_str()))
        .maybe("x-ms-copy-status", copy.map(|copy| copy.status.as_str()))
}
