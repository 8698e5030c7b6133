//! Put Block: uploads a block, which becomes part of a block blob once a list commits it.
//!
//! Source: "Put Block". It changes neither the blob nor its ETag; without a blob of that name it
//! creates an uncommitted one, which reads do not see.
//!
//! ```http
//! PUT /devstoreaccount1/events/2026/11/21.json?comp=block&blockid=MQ%3D%3D
//! Content-Length: 14
//!
//! 201 Created
//! x-ms-content-crc64: YeJLfssylmU=
//! ```

use smalt_protocol::StorageError;
use smalt_protocol::limits::put_block_bytes_max;

use super::block_id;
use super::new_block::{NewBlock, WrittenBlock};
use super::uncommitted::Slot;
use super::upload::Upload;
use crate::call::Call;
use crate::operation::{Received, Takes, Write};
use crate::reply::Reply;
use crate::store::{Stamp, Transaction, View};

/// The Put Block operation.
pub struct PutBlock {
    block: NewBlock,
    upload: Upload,
}

impl Write for PutBlock {
    type Checked = Slot;
    type Output = WrittenBlock;

    fn parse(call: &Call) -> Result<Self, StorageError> {
        let id = block_id::of(call)?;
        if call.body_length == Some(0) {
            return Err(StorageError::invalid_header("Content-Length", "0"));
        }
        Ok(PutBlock {
            block: NewBlock::of(call, id)?,
            upload: Upload::of_block(call, put_block_bytes_max(call.version))?,
        })
    }

    fn takes(&self) -> Takes {
        self.upload.takes()
    }

    fn payload(&mut self, received: Received) -> Result<(), StorageError> {
        self.upload.receive(received)
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
        self.block.keep(slot, self.upload.into_bytes()?, tx, stamp)
    }

    fn render(written: WrittenBlock, call: &Call) -> Result<Reply, StorageError> {
        Ok(written.reply(call.version))
    }
}
