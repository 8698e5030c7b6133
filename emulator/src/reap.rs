//! Removes deleted and expired data in bounded steps.
//!
//! Deleting a container or clearing a queue is one write: its generation is marked as garbage, and
//! no name leads to it any more. The reaper removes the records of the generation, releases their
//! payloads, and removes the marker last. It removes uncommitted blocks a week after the last one
//! was put, releases the pages that a large page blob or a long clearing left behind, and removes
//! blobs when they expire and soft-deleted resources when their retention ends; reminders in the
//! order of time lead to those.
//!
//! Each commit does at most [`COMMIT_STEPS_MAX`] steps, so that requests wait no longer than for an
//! upload. Each run searches for its work again, so a crash loses nothing.

mod expired;

use std::ops::ControlFlow;

use bytes::Bytes;
use parking_lot::Mutex;
use smalt_protocol::Timestamp;

use crate::keys::{self, Generation, Holds};
use crate::ops::blob::content::{self, pages};
use crate::ops::blob::pending;
use crate::ops::tree;
use crate::records::{
    BlobContent, BlobRecord, BlockRecord, GarbageRecord, MessageRecord, MessageText, Record,
    Tombstone, UncommittedRecord,
};
use crate::store::{self, Store, StoreResult, Transaction, View};

/// Steps in one commit.
const COMMIT_STEPS_MAX: usize = 256;
/// Blobs with uncommitted blocks that one run inspects.
const UNCOMMITTED_SEEN_MAX: usize = 4_096;

type Entry = (Vec<u8>, Bytes);

/// The result of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reaped {
    /// Number of records removed.
    pub records: usize,
    /// Whether the budget was used up, so that work may remain.
    pub more: bool,
}

/// Removes deleted and expired data.
#[derive(Debug, Default)]
pub struct Reaper {
    /// Where the search for old uncommitted blocks continues. Locked during a run.
    next_uncommitted: Mutex<Option<Vec<u8>>>,
}

impl Reaper {
    /// Removes at most `budget` records.
    ///
    /// # Errors
    /// When the store's disk fails.
    pub fn run(&self, store: &Store, budget: usize) -> StoreResult<Reaped> {
        let mut next_uncommitted = self.next_uncommitted.lock();
        let now = store.now();
        let mut reaped = Reaped::default();
        loop {
            let most = (budget - reaped.records).min(COMMIT_STEPS_MAX);
            let removed = match work_on_garbage(store, now, most)? {
                0 => break,
                removed => removed.min(most),
            };
            reaped.records += removed;
        }
        loop {
            let most = (budget - reaped.records).min(COMMIT_STEPS_MAX);
            let released = match release_pages(store, most)? {
                0 => break,
                released => released.min(most),
            };
            reaped.records += released;
        }
        while reaped.records < budget {
            let most = (budget - reaped.records).min(COMMIT_STEPS_MAX);
            match expired::work(store, now, most)? {
                0 => break,
                removed => reaped.records += removed.min(most),
            }
        }
        let old = old_uncommitted(store, now, &mut next_uncommitted)?;
        for key in old {
            while reaped.records < budget {
                let most = (budget - reaped.records).min(COMMIT_STEPS_MAX);
                let key = key.clone();
                match store.commit_blocking(move |tx| drop_blocks(tx, &key, now, most))? {
                    0 => break,
                    removed => reaped.records += removed,
                }
            }
        }
        reaped.more = reaped.records >= budget;
        Ok(reaped)
    }
}

/// Removes up to `most` records of the first generation with work and returns their number.
fn work_on_garbage(store: &Store, now: Timestamp, most: usize) -> StoreResult<usize> {
    if most == 0 || store.read(|view| first_garbage(view, now))?.is_none() {
        return Ok(0);
    }
    store.commit_blocking(move |tx| match first_garbage(tx, now)? {
        None => Ok(0),
        Some((generation, garbage)) => match remove_contents(tx, generation, most)? {
            0 => forget(tx, generation, &garbage),
            removed => Ok(removed),
        },
    })
}

/// Releases about `most` pages of deleted page blobs and returns their number.
fn release_pages(store: &Store, most: usize) -> StoreResult<usize> {
    if most == 0 || store.read(pages::first_left)?.is_none() {
        return Ok(0);
    }
    store.commit_blocking(move |tx| pages::release_more(tx, most))
}

/// Returns the first generation with contents, or with a name that has become free.
fn first_garbage(
    view: &dyn View,
    now: Timestamp,
) -> StoreResult<Option<(Generation, GarbageRecord)>> {
    let from = keys::all_garbage();
    let mut first = Ok(None);
    view.scan(&from, &keys::after(from.clone()), &mut |key, value| {
        let found = workable(view, keys::generation(key), value, now);
        if matches!(found, Ok(None)) {
            return ControlFlow::Continue(());
        }
        first = found;
        ControlFlow::Break(())
    })?;
    first
}

