//! Tests the records that an overwrite and a deletion leave.

use bytes::Bytes;
use smalt_protocol::{ETag, Timestamp};
use uuid::Uuid;

use super::*;
use crate::clock::Clock;
use crate::ops::lookup::ContainerName;
use crate::records::{BlockRecord, ContainerRecord, UncommittedRecord};
use crate::rules::lease::LeaseState;
use crate::store::{self, PayloadId, Staged, Store, StoreConfig};

const GENERATION: Generation = 7;

fn store() -> Store {
    Store::open(StoreConfig::memory(Clock::manual(Timestamp::from_unix_s(
        1,
    ))))
    .unwrap()
}

fn name() -> BlobName {
    BlobName {
        container: ContainerName {
            account: "a".to_owned(),
            container: "box".to_owned(),
            settings: Default::default(),
            data_lake: false,
            creator: None,
        },
        blob: "b".to_owned(),
    }
}

fn container() -> ContainerRecord {
    ContainerRecord {
        worm: Default::default(),
        posix: None,
        generation: GENERATION,
        etag: ETag::from_tick(Timestamp::from_ticks(1)),
        last_modified: Timestamp::from_unix_s(1),
        metadata: Metadata::default(),
        public_access: Default::default(),
        policies: Vec::new(),
        lease: LeaseState::Available,
        deleted_at: None,
        retention_days: None,
        encryption_scope: None,
    }
}

fn adopt(tx: &mut Transaction<'_>) -> StoreResult<PayloadId> {
    store::adopt(tx, Staged::inline(Bytes::from_static(b"bytes"))?)
}

fn new_blob(payload: PayloadId) -> NewBlob {
    NewBlob {
        encryption: None,
        sequence_number: 0,
        marks: Marks::default(),
        kind: BlobKind::Block,
        length: 5,
        content: BlobContent::Payload(payload),
        headers: ContentHeaders::default(),
        metadata: Metadata::default(),
        tags: Vec::new(),
        access: Access::default(),
        copy: None,
    }
}

/// Overwrites the blob; returns the payload and the record.
async fn write(store: &Store, lease: LeaseState) -> (PayloadId, BlobRecord) {
    let job = move |tx: &mut Transaction<'_>, stamp: &Stamp| {
        let mut blob = name().load(tx, GENERATION, stamp.now)?;
        if let Some(blob) = &mut blob {
            blob.lease = lease;
            blob.snapshots = 2;
        }
        let payload = adopt(tx)?;
        let place = Place {
            container: container(),
            blob,
        };
        let blob = replace(tx, &name(), &place, new_blob(payload), stamp)?;
        Ok((payload, blob))
    };
    store.commit(job).await.unwrap()
}

fn is_there(store: &Store, id: PayloadId) -> bool {
    store.read(|view| store::location(view, id).is_ok())
}

#[tokio::test]
async fn an_overwrite_frees_the_old_bytes_and_keeps_lease_and_snapshots() {
    let store = store();
    let (first, old) = write(&store, LeaseState::Available).await;
    let held = LeaseState::Leased {
        id: Uuid::from_u128(1),
        duration_s: None,
        until: Timestamp::MAX,
    };
    let (second, new) = write(&store, held).await;
    assert!(!is_there(&store, first) && is_there(&store, second));
    assert_eq!((new.lease, new.snapshots), (held, 2));
    assert_eq!(new.created, old.created);
    assert!(new.etag > old.etag);
    let dead = LeaseState::Broken {
        id: Uuid::from_u128(1),
    };
    let (_, forgotten) = write(&store, dead).await;
    assert_eq!(forgotten.lease, LeaseState::Available);
}

#[tokio::test]
async fn removing_a_blob_removes_snapshots_and_uncommitted_blocks() {
    let store = store();
    let (base, blob) = write(&store, LeaseState::Available).await;
    let record = blob.clone();
    let job = move |tx: &mut Transaction<'_>, stamp: &Stamp| {
        let (in_snapshot, in_block) = (adopt(tx)?, adopt(tx)?);
        let snapshot = BlobRecord {
            content: BlobContent::Payload(in_snapshot),
            ..record
        };
        snapshot.save(tx, keys::snapshot(GENERATION, "b", stamp.tick))?;
        let block = BlockRecord {
            length: 5,
            payload: Some(in_block),
        };
        block.save(tx, keys::block(GENERATION, "b", b"id"))?;
        let uncommitted = UncommittedRecord {
            encryption: None,
            created: stamp.now,
            touched: stamp.now,
            blocks: 1,
            id_length: 2,
        };
        uncommitted.save(tx, keys::uncommitted(GENERATION, "b"))?;
        // A blob whose name starts with this one's.
        let neighbour = adopt(tx)?;
        let other = BlobRecord {
            content: BlobContent::Payload(neighbour),
            ..snapshot
        };
        other.save(tx, keys::snapshot(GENERATION, "b!", stamp.tick))?;
        Ok((in_snapshot, in_block, neighbour))
    };
    let (in_snapshot, in_block, neighbour) = store.commit(job).await.unwrap();
    let job = move |tx: &mut Transaction<'_>, stamp: &Stamp| {
        let name = name();
        let spot = Spot {
            name: &name,
            generation: GENERATION,
        };
        assert!(spot.delete_snapshots(tx, stamp)?);
        assert!(spot.delete_base(tx, &blob, stamp)?);
        Ok(())
    };
    store.commit(job).await.unwrap();
    for gone in [base, in_snapshot, in_block] {
        assert!(!is_there(&store, gone));
    }
    assert!(is_there(&store, neighbour));
    let left = store.read(|view| removal::keys_from(view, keys::blocks(GENERATION, "b")));
    assert!(left.unwrap().is_empty());
    let key = keys::uncommitted(GENERATION, "b");
    assert_eq!(store.read(|view| view.get(&key)).unwrap(), None);
}
