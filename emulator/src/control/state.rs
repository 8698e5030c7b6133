//! `/state`: a dump of the store as JSON, with names, sizes, tags and leases but no content and no
//! keys.

use std::ops::ControlFlow;

use serde_json::{Value, json};
use smalt_protocol::Timestamp;
use smalt_protocol::table::Entity;

use super::{Refusal, failed};
use crate::core::Core;
use crate::keys;
use crate::ops::queue::messages::approximate_count;
use crate::ops::table::range::KeyRange;
use crate::ops::table::scan::{self, Span};
use crate::records::{BlobRecord, ContainerRecord, QueueRecord, Record, TableRecord};
use crate::rules::pending_copy;
use crate::store::{StoreResult, View};

/// Blobs shown per container unless `?blobs=N` says otherwise.
const BLOBS_SHOWN: usize = 1_000;
/// Largest `N` in `?blobs=N`, smalt's own limit: the store accepts no writes while a dump is made.
const BLOBS_SHOWN_MAX: usize = 50_000;

pub(super) fn dump(core: &Core, query: Option<&str>) -> Result<Value, Refusal> {
    let most = query
        .and_then(|query| {
            query
                .split('&')
                .find_map(|pair| pair.strip_prefix("blobs="))
        })
        .and_then(|number| number.parse().ok())
        .map_or(BLOBS_SHOWN, |most: usize| most.min(BLOBS_SHOWN_MAX));
    let now = core.store.now();
    let accounts = core.store.read(|view| {
        let mut accounts = serde_json::Map::new();
        for name in core.config.accounts.keys() {
            let containers = containers(view, name, now, most)?;
            let queues = resources(view, keys::queue(name, ""), name)?
                .into_iter()
                .map(|(name, value)| {
                    let queue = QueueRecord::decode(&value)?;
                    let count = approximate_count(view, queue.generation, now)?;
                    Ok(json!({ "name": name, "messages": count }))
                })
                .collect::<StoreResult<Vec<_>>>()?;
            let tables = tables(view, name, most)?;
            accounts.insert(
                name.clone(),
                json!({ "containers": containers, "queues": queues, "tables": tables }),
            );
        }
        StoreResult::Ok(accounts)
    });
    let accounts = accounts.map_err(|error| failed(&error))?;
    Ok(json!({ "now": now.iso_ticks(), "accounts": accounts }))
}

fn containers(
    view: &dyn View,
    account: &str,
    now: Timestamp,
    most: usize,
) -> StoreResult<Vec<Value>> {
    let mut shown = Vec::new();
    for (name, value) in resources(view, keys::container(account, ""), account)? {
        let container = ContainerRecord::decode(&value)?;
        let (blobs, more) = blobs(view, container.generation, now, most)?;
        shown.push(json!({
            "name": name,
            "etag": container.etag.to_string(),
            "lease": container.lease.state_str(),
            "deleted": container.deleted_at.is_some(),
            "blobs": blobs,
            "more": more,
        }));
    }
    Ok(shown)
}

/// Lists the tables with up to `most` entities each; blobs have the same limit.
fn tables(view: &dyn View, account: &str, most: usize) -> StoreResult<Vec<Value>> {
    let mut shown = Vec::new();
    for (_, value) in resources(view, keys::table(account, ""), account)? {
        let table = TableRecord::decode(&value)?;
        let whole = [Span::whole(KeyRange::default())];
        let page = scan::page(view, table.generation, &whole, most, None)?;
        let shown_entity = |entity: &Entity| {
            json!({
                "partition": entity.partition_key,
                "row": entity.row_key,
                "etag": entity.etag().to_string(),
                "properties": entity.properties.len(),
            })
        };
        shown.push(json!({
            "name": table.name,
            "deleted": table.deleted_at.is_some(),
            "entities": page.entities.iter().map(shown_entity).collect::<Vec<_>>(),
            "more": page.next.is_some(),
        }));
    }
    Ok(shown)
}

fn blobs(
    view: &dyn View,
    generation: keys::Generation,
    now: Timestamp,
    most: usize,
) -> StoreResult<(Vec<Value>, bool)> {
    let from = keys::blob(generation, "");
    let (mut shown, mut more, mut failed) = (Vec::new(), false, None);
    view.scan(&from, &keys::after(from.clone()), &mut |key, value| {
        if shown.len() == most {
            more = true;
            return ControlFlow::Break(());
        }
        match BlobRecord::decode(value) {
            Ok(mut blob) => {
                pending_copy::settle(&mut blob, now);
                shown.push(shown_blob(&keys::blob_name(key), &blob));
            }
            Err(error) => failed = Some(error),
        }
        if failed.is_some() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    })?;
    failed.map_or(Ok((shown, more)), Err)
}

fn shown_blob(name: &str, blob: &BlobRecord) -> Value {
    json!({
        "name": name,
        "type": blob.kind.as_str(),
        "length": blob.length,
        "etag": blob.etag.to_string(),
        "last_modified": blob.last_modified.iso_ticks(),
        "metadata": blob.metadata.iter().collect::<std::collections::BTreeMap<_, _>>(),
        "lease": blob.lease.state_str(),
        "snapshots": blob.snapshots,
    })
}

fn resources(
    view: &dyn View,
    from: Vec<u8>,
    account: &str,
) -> StoreResult<Vec<(String, bytes::Bytes)>> {
    let mut found = Vec::new();
    view.scan(&from, &keys::after(from.clone()), &mut |key, value| {
        found.push((
            keys::resource_name(key, account).into_owned(),
            value.clone(),
        ));
        ControlFlow::Continue(())
    })?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use smalt_protocol::connection_string::{EMULATOR_ACCOUNT_KEY, EMULATOR_ACCOUNT_NAME};

    #[test]
    fn dump_lists_accounts_without_keys() {
        let emulator = crate::Emulator::builder().open().unwrap();
        let shown = dump(emulator.core(), None).unwrap().to_string();
        assert!(shown.contains(EMULATOR_ACCOUNT_NAME) && !shown.contains(EMULATOR_ACCOUNT_KEY));
    }
}
