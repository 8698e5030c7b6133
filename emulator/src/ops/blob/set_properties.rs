//! Set Blob Properties: sets the six content headers as a unit; for a page blob also its length and
//! sequence number.
//!
//! Source: "Set Blob Properties". Content headers that are not given are cleared, so a request
//! without any clears them all, as recorded; one that gives only length or sequence number keeps
//! them.
//!
//! ```http
//! PUT /devstoreaccount1/events/2026/11/21.json?comp=properties
//! x-ms-blob-content-type: application/json
//!
//! 200 OK
//! ETag: "0x8D6D4173A7F45B7"
//! ```

use smalt_protocol::{ErrorCode, StorageError};

use super::content::pages;
use super::guard::{self, Guard};
use super::{headers, page, replace};
use crate::call::Call;
use crate::operation::Write;
use crate::ops::lookup::{BlobName, Found};
use crate::records::{BlobKind, BlobRecord, ContentHeaders};
use crate::reply::Reply;
use crate::rules::page_tier;
use crate::rules::sequence_number::{self, Action};
use crate::store::{Stamp, Transaction, View};

/// The Set Blob Properties operation.
pub struct SetBlobProperties {
    name: BlobName,
    guard: Guard,
    headers: Option<ContentHeaders>,
    length: Option<u64>,
    action: Option<Action>,
}

impl Write for SetBlobProperties {
    /// The blob, and its new sequence number.
    type Checked = (Found, u64);
    type Output = BlobRecord;

    fn parse(call: &Call) -> Result<Self, StorageError> {
        let length = call.header(page::LENGTH)?;
        let length = length.map(|_| page::length(call)).transpose()?;
        let action = call.header("x-ms-sequence-number-action")?;
        let number = call.header(sequence_number::NAME)?;
        let action = action
            .map(|action| Action::parse(action, number))
            .transpose()?;
        let given = headers::content_of_set(call)?;
        let is_of_pages = length.is_some() || action.is_some();
        Ok(SetBlobProperties {
            name: BlobName::of_write(call)?,
            guard: Guard::of_write(call)?,
            headers: if is_of_pages {
                given
            } else {
                Some(given.unwrap_or_default())
            },
            length,
            action,
        })
    }

    fn check(&self, view: &dyn View, stamp: &Stamp) -> Result<(Found, u64), StorageError> {
        let found = self.name.find(view, stamp.now)?;
        let blob = &found.blob;
        self.guard.check_write(blob)?;
        guard::check_changeable(blob)?;
        guard::check_not_retained(blob)?;
        if self.length.is_some() || self.action.is_some() {
            page::check_kind(blob)?;
            guard::check_rewritable(blob)?;
        }
        if let Some(length) = self.length {
            let too_long = ErrorCode::ContentLengthLargerThanTierLimit;
            page_tier::check(blob.access.tier.as_deref(), length, too_long)?;
        }
        let number = blob.sequence_number;
        let number = self
            .action
            .map_or(Ok(number), |action| action.apply(number))?;
        Ok((found, number))
    }

    fn apply(
        self,
        (found, number): (Found, u64),
        tx: &mut Transaction<'_>,
        stamp: &Stamp,
    ) -> Result<BlobRecord, StorageError> {
        let Found {
            container,
            mut blob,
        } = found;
        if let Some(headers) = self.headers {
            blob.headers = headers;
        }
        if let Some(length) = self.length {
            if length < blob.length {
                let lost = length..blob.length;
                blob.content = pages::clear(tx, blob.content, lost, stamp.tick.ticks())?;
            }
            blob.length = length;
        }
        blob.sequence_number = number;
        // "This header does not appear if the blob was modified by Set Blob Properties since."
        blob.copy = None;
        replace::touch(tx, &self.name, container.generation, blob, stamp)
    }

    fn render(blob: BlobRecord, _: &Call) -> Result<Reply, StorageError> {
        let number = (blob.kind == BlobKind::Page).then(|| blob.sequence_number.to_string());
        Ok(Reply::new(200)
            .version(blob.etag, blob.last_modified)
            .maybe(sequence_number::NAME, number))
    }
}
