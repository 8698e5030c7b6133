//! Put Blob of an append blob: creates an empty one and replaces any blob of that name.
//!
//! Source: "Put Blob". It takes no body: Append Block adds the bytes.
//!
//! ```http
//! PUT /devstoreaccount1/logs/2026-11-21.log
//! x-ms-blob-type: AppendBlob
//! Content-Length: 0
//!
//! 201 Created
//! ETag: "0x8D6D4173A7F45B7"
//! ```

use smalt_protocol::{ErrorCode, Metadata, StorageError};

use super::require_version;
use crate::call::Call;
use crate::operation::Write;
use crate::ops::blob::creation::{self, Creation};
use crate::ops::blob::replace::NewBlob;
use crate::ops::blob::{headers, properties};
use crate::ops::lookup::Place;
use crate::records::{Access, BlobContent, BlobKind, BlobRecord, ContentHeaders};
use crate::reply::Reply;
use crate::rules::encryption::Encryption;
use crate::store::{Stamp, Transaction, View};

/// The Put Blob operation for append blobs.
pub struct CreateAppendBlob {
    creation: Creation,
    headers: ContentHeaders,
    metadata: Metadata,
    tags: Vec<(String, String)>,
}

impl Write for CreateAppendBlob {
    type Checked = (Place, Option<Encryption>);
    type Output = BlobRecord;

    fn parse(call: &Call) -> Result<Self, StorageError> {
        require_version(call)?;
        if let Some(length) = call.body_length.filter(|length| *length > 0) {
            let length = length.to_string();
            return Err(StorageError::invalid_header("Content-Length", &length));
        }
        if headers::tier(call)?.is_some() {
            return Err(ErrorCode::AccessTierNotSupportedForBlobType.into());
        }
        Ok(CreateAppendBlob {
            creation: Creation::of(call)?,
            headers: headers::content_of_put(call)?,
            metadata: call.metadata()?,
            tags: headers::tags(call)?,
        })
    }

    fn check(&self, view: &dyn View, stamp: &Stamp) -> Result<Self::Checked, StorageError> {
        self.creation.check(view, stamp)
    }

    fn apply(
        self,
        (place, encryption): Self::Checked,
        tx: &mut Transaction<'_>,
        stamp: &Stamp,
    ) -> Result<BlobRecord, StorageError> {
        let new = NewBlob {
            kind: BlobKind::Append,
            length: 0,
            content: BlobContent::Empty,
            headers: self.headers,
            metadata: self.metadata,
            tags: self.tags,
            access: Access::default(),
            copy: None,
            encryption,
            sequence_number: 0,
            marks: self.creation.marks,
        };
        creation::make(tx, &self.creation.name, &place, new, stamp)
    }

    fn render(blob: BlobRecord, call: &Call) -> Result<Reply, StorageError> {
        let reply = Reply::new(201).version(blob.etag, blob.last_modified);
        Ok(properties::written(reply, &blob, call.version))
    }
}
