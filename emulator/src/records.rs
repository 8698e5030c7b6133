//! The records of the store: one type per kind, encoded as MessagePack with field names, so that a
//! field added later gets a default in an older store.

mod binary;
mod blob;
mod container;
mod event;
mod garbage;
mod pages;
mod queue;
mod table;

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use smalt_protocol::xml::ServiceProperties;

pub use blob::{
    Access, BlobContent, BlobKind, BlobRecord, BlockListChunk, BlockRecord, CONTENT_TYPE_DEFAULT,
    CommittedBlock, ContentHeaders, CopyReader, CopyRecord, CopyStatus, Deleted, Immutability,
    IncrementalCopy, PendingCopy, Rehydration, UncommittedRecord,
};
pub use container::{ContainerRecord, PublicAccess};
pub use event::{
    DeliveryRecord, Diagnostics, EventData, EventRecord, SUBJECT, SubscriptionRecord, WaitingRecord,
};
pub use garbage::{GarbageRecord, Tombstone};
pub use pages::{Held, PageNode, Run};
pub use queue::{MessageRecord, MessageText, QueueRecord};
pub use table::{EntityRecord, TableRecord};

use crate::store::{StoreError, StoreResult, Transaction, View};

/// A value of the store with a fixed encoding.
pub trait Record: Serialize + DeserializeOwned {
    /// Decodes a stored value.
    fn decode(value: &[u8]) -> StoreResult<Self> {
        rmp_serde::from_slice(value).map_err(|e| StoreError::Corrupt(e.to_string()))
    }

    /// Encodes the value for the store.
    fn encode(&self) -> StoreResult<Bytes> {
        rmp_serde::to_vec_named(self)
            .map(Bytes::from)
            .map_err(|e| StoreError::Corrupt(e.to_string()))
    }

    /// Reads the record with this key; `None` if there is none.
    fn load(view: &dyn View, key: &[u8]) -> StoreResult<Option<Self>> {
        view.get(key)?.map(|value| Self::decode(&value)).transpose()
    }

    /// Stores the record under this key.
    fn save(&self, tx: &mut Transaction<'_>, key: Vec<u8>) -> StoreResult<()> {
        tx.put(key, self.encode()?);
        Ok(())
    }
}

/// Returns `true` for a default value, which is omitted to save time and space.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Record for ContainerRecord {}
impl Record for BlobRecord {}
impl Record for BlockRecord {}
impl Record for UncommittedRecord {}
impl Record for BlockListChunk {}
impl Record for PageNode {}
impl Record for GarbageRecord {}
impl Record for Tombstone {}
impl Record for QueueRecord {}
impl Record for ServiceProperties {}
impl Record for MessageRecord {}
impl Record for TableRecord {}
impl Record for EntityRecord {}
impl Record for SubscriptionRecord {}
impl Record for DeliveryRecord {}
impl Record for WaitingRecord {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use smalt_protocol::{ETag, Timestamp};

    use super::*;
    use crate::rules::lease::LeaseState;
    use crate::store::PayloadId;

    fn plain() -> BlobRecord {
        let created = Timestamp::from_unix_s(1_700_000_000);
        BlobRecord::new(BlobKind::Block, ETag::from_tick(created), created)
    }

    #[test]
    fn defaults_are_not_stored() {
        let (plain, mut sealed) = (plain(), plain());
        sealed.sealed = true;
        let text = |record: &BlobRecord| {
            let encoded = record.encode().unwrap();
            assert_eq!(BlobRecord::decode(&encoded).unwrap(), *record);
            String::from_utf8_lossy(&encoded).into_owned()
        };
        for field in ["tags", "lease", "access", "sealed", "copied_to"] {
            assert!(!text(&plain).contains(field), "{field}");
        }
        assert!(text(&sealed).contains("sealed"));
    }

    /// Stores of earlier releases contain every field.
    #[test]
    fn record_with_every_field_is_decoded() {
        #[derive(Serialize)]
        struct Earlier {
            kind: BlobKind,
            created: Timestamp,
            etag: ETag,
            last_modified: Timestamp,
            length: u64,
            content: BlobContent,
            headers: ContentHeaders,
            tags: Vec<(String, String)>,
            lease: LeaseState,
            copy: Option<CopyRecord>,
            sealed: bool,
            version_id: Option<Timestamp>,
        }
        let plain = plain();
        let earlier = Earlier {
            kind: plain.kind,
            created: plain.created,
            etag: plain.etag,
            last_modified: plain.last_modified,
            length: 0,
            content: BlobContent::Empty,
            headers: ContentHeaders::default(),
            tags: Vec::new(),
            lease: LeaseState::default(),
            copy: None,
            sealed: false,
            version_id: None,
        };
        let encoded = rmp_serde::to_vec_named(&earlier).unwrap();
        assert_eq!(BlobRecord::decode(&encoded).unwrap(), plain);
    }

    fn any_message() -> impl Strategy<Value = MessageRecord> {
        let text = prop_oneof![
            "\\PC{0,40}".prop_map(MessageText::Inline),
            any::<u32>().prop_map(|bytes| MessageText::Payload(PayloadId(7), bytes)),
        ];
        let times = prop::array::uniform3(0u64..4_000_000_000);
        (
            times,
            prop::array::uniform3(any::<u64>()),
            any::<u32>(),
            text,
        )
            .prop_map(
                |(
                    [inserted, expires, visible],
                    [sequence, place, receipt],
                    dequeue_count,
                    text,
                )| {
                    MessageRecord {
                        inserted: Timestamp::from_unix_s(inserted),
                        expires: Timestamp::from_unix_s(expires),
                        visible: Timestamp::from_unix_s(visible),
                        sequence,
                        place,
                        receipt,
                        dequeue_count,
                        text,
                    }
                },
            )
    }

    proptest! {
        #[test]
        fn records_are_decoded_as_encoded(
            message in any_message(),
            tags in any::<Vec<(String, String)>>(),
        ) {
            let encoded = message.encode().unwrap();
            prop_assert_eq!(MessageRecord::decode(&encoded).unwrap(), message);
            let blob = BlobRecord { tags, ..plain() };
            prop_assert_eq!(BlobRecord::decode(&blob.encode().unwrap()).unwrap(), blob);
        }

        #[test]
        fn damaged_bytes_do_not_panic(
            message in any_message(),
            at in any::<prop::sample::Index>(),
            byte: u8,
            cut in any::<prop::sample::Index>(),
        ) {
            let mut damaged = [message.encode().unwrap(), plain().encode().unwrap()];
            for bytes in &mut damaged {
                let mut copy = bytes.to_vec();
                let at = at.index(copy.len());
                copy[at] = byte;
                copy.truncate(1 + cut.index(copy.len()));
                let _ = (MessageRecord::decode(&copy), BlobRecord::decode(&copy));
                let _ = (EntityRecord::decode(&copy), GarbageRecord::decode(&copy));
                let _ = (ContainerRecord::decode(&copy), PageNode::decode(&copy));
            }
        }
    }
}
