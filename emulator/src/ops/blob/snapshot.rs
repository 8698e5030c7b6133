//! Snapshot Blob: creates a read-only copy of the current blob, named by its time.
//!
//! Source: "Snapshot Blob". Bytes are shared, whatever their number. Without metadata in the
//! request the snapshot has ETag and last-modified time of its blob; with metadata it gets new
//! ones. The blob itself does not change; if the account keeps versions it becomes a new version.
//!
//! ```http
//! PUT /devstoreaccount1/events/2026/11/21.json?comp=snapshot
//!
//! 201 Created
//! x-ms-snapshot: 2026-11-21T10:30:00.0000000Z
//! ETag: "0x8D6D4173A7F45B7"
//! ```

use smalt_protocol::{ApiVersion, Metadata, StorageError, Timestamp};

use super::guard::{self, Guard};
use super::headers;
use super::{content, properties, replace};
use crate::call::Call;
use crate::keys;
use crate::operation::Write;
use crate::ops::lookup::{BlobName, Found};
use crate::records::{BlobRecord, Record};
use crate::reply::Reply;
use crate::rules::encryption::Requested;
use crate::rules::lease::LeaseState;
use crate::store::{Stamp, Transaction, View};

/// Since this version, the response says that the request was not encrypted. Recorded.
const SAYS_UNENCRYPTED: ApiVersion = ApiVersion::V2018_11_09;

/// The Snapshot Blob operation.
pub struct SnapshotBlob {
    name: BlobName,
    guard: Guard,
    encryption: Requested,
    metadata: Metadata,
}

/// The new snapshot and its time.
pub struct Taken {
    snapshot: BlobRecord,
    blob: BlobRecord,
    time: Timestamp,
}

impl Write for SnapshotBlob {
    type Checked = Found;
    type Output = Taken;

    fn parse(call: &Call) -> Result<Self, StorageError> {
        Ok(SnapshotBlob {
            name: BlobName::of_write(call)?,
            guard: Guard::of_write(call)?,
            encryption: headers::encryption(call)?,
            metadata: call.metadata()?,
        })
    }

    fn check(&self, view: &dyn View, stamp: &Stamp) -> Result<Found, StorageError> {
        let found = self.name.find(view, stamp.now)?;
        self.guard.check_use(&found.blob)?;
        guard::check_changeable(&found.blob)?;
        guard::check_not_retained(&found.blob)?;
        guard::check_encryption(&self.encryption, &found)?;
        Ok(found)
    }

    fn apply(
        self,
        found: Found,
        tx: &mut Transaction<'_>,
        stamp: &Stamp,
    ) -> Result<Taken, StorageError> {
        let Found { container, blob } = found;
        let generation = container.generation;
        content::retain(tx, blob.content)?;
        let mut snapshot = BlobRecord {
            lease: LeaseState::Available,
            snapshots: 0,
            version_id: None,
            // A snapshot is removed with an expired blob, and does not inherit its protection.
            expires: None,
            immutability: None,
            legal_hold: None,
            ..blob.clone()
        };
        if !self.metadata.is_empty() {
            snapshot.metadata = self.metadata;
            snapshot.etag = stamp.etag();
            snapshot.last_modified = stamp.now;
        }
        snapshot.save(tx, keys::snapshot(generation, &self.name.blob, stamp.tick))?;
        let next = BlobRecord {
            snapshots: blob.snapshots + 1,
            ..blob.clone()
        };
        let blob = replace::next_version(tx, &self.name, generation, &blob, next, stamp)?;
        blob.save(tx, self.name.key(generation))?;
        Ok(Taken {
            snapshot,
            blob,
            time: stamp.tick,
        })
    }

    fn render(taken: Taken, call: &Call) -> Result<Reply, StorageError> {
        // Recorded: of a file of a hierarchical account, it says the opposite.
        let is_path = taken.blob.posix.is_some().to_string();
        let encrypted = (call.version >= SAYS_UNENCRYPTED).then_some(is_path);
        let reply = Reply::new(201).version(taken.snapshot.etag, taken.snapshot.last_modified);
        Ok(properties::with_version(reply, &taken.blob, call.version)
            .header("x-ms-snapshot", taken.time.iso_ticks())
            .maybe("x-ms-request-server-encrypted", encrypted))
    }
}