fn workable(
    view: &dyn View,
    generation: Generation,
    value: &Bytes,
    now: Timestamp,
) -> StoreResult<Option<(Generation, GarbageRecord)>> {
    // The marker of a queue has no value: its name is free at once.
    let garbage = if value.is_empty() {
        GarbageRecord::default()
    } else {
        GarbageRecord::decode(value)?
    };
    let is_free = garbage.tombstone.is_none() || garbage.free_at <= now;
    let has_work = is_free || !first_contents(view, generation, 1)?.is_empty();
    Ok(has_work.then_some((generation, garbage)))
}

/// Returns the first records of a generation, all of one kind.
fn first_contents(view: &dyn View, generation: Generation, most: usize) -> StoreResult<Vec<Entry>> {
    for prefix in keys::contents(generation) {
        let found = entries(view, &prefix, &keys::after(prefix.clone()), most)?;
        if !found.is_empty() {
            return Ok(found);
        }
    }
    Ok(Vec::new())
}

fn remove_contents(
    tx: &mut Transaction<'_>,
    generation: Generation,
    most: usize,
) -> StoreResult<usize> {
    let mut removed = 0;
    let mut steps = 0;
    for (key, value) in first_contents(tx, generation, most)? {
        if steps >= most {
            break;
        }
        steps += release(tx, keys::holds(&key), &value)?;
        tx.delete(key);
        removed += 1;
    }
    Ok(removed)
}

/// Releases the payloads of a record. Returns the number of steps, including the removal of the
/// record.
fn release(tx: &mut Transaction<'_>, holds: Holds, value: &[u8]) -> StoreResult<usize> {
    let payload = match holds {
        Holds::Content => {
            let blob = BlobRecord::decode(value)?;
            if let Some(id) = blob.directory {
                tree::drop_directory(tx, id);
            }
            for content in pending::held(&blob) {
                content::release(tx, content)?;
            }
            return Ok(match blob.content {
                BlobContent::Blocks { count, .. } => 1 + count as usize,
                BlobContent::Pages { .. } => pages::AT_ONCE,
                _ => 1,
            });
        }
        Holds::Block => BlockRecord::decode(value)?.payload,
        Holds::Message => match MessageRecord::decode(value)?.text {
            MessageText::Payload(payload, _) => Some(payload),
            MessageText::Inline(_) => None,
        },
        Holds::Nothing => None,
    };
    if let Some(payload) = payload {
        store::release(tx, payload)?;
    }
    Ok(1)
}

/// Removes the marker of an empty generation, and the record that reserved its name unless the name
/// has a new owner.
fn forget(
    tx: &mut Transaction<'_>,
    generation: Generation,
    garbage: &GarbageRecord,
) -> StoreResult<usize> {
    if let Some(key) = &garbage.tombstone {
        let taken = Tombstone::load(tx, key)?;
        let is_own = |t: &Tombstone| t.generation == generation && t.deleted_at.is_some();
        if taken.as_ref().is_some_and(is_own) {
            tx.delete(key.clone());
        }
    }
    tx.delete(keys::garbage(generation));
    Ok(1)
}

/// Returns the next blobs, from where the last run ended, whose uncommitted blocks are too old.
fn old_uncommitted(
    store: &Store,
    now: Timestamp,
    next: &mut Option<Vec<u8>>,
) -> StoreResult<Vec<Vec<u8>>> {
    let all = keys::all_uncommitted();
    let from = next.take().unwrap_or_else(|| all.clone());
    let to = keys::after(all);
    let mut old = Vec::new();
    let seen = store.read(|view| entries(view, &from, &to, UNCOMMITTED_SEEN_MAX))?;
    if seen.len() == UNCOMMITTED_SEEN_MAX {
        *next = seen.last().map(|(key, _)| [key.as_slice(), &[0]].concat());
    }
    for (key, value) in seen {
        if !UncommittedRecord::decode(&value)?.is_kept(now) {
            old.push(key);
        }
    }
    Ok(old)
}

/// Removes up to `most` uncommitted blocks of a blob and, after the last, their record.
fn drop_blocks(
    tx: &mut Transaction<'_>,
    key: &[u8],
    now: Timestamp,
    most: usize,
) -> StoreResult<usize> {
    let record = UncommittedRecord::load(tx, key)?;
    let Some(mut record) = record.filter(|record| !record.is_kept(now)) else {
        return Ok(0);
    };
    let blocks = keys::blocks(keys::generation(key), &keys::blob_name(key));
    let found = entries(tx, &blocks, &keys::after(blocks.clone()), most)?;
    let removed = found.len();
    for (block, value) in found {
        release(tx, Holds::Block, &value)?;
        tx.delete(block);
    }
    if removed < most {
        tx.delete(key.to_vec());
        return Ok(removed + 1);
    }
    record.blocks = record
        .blocks
        .saturating_sub(u32::try_from(removed).unwrap_or(u32::MAX));
    record.save(tx, key.to_vec())?;
    Ok(removed)
}

fn entries(view: &dyn View, from: &[u8], to: &[u8], most: usize) -> StoreResult<Vec<Entry>> {
    let mut found = Vec::new();
    view.scan(from, to, &mut |key, value| {
        found.push((key.to_vec(), value.clone()));
        if found.len() < most {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    })?;
    Ok(found)
}

#[cfg(test)]
#[path = "reap_tests.rs"]
mod tests;
