//! Set Blob Expiry: sets the time at which a blob expires.
//!
//! Source: "Set Blob Expiry". Neither ETag nor last-modified time change. Look-ups do not find an
//! expired blob; the next write under its name or the reaper removes it.
//!
//! ```http
//! PUT /devstoreaccount1/events/2026/11/21.json?comp=expiry
//! x-ms-expiry-option: RelativeToNow
//! x-ms-expiry-time: 86400000
//!
//! 200 OK
//! ETag: "0x8D6D4173A7F45B7"
//! ```

use std::time::Duration;

use smalt_protocol::{ErrorCode, StorageError, Timestamp};

use super::guard::{self, Guard};
use super::removal;
use crate::call::Call;
use crate::keys;
use crate::operation::Write;
use crate::ops::lookup::{BlobName, Found};
use crate::ops::tree;
use crate::records::{BlobRecord, Record};
use crate::reply::Reply;
use crate::store::{Stamp, StoreResult, Transaction, View};

const OPTION: &str = "x-ms-expiry-option";
const TIME: &str = "x-ms-expiry-time";

/// The Set Blob Expiry operation.
pub struct SetBlobExpiry {
    name: BlobName,
    guard: Guard,
    expiry: Expiry,
}

/// When a blob expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiry {
    /// Not at all.
    Never,
    /// So long after its creation.
    AfterCreation(Duration),
    /// So long after the request.
    AfterNow(Duration),
    /// At a time, which must be in the future.
    At(Timestamp),
}

impl Write for SetBlobExpiry {
    type Checked = Found;
    type Output = BlobRecord;

    fn parse(call: &Call) -> Result<Self, StorageError> {
        let set = SetBlobExpiry {
            name: BlobName::of_write(call)?,
            guard: Guard::of_write(call)?,
            expiry: Expiry::of(call)?,
        };
        if !call.settings.blob_expiry && !call.settings.hierarchical_namespace {
            return Err(ErrorCode::HierarchicalNamespaceNotEnabled.into());
        }
        Ok(set)
    }

    fn check(&self, view: &dyn View, stamp: &Stamp) -> Result<Found, StorageError> {
        let found = self.name.find(view, stamp.now)?;
        // "Set Blob Expiry": of a file. What a directory holds would have no path any more.
        tree::check_file(found.container.generation, Some(&found.blob))?;
        self.guard.check_write(&found.blob)?;
        guard::check_changeable(&found.blob)?;
        guard::check_removable(&found.blob)?;
        self.expiry.check(stamp.now)?;
        Ok(found)
    }

    fn apply(
        self,
        found: Found,
        tx: &mut Transaction<'_>,
        stamp: &Stamp,
    ) -> Result<BlobRecord, StorageError> {
        let Found {
            container,
            mut blob,
        } = found;
        let key = self.name.key(container.generation);
        let expires = self.expiry.of_blob(blob.created, stamp.now);
        set(tx, key, &mut blob, expires)?;
        Ok(blob)
    }

    fn render(blob: BlobRecord, _: &Call) -> Result<Reply, StorageError> {
        Ok(Reply::new(200).version(blob.etag, blob.last_modified))
    }
}

impl Expiry {
    /// Returns the expiry of a blob that a request creates, if it names one.
    ///
    /// # Errors
    /// 400 `InvalidHeaderValue`, 400 `MissingRequiredHeader`.
    pub fn of_creation(call: &Call) -> Result<Option<Self>, StorageError> {
        let is_named = call.headers.contains_key(OPTION) || call.headers.contains_key(TIME);
        is_named.then(|| Self::of(call)).transpose()
    }

    /// Checks that it is not over.
    ///
    /// # Errors
    /// 400 `InvalidHeaderValue`.
    pub fn check(self, now: Timestamp) -> Result<(), StorageError> {
        match self {
            Expiry::At(time) if time <= now => {
                Err(StorageError::invalid_header(TIME, &time.rfc1123()))
            }
            _ => Ok(()),
        }
    }

    fn of(call: &Call) -> Result<Self, StorageError> {
        let option = call.required_header(OPTION)?;
        let time = call.header(TIME)?.map(str::trim);
        let refused = |time: &str| StorageError::invalid_header(TIME, time);
        let needed = || time.ok_or_else(|| StorageError::missing_header(TIME));
        let after = || {
            let time = needed()?;
            let ms = time.parse().map_err(|_| refused(time))?;
            Ok::<_, StorageError>(Duration::from_millis(ms))
        };
        match option.trim().to_ascii_lowercase().as_str() {
            "neverexpire" => time.map_or(Ok(Expiry::Never), |time| Err(refused(time))),
            "relativetocreation" => after().map(Expiry::AfterCreation),
            "relativetonow" => after().map(Expiry::AfterNow),
            "absolute" => {
                let time = needed()?;
                let at = Timestamp::parse_rfc1123(time).ok_or_else(|| refused(time))?;
                Ok(Expiry::At(at))
            }
            _ => Err(StorageError::invalid_header(OPTION, option)),
        }
    }

    /// Returns the time at which the blob expires; `None` for never.
    pub fn of_blob(self, created: Timestamp, now: Timestamp) -> Option<Timestamp> {
        match self {
            Expiry::Never => None,
            Expiry::AfterCreation(time) => Some(created.plus(time)),
            Expiry::AfterNow(time) => Some(now.plus(time)),
            Expiry::At(time) => Some(time),
        }
    }
}

/// Sets the time at which a base blob expires, and saves the blob.
///
/// # Errors
/// When the store fails.
pub fn set(
    tx: &mut Transaction<'_>,
    key: Vec<u8>,
    blob: &mut BlobRecord,
    expires: Option<Timestamp>,
) -> StoreResult<()> {
    removal::forget(tx, key.clone(), blob);
    blob.expires = expires;
    if let Some(expires) = expires {
        tx.put(keys::expiring(expires, &key), "");
    }
    blob.save(tx, key)
}

#[cfg(test)]
mod tests;
