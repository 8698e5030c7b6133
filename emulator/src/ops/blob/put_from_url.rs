//! Put Blob From URL: creates a block blob from the bytes of another blob.
//!
//! Source: "Put Blob From URL". Unlike a copy, it does not record the source in the blob. Content
//! headers and metadata of the source are copied unless the request overrides them, header by
//! header.
//!
//! ```http
//! PUT /devstoreaccount1/events/copy.json
//! x-ms-blob-type: BlockBlob
//! x-ms-copy-source: http://127.0.0.1:10000/devstoreaccount1/events/2026/11/21.json?sv=...&sig=...
//!
//! 201 Created
//! x-ms-content-crc64: YeJLfssylmU=
//! ```

use smalt_protocol::limits::put_blob_bytes_max;
use smalt_protocol::{ApiVersion, StorageError};

use super::from_url::{Checked, FromUrl};
use super::source::{Request, Source};
use super::written::Written;
use super::{headers, properties, put};
use crate::call::Call;
use crate::operation::Write;
use crate::records::ContentHeaders;
use crate::reply::Reply;
use crate::store::{Stamp, Transaction, View};

/// Since this version, errors of unmet conditions distinguish source and target. Recorded in
/// 2021-12-02, and not in 2020-08-04.
const TELLS_SIDES: ApiVersion = ApiVersion::V2020_10_02;

/// The Put Blob From URL operation.
pub struct PutBlobFromUrl {
    inner: FromUrl,
    headers: ContentHeaders,
    takes_properties: bool,
    given_md5: Option<[u8; 16]>,
    md5: Option<[u8; 16]>,
}

impl Write for PutBlobFromUrl {
    type Checked = Checked;
    type Output = Written;

    fn parse(call: &Call) -> Result<Self, StorageError> {
        const PROPERTIES: &str = "x-ms-copy-source-blob-properties";
        put::require_block_blob(call)?;
        let takes_properties = match call.header(PROPERTIES)? {
            None => true,
            Some(text) if text.eq_ignore_ascii_case("true") => true,
            Some(text) if text.eq_ignore_ascii_case("false") => false,
            Some(text) => return Err(StorageError::invalid_header(PROPERTIES, text)),
        };
        let mut inner = FromUrl::of(call, put_blob_bytes_max(call.version))?;
        inner.tells_sides = call.version >= TELLS_SIDES;
        inner.keeps_blocks = false;
        if !takes_properties {
            inner.leave_metadata();
        }
        let headers = headers::content_of_set(call)?.unwrap_or_default();
        let given_md5 = headers.content_md5.as_deref();
        Ok(PutBlobFromUrl {
            inner,
            given_md5: given_md5.map(headers::parse_md5).transpose()?,
            headers,
            takes_properties,
            md5: None,
        })
    }

    fn source(&self) -> Option<Request> {
        Some(self.inner.request())
    }

    fn sourced(&mut self, source: Source) -> Result<(), StorageError> {
        self.md5 = source.bytes.as_ref().and_then(|bytes| bytes.md5);
        if let (Some(given), Some(md5)) = (self.given_md5, self.md5) {
            headers::check_md5(given, md5)?;
        }
        self.inner.sourced(source)
    }

    fn check(&self, view: &dyn View, stamp: &Stamp) -> Result<Checked, StorageError> {
        self.inner.check(view, stamp)
    }

    fn apply(
        self,
        checked: Checked,
        tx: &mut Transaction<'_>,
        stamp: &Stamp,
    ) -> Result<Written, StorageError> {
        let PutBlobFromUrl { inner, headers, .. } = self;
        inner.write(checked, tx, stamp, |found, _| {
            let below = if self.takes_properties {
                found.headers.clone()
            } else {
                ContentHeaders::default()
            };
            let mut headers = laid_over(headers, below);
            headers.content_md5 = self.md5.map(|md5| headers::encode(&md5));
            (headers, None)
        })
    }

    fn render(written: Written, call: &Call) -> Result<Reply, StorageError> {
        let blob = &written.blob;
        let reply = Reply::new(201).version(blob.etag, blob.last_modified);
        let reply = written.hashes.answer(reply, call.version);
        Ok(properties::written(reply, blob, call.version))
    }
}

/// Returns the given headers, with those of `below` where they are missing.
fn laid_over(given: ContentHeaders, below: ContentHeaders) -> ContentHeaders {
    let default = || Some(headers::CONTENT_TYPE_DEFAULT.to_owned());
    ContentHeaders {
        content_type: given.content_type.or(below.content_type).or_else(default),
        content_encoding: given.content_encoding.or(below.content_encoding),
        content_language: given.content_language.or(below.content_language),
        content_md5: None,
        cache_control: given.cache_control.or(below.cache_control),
        content_disposition: given.content_disposition.or(below.content_disposition),
    }
}
