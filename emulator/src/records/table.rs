//! Records of tables and entities.

use bytes::{BufMut as _, Bytes, BytesMut};
use serde::{Deserialize, Serialize};
use smalt_protocol::Timestamp;
use smalt_protocol::table::entity::{Entity, Properties};
use smalt_protocol::xml::SignedIdentifier;

use super::Record;
use crate::keys::{self, Generation};
use crate::store::{INLINE_BYTES_MAX, StoreError, StoreResult, Transaction, View};

/// A table, or a deleted one whose name is not free yet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TableRecord {
    /// Name in the spelling of its creator.
    pub name: String,
    /// Key prefix of the entities.
    pub generation: Generation,
    /// Stored access policies.
    #[serde(default)]
    pub policies: Vec<SignedIdentifier>,
    /// Time of the deletion, while the name is not free yet.
    #[serde(default)]
    pub deleted_at: Option<Timestamp>,
}

/// An entity without its partition and row key, which are part of the store's key.
///
/// The service allows 1 MiB per entity, the metadata engine 17 KiB per value, so a larger record is
/// split into parts. The value under the entity's own key starts with the number of parts that
/// follow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntityRecord {
    /// Time of the last write, from which the `ETag` is made.
    pub timestamp: Timestamp,
    /// Properties, in order.
    pub properties: Properties,
}

const PARTS_BYTES: usize = 2;

impl EntityRecord {
    /// Reads the entity with this key.
    ///
    /// # Errors
    /// Fails if the store cannot be read or the value is damaged.
    pub fn of_key(view: &dyn View, key: &[u8]) -> StoreResult<Option<Self>> {
        view.get(key)?
            .map(|value| Self::of_value(view, key, &value))
            .transpose()
    }

    /// Reads the entity from the value of its key and the parts that follow.
    ///
    /// # Errors
    /// Fails if the store cannot be read or the value is damaged.
    pub fn of_value(view: &dyn View, key: &[u8], value: &Bytes) -> StoreResult<Self> {
        let (parts, first) = split(value)?;
        if parts == 0 {
            return Self::decode(first);
        }
        let mut whole = first.to_vec();
        for number in 1..=parts {
            let part = view.get(&keys::entity_part(key, number))?;
            let lost = || StoreError::Corrupt(format!("part {number} of an entity is missing"));
            whole.extend_from_slice(&part.ok_or_else(lost)?);
        }
        Self::decode(&whole)
    }

    /// Returns how many further parts the value of an entity's key counts.
    ///
    /// # Errors
    /// Fails if the value is damaged.
    pub fn parts(value: &[u8]) -> StoreResult<u16> {
        split(value).map(|(parts, _)| parts)
    }

    /// Stores the entity, replacing the previous one and its parts.
    ///
    /// # Errors
    /// Fails if the store cannot be read or the previous value is damaged.
    pub fn put(&self, tx: &mut Transaction<'_>, key: Vec<u8>) -> StoreResult<()> {
        let encoded = self.encode()?;
        let mut parts = encoded.chunks(INLINE_BYTES_MAX);
        let first = parts.next().unwrap_or_default();
        let too_large = |_| StoreError::Corrupt("an entity has too many parts".to_owned());
        let count = u16::try_from(parts.len()).map_err(too_large)?;
        let earlier = match tx.get(&key)? {
            Some(value) => Self::parts(&value)?,
            None => 0,
        };
        for (part, number) in parts.zip(1_u16..) {
            tx.put(keys::entity_part(&key, number), encoded.slice_ref(part));
        }
        for number in count.saturating_add(1)..=earlier {
            tx.delete(keys::entity_part(&key, number));
        }
        let mut value = BytesMut::with_capacity(PARTS_BYTES + first.len());
        value.put_u16(count);
        value.put_slice(first);
        tx.put(key, value.freeze());
        Ok(())
    }

    /// Deletes the entity with this key and its parts.
    ///
    /// # Errors
    /// Fails if the store cannot be read or the value is damaged.
    pub fn remove(tx: &mut Transaction<'_>, key: Vec<u8>) -> StoreResult<()> {
        if let Some(value) = tx.get(&key)? {
            for number in 1..=Self::parts(&value)? {
                tx.delete(keys::entity_part(&key, number));
            }
            tx.delete(key);
        }
        Ok(())
    }

    /// Adds the partition and row key.
    pub fn named(self, partition_key: String, row_key: String) -> Entity {
        Entity {
            partition_key,
            row_key,
            timestamp: self.timestamp,
            properties: self.properties,
        }
    }
}

/// Returns the number of further parts, and the first part.
fn split(value: &[u8]) -> StoreResult<(u16, &[u8])> {
    match value.split_first_chunk::<PARTS_BYTES>() {
        Some((parts, first)) => Ok((u16::from_be_bytes(*parts), first)),
        None => Err(StoreError::Corrupt("an entity is truncated".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use smalt_protocol::table::value::Value;

    use super::*;
    use crate::clock::Clock;
    use crate::store::{Store, StoreConfig};

    fn entity(text_bytes: usize) -> EntityRecord {
        let value = Value::String("x".repeat(text_bytes));
        EntityRecord {
            timestamp: Timestamp::from_unix_s(5),
            properties: [("text".to_owned(), value)].into_iter().collect(),
        }
    }

    fn keys_of(store: &Store) -> usize {
        let mut count = 0;
        store
            .read(|view| {
                view.scan(&[0x26], &[0x28], &mut |_, value| {
                    assert!(value.len() <= crate::store::VALUE_BYTES_MAX);
                    count += 1;
                    std::ops::ControlFlow::Continue(())
                })
            })
            .unwrap();
        count
    }

    /// A large entity takes several values, and none remain when it shrinks or is deleted.
    #[test]
    fn entity_of_any_size_is_stored_and_deleted_completely() {
        let store = Store::open(StoreConfig::memory(Clock::manual(Timestamp::UNIX_EPOCH)));
        let store = store.unwrap();
        let key = keys::entity(7, "p", "r");
        for (bytes, values) in [(10, 1), (40_000, 3), (1_000_000, 62), (20_000, 2), (0, 1)] {
            let (record, at) = (entity(bytes), key.clone());
            let written = record.clone();
            store
                .commit_blocking(move |tx| written.put(tx, at))
                .unwrap();
            assert_eq!(keys_of(&store), values, "{bytes}");
            let read = store.read(|view| EntityRecord::of_key(view, &key));
            assert_eq!(read.unwrap(), Some(record));
        }
        let grown = entity(50_000);
        let at = key.clone();
        store.commit_blocking(move |tx| grown.put(tx, at)).unwrap();
        let at = key.clone();
        store
            .commit_blocking(move |tx| EntityRecord::remove(tx, at))
            .unwrap();
        assert_eq!(keys_of(&store), 0);
        assert_eq!(
            store.read(|view| EntityRecord::of_key(view, &key)).unwrap(),
            None
        );
    }
}
