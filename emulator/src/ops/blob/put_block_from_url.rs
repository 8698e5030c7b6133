//! Put Block From URL: uploads a block from a range of another blob.
//!
//! Source: "Put Block From URL".
//!
//! ```http
//! PUT /devstoreaccount1/events/copy.json?comp=block&blockid=MQ%3D%3D
//! x-ms-copy-source: http://127.0.0.1:10000/devstoreaccount1/events/2026/11/21.json?sv=...&sig=...
//! x-ms-source-range: bytes=0-9
//!
//! 201 Created
//! x-ms-content-crc64: 8R2aIe9T07E=
//! ```

use smalt_protocol::StorageError;
use smalt_protocol::limits::{MIB, put_block_bytes_max};

use super::block_id;
use super::new_block::{NewBlock, WrittenBlock};
use super::source::{Request, Source, SourceRange};
use super::uncommitted::Slot;
use crate::call::Call;
use crate::operation::Write;
use crate::reply::Reply;
use crate::store::{Stamp, Transaction, View};

/// Maximum bytes of a block from a URL that every version allows. "Put Block From URL".
const BYTES_MAX_LEAST: u64 = 100 * MIB;

/// The Put Block From URL operation.
pub struct PutBlockFromUrl {
    block: NewBlock,
    source: SourceRange,
}

impl Write for PutBlockFromUrl {
    type Checked = Slot;
    type Output = WrittenBlock;

    fn parse(call: &Call) -> Result<Self, StorageError> {
        let bytes_max = put_block_bytes_max(call.version).max(BYTES_MAX_LEAST);
        Ok(PutBlockFromUrl {
            block: NewBlock::of(call, block_id::of(call)?)?,
            source: SourceRange::of(call, bytes_max)?,
        })
    }

    fn source(&self) -> Option<Request> {
        Some(self.source.request())
    }

    fn sourced(&mut self, source: Source) -> Result<(), StorageError> {
        self.source.sourced(source)
    }

    fn check(&self, view: &dyn View, stamp: &Stamp) -> Result<Slot, StorageError> {
        self.block.check(view, stamp)
    }

    fn apply(
        self,
        slot: Slot,
        tx: &mut Transaction<'_>,
        stamp: &Stamp,
    ) -> Result<WrittenBlock, StorageError> {
        self.block.keep(slot, self.source.into_bytes()?, tx, stamp)
    }

    fn render(written: WrittenBlock, call: &Call) -> Result<Reply, StorageError> {
        Ok(written.reply(call.version))
    }
}
