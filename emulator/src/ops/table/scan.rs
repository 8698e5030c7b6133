//! Pages of entities, as one scan of a range sees them at one moment.
//!
//! Source: *Query timeout and pagination*: a page ends after 1,000 entities, 4 MiB, or when its time
//! is over. What follows begins at the next entity, wherever the scan stands then; it need not be
//! there any more when somebody goes on from it.

use std::ops::ControlFlow;

use smalt_protocol::limits::TABLE_PAGE_BYTES_MAX;
use smalt_protocol::table::Entity;

use crate::keys;
use crate::records::EntityRecord;
use crate::store::{StoreResult, View};

/// Entities that are looked at for one page. The service ends a page after five seconds; a count
/// does the same with one outcome, whatever the machine.
pub const SEEN_MAX: usize = 20_000;

/// A page.
#[derive(Debug, Default)]
pub struct Page {
    /// Its entities in order.
    pub entities: Vec<Entity>,
    /// Partition key and row key that the next page begins with.
    pub next: Option<(String, String)>,
}

/// Reads at most `most` entities that are accepted out of a range of keys.
///
/// # Errors
/// When the store cannot be read.
pub fn page(
    view: &dyn View,
    (from, to): (Vec<u8>, Vec<u8>),
    most: usize,
    accepts: impl Fn(&Entity) -> bool,
) -> StoreResult<Page> {
    let mut page = Page::default();
    let (mut seen, mut bytes) = (0, 0);
    let mut failed = None;
    view.scan(&from, &to, &mut |key, value| {
        let (partition_key, row_key) = keys::entity_names(key);
        if page.entities.len() == most || seen == SEEN_MAX {
            page.next = Some((partition_key, row_key));
            return ControlFlow::Break(());
        }
        seen += 1;
        let entity = match EntityRecord::of_value(view, key, value) {
            Ok(record) => record.named(partition_key, row_key),
            Err(error) => {
                failed = Some(error);
                return ControlFlow::Break(());
            }
        };
        if !accepts(&entity) {
            return ControlFlow::Continue(());
        }
        bytes += entity.bytes();
        if bytes > TABLE_PAGE_BYTES_MAX && !page.entities.is_empty() {
            page.next = Some((entity.partition_key, entity.row_key));
            return ControlFlow::Break(());
        }
        page.entities.push(entity);
        ControlFlow::Continue(())
    })?;
    failed.map_or(Ok(page), Err)
}
