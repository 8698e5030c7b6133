//! The bytes of a blob: one payload, the blocks of a committed list, or the map of a page blob.
//!
//! Content is shared and reference-counted. A blob, each of its snapshots and each copy hold one
//! reference: to the payload itself, to the list, which in turn holds one to the payload of each
//! block, or to the top node of the map. So a snapshot of 50,000 blocks or of 8 TiB of pages costs
//! one counter.
//!
//! - [`retain`], [`release`]: add and remove a reference.
//! - [`blocks`]: writes, counts and searches block lists.
//! - [`pages`]: does the same for the maps of page blobs.
//! - [`append()`]: adds one block at the end, at the cost of one.
//! - [`locate`]: finds a range of bytes, to be sent after the view is gone.

mod append;
pub mod blocks;
mod body;
mod located;
pub mod pages;

use std::ops::Range;

pub use append::append;
pub use body::ContentBody;
pub use located::Located;

use crate::records::BlobContent;
use crate::store::{self, StoreResult, Transaction, View};

/// Adds a reference, for a snapshot or a copy.
pub fn retain(tx: &mut Transaction<'_>, content: BlobContent) -> StoreResult<()> {
    match content {
        BlobContent::Empty => Ok(()),
        BlobContent::Payload(id) => store::retain(tx, id),
        BlobContent::Blocks { id, .. } => blocks::retain(tx, id),
        BlobContent::Pages { root } => pages::retain(tx, root),
    }
}

/// Removes a reference; the last one frees the bytes.
pub fn release(tx: &mut Transaction<'_>, content: BlobContent) -> StoreResult<()> {
    match content {
        BlobContent::Empty => Ok(()),
        BlobContent::Payload(id) => store::release(tx, id),
        BlobContent::Blocks { id, count } => blocks::release(tx, id, count),
        BlobContent::Pages { root } => pages::release(tx, root),
    }
}

/// Locates a range of bytes, which must lie within the content.
pub fn locate(view: &dyn View, content: BlobContent, range: Range<u64>) -> StoreResult<Located> {
    let mut located = Located::default();
    match content {
        _ if range.is_empty() => {}
        // Pages that were never written read as zeros.
        BlobContent::Empty => located.push_zeros(range.end - range.start),
        BlobContent::Payload(id) => located.push(id, store::location(view, id)?, range),
        BlobContent::Blocks { id, count } => {
            blocks::visit(view, id, count, range, &mut |payload, range| {
                located.push(payload, store::location(view, payload)?, range);
                Ok(())
            })?;
        }
        BlobContent::Pages { .. } => located.push_pages(view, content, range)?,
    }
    Ok(located)
}

#[cfg(test)]
mod tests;
