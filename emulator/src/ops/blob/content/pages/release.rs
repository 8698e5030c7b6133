//! Releases the map of a page blob in bounded steps.

use std::ops::ControlFlow;

use bytes::Bytes;

use super::{holders, load, set_holders};
use crate::keys;
use crate::records::Held;
use crate::store::{self, StoreResult, Transaction, View};

/// Runs released in the commit that drops them; `maintain` releases the rest.
pub const AT_ONCE: usize = 2_048;

/// Adds a holder of a node.
pub fn retain(tx: &mut Transaction<'_>, id: u64) -> StoreResult<()> {
    let holders = holders(tx, id)?;
    set_holders(tx, id, holders + 1);
    Ok(())
}

/// Removes a holder of a node; the last one releases its content.
pub fn release(tx: &mut Transaction<'_>, id: u64) -> StoreResult<()> {
    release_nodes(tx, vec![id], AT_ONCE).map(drop)
}

/// Continues with the nodes that [`release`] left over: releases about `most` runs and returns the
/// number of steps; 0 if there is nothing to do. A node is released as a whole, so there may be up
/// to 512 more.
pub fn release_more(tx: &mut Transaction<'_>, most: usize) -> StoreResult<usize> {
    match first_left(tx)? {
        None => Ok(0),
        Some(key) => {
            let id = keys::generation(&key);
            tx.delete(key);
            release_nodes(tx, vec![id], most)
        }
    }
}

/// Returns the key of the first node that still has to be released.
pub fn first_left(view: &dyn View) -> StoreResult<Option<Vec<u8>>> {
    let from = keys::all_page_garbage();
    let mut first = None;
    view.scan(&from, &keys::after(from.clone()), &mut |key, _| {
        first = Some(key.to_vec());
        ControlFlow::Break(())
    })?;
    Ok(first)
}

/// Releases nodes and their descendants, and records those beyond the budget. Returns the number of
/// steps.
pub(super) fn release_nodes(
    tx: &mut Transaction<'_>,
    mut left: Vec<u64>,
    most: usize,
) -> StoreResult<usize> {
    let mut steps = 0;
    while let Some(id) = left.pop() {
        if steps >= most {
            tx.put(keys::page_garbage(id), Bytes::new());
            continue;
        }
        steps += 1;
        let holders = holders(tx, id)?;
        if holders > 1 {
            set_holders(tx, id, holders - 1);
            continue;
        }
        let node = load(tx, id)?;
        tx.delete(keys::page_node(id));
        for run in &node.runs {
            steps += 1;
            match run.held {
                Held::Data { payload, .. } => store::release(tx, payload)?,
                Held::Cleared(_) => {}
                Held::Node(below) => left.push(below),
            }
        }
    }
    Ok(steps)
}
