//! Copy Blob From URL: a synchronous copy, answered with the hash of the copied bytes.
//!
//! Source: "Copy Blob From URL". The source is read without the caller's identity, even in the same
//! account (recorded): it must be public, or its URL have a shared access signature.
//!
//! ```http
//! PUT /devstoreaccount1/events/copy.json
//! x-ms-requires-sync: true
//! x-ms-copy-source: http://127.0.0.1:10000/devstoreaccount1/events/2026/11/21.json?sv=...&sig=...
//!
//! 202 Accepted
//! x-ms-copy-id: 4ffa938b-b8bc-4c1a-89f5-3fa04737bcbc
//! x-ms-copy-status: success
//! x-ms-content-crc64: YeJLfssylmU=
//! ```

use smalt_protocol::limits::COPY_SYNC_BYTES_MAX;
use smalt_protocol::{ApiVersion, StorageError};

use super::copied;
use super::copy::with_copy;
use super::from_url::{Checked, FromUrl};
use super::properties;
use super::source::{Request, Source};
use super::written::Written;
use crate::call::Call;
use crate::operation::Write;
use crate::reply::Reply;
use crate::store::{Stamp, Transaction, View};

/// Since this version, the response says that the copy is encrypted. Recorded in 2021-12-02, and
/// not in 2020-10-02.
const SAYS_ENCRYPTED: ApiVersion = ApiVersion::V2020_12_06;

/// The Copy Blob From URL operation.
pub struct CopyBlobFromUrl {
    inner: FromUrl,
    copy_id: String,
}

impl Write for CopyBlobFromUrl {
    type Checked = Checked;
    type Output = Written;

    fn parse(call: &Call) -> Result<Self, StorageError> {
        Ok(CopyBlobFromUrl {
            inner: FromUrl::of(call, COPY_SYNC_BYTES_MAX)?,
            copy_id: call.fresh_id.to_string(),
        })
    }

    fn source(&self) -> Option<Request> {
        Some(self.inner.request())
    }

    fn sourced(&mut self, source: Source) -> Result<(), StorageError> {
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
        let copy_id = self.copy_id;
        self.inner.write(checked, tx, stamp, |found, source| {
            let shown = source.shown.clone();
            let copy = copied::finished(copy_id, shown, found.length, stamp.now);
            (found.headers.clone(), Some(copy))
        })
    }

    fn render(written: Written, call: &Call) -> Result<Reply, StorageError> {
        let blob = &written.blob;
        let reply = Reply::new(202).version(blob.etag, blob.last_modified);
        let reply = properties::with_version(reply, blob, call.version);
        let reply = written.hashes.answer(reply, call.version);
        let encrypted = (call.version >= SAYS_ENCRYPTED).then_some("true");
        let reply = reply.maybe("x-ms-request-server-encrypted", encrypted);
        Ok(with_copy(reply, blob.copy.as_ref()))
    }
}
