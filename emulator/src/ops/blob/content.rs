//! The bytes of a blob: one payload, or the blocks of a committed list.
//!
//! Content is shared and counted. A blob, each of its snapshots and each copy hold one reference:
//! to the payload itself, or to the list, which in turn holds one to the payload of each block. So
//! a snapshot of 50,000 blocks costs one counter.
//!
//! - [`retain`], [`release`]: one more, one fewer holder.
//! - [`blocks`]: lists are written, counted and searched there.
//! - [`locate`]: where a range of bytes is, to be sent after the view is gone.

pub mod blocks;
mod body;
mod located;

use std::ops::Range;

pub use body::ContentBody;
pub use located::Located;

use crate::records::BlobContent;
use crate::store::{self, StoreResult, Transaction, View};

/// Adds a holder: a snapshot or a copy.
pub fn retain(tx: &mut Transaction<'_>, content: BlobContent) -> StoreResult<()> {
    match content {
        BlobContent::Empty => Ok(()),
        BlobContent::Payload(id) => store::retain(tx, id),
        BlobContent::Blocks { id, .. } => blocks::retain(tx, id),
    }
}

/// Takes a holder away; the last one frees the bytes.
pub fn release(tx: &mut Transaction<'_>, content: BlobContent) -> StoreResult<()> {
    match content {
        BlobContent::Empty => Ok(()),
        BlobContent::Payload(id) => store::release(tx, id),
        BlobContent::Blocks { id, count } => blocks::release(tx, id, count),
    }
}

/// Where these bytes are. The range lies within the content.
pub fn locate(view: &dyn View, content: BlobContent, range: Range<u64>) -> StoreResult<Located> {
    let mut located = Located::default();
    match content {
        _ if range.is_empty() => {}
        BlobContent::Empty => {}
        BlobContent::Payload(id) => located.push(id, store::location(view, id)?, range),
        BlobContent::Blocks { id, count } => {
            blocks::visit(view, id, count, range, &mut |payload, range| {
                located.push(payload, store::location(view, payload)?, range);
                Ok(())
            })?;
        }
    }
    Ok(located)
}

#[cfg(test)]
mod tests;
