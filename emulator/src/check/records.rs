//! Checks that every record of the operations can be read.

use std::ops::ControlFlow;

use bytes::Bytes;
use smalt_protocol::xml::ServiceProperties;

use super::Findings;
use crate::keys::{self, Kind};
use crate::records::{
    BlobRecord, BlockListChunk, BlockRecord, ContainerRecord, DeliveryRecord, EntityRecord,
    GarbageRecord, MessageRecord, PageNode, QueueRecord, Record, SubscriptionRecord, TableRecord,
    UncommittedRecord, WaitingRecord,
};
use crate::store::{OWN_PREFIXES, StoreError, StoreResult, View};

/// Reads all records and returns their number.
pub(super) fn check(view: &dyn View, findings: &mut Findings) -> StoreResult<u64> {
    let mut records = 0;
    let from = [OWN_PREFIXES.end() + 1];
    view.scan(&from, &[u8::MAX; 2], &mut |key, value| {
        records += 1;
        if let Err(error) = read(view, key, value) {
            findings.add("record", format!("{}: {error}", name(key)));
        }
        ControlFlow::Continue(())
    })?;
    Ok(records)
}

/// Returns a readable name for the record with this key.
pub(super) fn name(key: &[u8]) -> String {
    let Some(kind) = keys::kind(key) else {
        return format!("a record of unknown kind {:02x?}", key.first());
    };
    let rest = match kind {
        Kind::Container | Kind::DeletedContainer | Kind::Queue | Kind::Table | Kind::Service => {
            let (account, name) = keys::owner(key);
            format!("{account}/{name}")
        }
        Kind::Blob | Kind::DeletedBlob | Kind::Uncommitted => keys::blob_name(key),
        Kind::Subscription => keys::subscription_name(key),
        Kind::Snapshot | Kind::Version => keys::snapshot_name(key).0,
        Kind::Entity => {
            let (partition, row) = keys::entity_names(key);
            format!("({partition}, {row})")
        }
        _ => key
            .iter()
            .skip(1)
            .map(|byte| format!("{byte:02x}"))
            .collect(),
    };
    format!("{kind:?} {}", rest.escape_debug())
}

fn read(view: &dyn View, key: &[u8], value: &Bytes) -> StoreResult<()> {
    // No count comes near 2^63, so the first bit must be zero.
    let number = || match (value.len(), value.first()) {
        (8, Some(0..0x80)) => Ok(()),
        _ => Err(StoreError::Corrupt("not a number".to_owned())),
    };
    let Some(kind) = keys::kind(key) else {
        return Err(StoreError::Corrupt(
            "unknown key that no release writes".to_owned(),
        ));
    };
    match kind {
        Kind::Container | Kind::DeletedContainer => ContainerRecord::decode(value).map(drop),
        Kind::Blob | Kind::Snapshot | Kind::Version | Kind::DeletedBlob => {
            BlobRecord::decode(value).map(drop)
        }
        Kind::Block => BlockRecord::decode(value).map(drop),
        Kind::Uncommitted => UncommittedRecord::decode(value).map(drop),
        Kind::BlockList => BlockListChunk::decode(value).map(drop),
        Kind::PageNode => PageNode::decode(value).map(drop),
        Kind::BlockListRefs
        | Kind::PageNodeRefs
        | Kind::PageNodeLast
        | Kind::DirectoryLast
        | Kind::MessageCount => number(),
        Kind::Queue => QueueRecord::decode(value).map(drop),
        Kind::Message => MessageRecord::decode(value).map(drop),
        Kind::Table => TableRecord::decode(value).map(drop),
        Kind::Entity => EntityRecord::of_value(view, key, value).map(drop),
        Kind::Service => ServiceProperties::decode(value).map(drop),
        Kind::Garbage if !value.is_empty() => GarbageRecord::decode(value).map(drop),
        Kind::Visible | Kind::Expiry => match value.len() {
            16 => Ok(()),
            _ => Err(StoreError::Corrupt("not a message id".to_owned())),
        },
        Kind::Subscription => SubscriptionRecord::decode(value).map(drop),
        Kind::Event => DeliveryRecord::decode(value).map(drop),
        Kind::Waiting => WaitingRecord::decode(value).map(drop),
        Kind::PageGarbage | Kind::Tag | Kind::Garbage | Kind::EntityPart | Kind::Expiring => Ok(()),
    }
}
