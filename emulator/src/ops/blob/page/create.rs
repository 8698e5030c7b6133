//! Put Blob (page): creates a page blob of zeros and replaces any blob of that name.
//!
//! Source: "Put Blob". It takes no space until pages are written.
//!
//! ```http
//! PUT /devstoreaccount1/disks/system.vhd
//! x-ms-blob-type: PageBlob
//! x-ms-blob-content-length: 1048576
//!
//! 201 Created
//! ETag: "0x8D6D4173A7F45B7"
//! x-ms-request-server-encrypted: true
//! ```

use smalt_protocol::{ErrorCode, Metadata, StorageError};

use crate::call::Call;
use crate::config::DefaultTier;
use crate::operation::Write;
use crate::ops::blob::creation::{self, Creation};
use crate::ops::blob::replace::NewBlob;
use crate::ops::blob::{headers, properties};
use crate::ops::lookup::Place;
use crate::records::{Access, BlobContent, BlobKind, BlobRecord, ContentHeaders};
use crate::reply::Reply;
use crate::rules::encryption::Encryption;
use crate::rules::{page_tier, sequence_number, tier};
use crate::store::{Stamp, Transaction, View};

/// The Put Blob operation for page blobs.
pub struct CreatePageBlob {
    creation: Creation,
    length: u64,
    sequence_number: u64,
    headers: ContentHeaders,
    metadata: Metadata,
    tags: Vec<(String, String)>,
    tier: Option<String>,
}

impl Write for CreatePageBlob {
    type Checked = (Place, Option<Encryption>);
    type Output = BlobRecord;

    fn parse(call: &Call) -> Result<Self, StorageError> {
        super::refuse_body(call)?;
        let length = super::length(call)?;
        let number = call.header(sequence_number::NAME)?;
        Ok(CreatePageBlob {
            creation: Creation::of(call)?,
            length,
            sequence_number: number.map_or(Ok(0), sequence_number::parse)?,
            headers: headers::content_of_put(call)?,
            metadata: call.metadata()?,
            tags: headers::tags(call)?,
            tier: page_tier(call, length)?,
        })
    }

    fn check(&self, view: &dyn View, stamp: &Stamp) -> Result<Self::Checked, StorageError> {
        self.creation.check(view, stamp)
    }

    fn apply(
        self,
        (place, encryption): (Place, Option<Encryption>),
        tx: &mut Transaction<'_>,
        stamp: &Stamp,
    ) -> Result<BlobRecord, StorageError> {
        let new = NewBlob {
            kind: BlobKind::Page,
            length: self.length,
            content: BlobContent::Empty,
            headers: self.headers,
            metadata: self.metadata,
            tags: self.tags,
            access: Access {
                tier: self.tier,
                // Recorded: the tier that the blob is created with does not count as a change.
                ..Access::default()
            },
            copy: None,
            encryption,
            sequence_number: self.sequence_number,
            marks: self.creation.marks,
        };
        creation::make(tx, &self.creation.name, &place, new, stamp)
    }

    fn render(blob: BlobRecord, call: &Call) -> Result<Reply, StorageError> {
        let reply = Reply::new(201).version(blob.etag, blob.last_modified);
        Ok(properties::written(reply, &blob, call.version))
    }
}

/// Parses `x-ms-access-tier`, which only page blobs of premium accounts have.
fn page_tier(call: &Call, length: u64) -> Result<Option<String>, StorageError> {
    let Some(given) = headers::tier(call)? else {
        return Ok(None);
    };
    let is_premium = call.settings.default_tier == DefaultTier::Premium;
    if !is_premium || !tier::PAGE_BLOB.contains(&given) {
        return Err(ErrorCode::AccessTierNotSupportedForBlobType.into());
    }
    let too_small = ErrorCode::BlobTierInadequateForContentLength;
    page_tier::check(Some(given), length, too_small)?;
    Ok(Some(given.to_owned()))
}
