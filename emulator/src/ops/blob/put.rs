//! Put Blob: writes a block blob in one request and replaces any blob of that name.
//!
//! Source: "Put Blob".
//!
//! ```http
//! PUT /devstoreaccount1/events/2026/11/21.json
//! x-ms-blob-type: BlockBlob
//! Content-Length: 14
//!
//! 201 Created
//! ETag: "0x8D6D4173A7F45B7"
//! Content-MD5: sQqNsWTgdUEFt6mb5y4/5Q==
//! ```

use smalt_protocol::limits::put_blob_bytes_max;
use smalt_protocol::{Metadata, StorageError};

use super::creation::{self, Creation};
use super::replace::NewBlob;
use super::upload::Upload;
use super::written::{ANSWERS_CRC64, Written};
use super::{headers, properties};
use crate::call::Call;
use crate::operation::{Received, Takes, Write};
use crate::ops::lookup::Place;
use crate::records::{Access, BlobContent, BlobKind, ContentHeaders};
use crate::reply::Reply;
use crate::rules::encryption::Encryption;
use crate::store::{self, Staged, Stamp, Transaction, View};

/// The Put Blob operation for block blobs.
pub struct PutBlob {
    creation: Creation,
    headers: ContentHeaders,
    metadata: Metadata,
    tags: Vec<(String, String)>,
    tier: Option<String>,
    upload: Upload,
}

impl Write for PutBlob {
    type Checked = (Place, Option<Encryption>);
    type Output = Written;

    fn parse(call: &Call) -> Result<Self, StorageError> {
        require_block_blob(call)?;
        let headers = headers::content_of_put(call)?;
        let mut upload = Upload::of(call, put_blob_bytes_max(call.version))?;
        // The body is verified against the MD5 to be stored; `Content-MD5` is ignored then.
        // "Windows Azure Blob MD5 Overview".
        if let Some(stored) = &headers.content_md5 {
            upload.given.md5 = Some(headers::parse_md5(stored)?);
        }
        Ok(PutBlob {
            creation: Creation::of(call)?,
            headers,
            metadata: call.metadata()?,
            tags: headers::tags(call)?,
            tier: headers::block_blob_tier(call)?,
            upload,
        })
    }

    fn takes(&self) -> Takes {
        self.upload.takes()
    }

    fn payload(&mut self, received: Received) -> Result<(), StorageError> {
        self.upload.receive(received)
    }

    fn check(&self, view: &dyn View, stamp: &Stamp) -> Result<Self::Checked, StorageError> {
        self.creation.check(view, stamp)
    }

    fn apply(
        self,
        (place, encryption): (Place, Option<Encryption>),
        tx: &mut Transaction<'_>,
        stamp: &Stamp,
    ) -> Result<Written, StorageError> {
        let (staged, hashes) = self.upload.into_bytes()?;
        let mut headers = self.headers;
        headers.content_md5 = hashes.md5.map(|md5| headers::encode(&md5));
        let new = NewBlob {
            kind: BlobKind::Block,
            length: staged.len(),
            content: adopt(tx, staged)?,
            headers,
            metadata: self.metadata,
            tags: self.tags,
            access: Access::given(self.tier, stamp.now),
            copy: None,
            encryption,
            sequence_number: 0,
            marks: self.creation.marks,
        };
        let blob = creation::make(tx, &self.creation.name, &place, new, stamp)?;
        Ok(Written { blob, hashes })
    }

    fn render(written: Written, call: &Call) -> Result<Reply, StorageError> {
        let hashes = written.hashes;
        let crc64 = (call.version >= ANSWERS_CRC64).then(|| headers::encode(&hashes.crc64));
        let reply = Reply::new(201)
            .version(written.blob.etag, written.blob.last_modified)
            .maybe("content-md5", hashes.md5.map(|md5| headers::encode(&md5)))
            .maybe("x-ms-content-crc64", crc64);
        Ok(properties::written(reply, &written.blob, call.version))
    }
}

/// Returns `Empty` for a zero-length body, so that no payload is stored.
fn adopt(tx: &mut Transaction<'_>, staged: Staged) -> Result<BlobContent, StorageError> {
    if staged.is_empty() {
        return Ok(BlobContent::Empty);
    }
    Ok(BlobContent::Payload(store::adopt(tx, staged)?))
}

/// Rejects other blob types: those with an operation of their own are routed elsewhere.
///
/// # Errors
/// 400 `MissingRequiredHeader`, 400 `InvalidHeaderValue` for another type.
pub fn require_block_blob(call: &Call) -> Result<(), StorageError> {
    const NAME: &str = "x-ms-blob-type";
    let kind = call.required_header(NAME)?;
    if kind.eq_ignore_ascii_case(BlobKind::Block.as_str()) {
        Ok(())
    } else {
        Err(StorageError::invalid_header(NAME, kind))
    }
}
