//! Removes soft-deleted resources whose retention is over, and expired blobs.

use smalt_protocol::Timestamp;

use super::{Entry, entries, release};
use crate::keys::{self, Kept};
use crate::ops::blob::{removal, retention, tag_index};
use crate::records::{BlobRecord, ContainerRecord, GarbageRecord, Record};
use crate::store::{Store, StoreResult, Transaction, View};

/// Handles up to `most` reminders that are due and returns their number.
pub(super) fn work(store: &Store, now: Timestamp, most: usize) -> StoreResult<usize> {
    if most == 0 || store.read(|view| due(view, now, 1))?.is_empty() {
        return Ok(0);
    }
    store.commit_blocking(move |tx| {
        let mut steps = 0;
        let mut done = 0;
        for (reminder, which) in due(tx, now, most)? {
            if steps >= most {
                break;
            }
            steps += settle(tx, keys::expiring_key(&reminder), &which, now)?;
            tx.delete(reminder);
            done += 1;
        }
        Ok(done)
    })
}

fn due(view: &dyn View, now: Timestamp, most: usize) -> StoreResult<Vec<Entry>> {
    let from = keys::expiring_from(Timestamp::from_ticks(0));
    let to = keys::expiring_from(now.plus_ticks(1));
    entries(view, &from, &to, most)
}

/// Removes the record of a reminder if it still exists and its retention is over. Returns the
/// number of steps.
fn settle(
    tx: &mut Transaction<'_>,
    key: &[u8],
    which: &[u8],
    now: Timestamp,
) -> StoreResult<usize> {
    match keys::kept(key) {
        Kept::Blob => remove_blob(tx, key, now),
        Kept::Container => {
            let found = ContainerRecord::load(tx, key)?;
            let over = found.filter(|it| it.kept().is_some_and(|deleted| deleted.is_over(now)));
            if let Some(container) = over {
                GarbageRecord::default().save(tx, keys::garbage(container.generation))?;
                tx.delete(key.to_vec());
            }
            Ok(1)
        }
        Kept::Name => {
            // The name may meanwhile belong to a new container, or to one that was deleted later.
            let deleted_at = ContainerRecord::load(tx, key)?.and_then(|it| it.deleted_at);
            if deleted_at.is_some_and(|at| at.ticks().to_be_bytes() == which) {
                tx.delete(key.to_vec());
            }
            Ok(1)
        }
    }
}

fn remove_blob(tx: &mut Transaction<'_>, key: &[u8], now: Timestamp) -> StoreResult<usize> {
    let Some(value) = tx.get(key)? else {
        return Ok(1);
    };
    let blob = BlobRecord::decode(&value)?;
    if !blob.is_there(now) {
        return removal::remove_expired(tx, key.to_vec(), now);
    }
    if !blob.deleted.is_some_and(|deleted| deleted.is_over(now)) {
        return Ok(1);
    }
    let steps = release(tx, keys::holds(key), &value)?;
    tag_index::forget(tx, key, &blob);
    tx.delete(key.to_vec());
    if let Some((generation, blob)) = keys::blob_of_part(key) {
        retention::forget_placeholder(tx, generation, &blob)?;
    }
    Ok(steps)
}
