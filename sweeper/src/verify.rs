//! Verifies a copy: by its MD5, or by its bytes if the source or the copy has none, such as a blob
//! made of blocks.

use bytes::Bytes;
use smalt_sleeve::port::{BlobId, BlobProperties, PortError, PortResult};

use crate::paced::Paced;

/// Bytes of each blob that are read at once.
const PART_BYTES: u64 = 4 * 1024 * 1024;

/// A version of a blob, and the account that it is read from.
pub(crate) struct ComparedBlob<'a> {
    pub(crate) account: &'a Paced<'a>,
    pub(crate) blob: &'a BlobId,
    pub(crate) seen: &'a BlobProperties,
}

impl ComparedBlob<'_> {
    async fn part(&self, from: u64, bytes: u64) -> PortResult<Bytes> {
        let version = &self.seen.etag;
        let account = self.account;
        account
            .get_blob_range(self.blob, version, from, bytes)
            .await
    }
}

/// Why two versions could not be compared.
pub(crate) enum Unclear {
    Source(PortError),
    Copy(PortError),
    Stopped,
}

/// Returns whether the copy has the content of the source.
pub(crate) async fn is_equal(
    source: &ComparedBlob<'_>,
    copy: &ComparedBlob<'_>,
) -> Result<bool, Unclear> {
    let length = source.seen.length;
    if copy.seen.length != length {
        return Ok(false);
    }
    if let (Some(one), Some(other)) = (&source.seen.content_md5, &copy.seen.content_md5) {
        return Ok(one == other);
    }
    for from in (0..length).step_by(PART_BYTES as usize) {
        if source.account.is_stopping() {
            return Err(Unclear::Stopped);
        }
        let bytes = PART_BYTES.min(length - from);
        let (one, other) = tokio::join!(source.part(from, bytes), copy.part(from, bytes));
        if one.map_err(Unclear::Source)? != other.map_err(Unclear::Copy)? {
            return Ok(false);
        }
    }
    Ok(true)
}
