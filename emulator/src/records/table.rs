//! Tables and entities.

use bytes::{BufMut as _, Bytes, BytesMut};
use serde::{Deserialize, Serialize};
use smalt_protocol::Timestamp;
use smalt_protocol::table::entity::{Entity, Properties};
use smalt_protocol::xml::SignedIdentifier;

use super::Record;
use crate::keys::{self, Generation};
use crate::store::{INLINE_BYTES_MAX, StoreError, StoreResult, Transaction, View};

/// A table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TableRecord {
    /// Its name as its creator wrote it.
    pub name: String,
    /// What its entities are keyed by.
    pub generation: Generation,
    /// Stored access policies.
    #[serde(default)]
    pub policies: Vec<SignedIdentifier>,
    /// Set when it was deleted and its name is not free yet.
    #[serde(default)]
    pub deleted_at: Option<Timestamp>,
}

/// An entity without its keys, which are those of the store.
///
/// The service allows 1 MiB, the metadata engine 17 KiB a value: a larger record is cut into parts.
/// The value of the entity's own key starts with the number of the parts that follow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntityRecord {
    /// When it was written last: its tag.
    pub timestamp: Timestamp,
    /// Its properties in order.
    pub properties: Properties,
}

/// Bytes of the number of parts.
const PARTS_BYTES: usize = 2;

impl EntityRecord {
    /// The entity of a key.
    ///
    /// # Errors
    /// When the store cannot be read or holds something else.
    pub fn of_key(view: &dyn View, key: &[u8]) -> StoreResult<Option<Self>> {
        view.get(key)?
            .map(|value| Self::of_value(view, key, &value))
            .transpose()
    }

    /// The entity whose key has this value.
    ///
    /// # Errors
    /// When the store cannot be read or holds something else.
    pub fn of_value(view: &dyn View, key: &[u8], value: &Bytes) -> StoreResult<Self> {
        let (parts, first) = split(value)?;
        if parts == 0 {
            return Self::decode(first);
        }
        let mut whole = first.to_vec();
        for number in 1..=parts {
            let part = view.get(&keys::entity_part(key, number))?;
            let lost = || StoreError::Corrupt(format!("an entity lacks part {number}"));
            whole.extend_from_slice(&part.ok_or_else(lost)?);
        }
        Self::decode(&whole)
    }

    /// Stores it in place of whatever the key had.
    ///
    /// # Errors
    /// When the store cannot be read or holds something else.
    pub fn put(&self, tx: &mut Transaction<'_>, key: Vec<u8>) -> StoreResult<()> {
        let encoded = self.encode()?;
        let mut parts = encoded.chunks(INLINE_BYTES_MAX);
        let first = parts.next().unwrap_or_default();
        let too_large = |_| StoreError::Corrupt("an entity has too many parts".to_owned());
        let count = u16::try_from(parts.len()).map_err(too_large)?;
        let earlier = match tx.get(&key)? {
            Some(value) => split(&value)?.0,
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

    /// Removes the entity of a key.
    ///
    /// # Errors
    /// When the store cannot be read or holds something else.
    pub fn remove(tx: &mut Transaction<'_>, key: Vec<u8>) -> StoreResult<()> {
        if let Some(value) = tx.get(&key)? {
            for number in 1..=split(&value)?.0 {
                tx.delete(keys::entity_part(&key, number));
            }
            tx.delete(key);
        }
        Ok(())
    }

    /// The whole entity.
    pub fn named(self, partition_key: String, row_key: String) -> Entity {
        Entity {
            partition_key,
            row_key,
            timestamp: self.timestamp,
            properties: self.properties,
        }
    }
}

/// The number of further parts, and the first one.
fn split(value: &[u8]) -> StoreResult<(u16, &[u8])> {
    match value.split_first_chunk::<PARTS_BYTES>() {
        Some((parts, first)) => Ok((u16::from_be_bytes(*parts), first)),
        None => Err(StoreError::Corrupt("an entity is cut short".to_owned())),
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

    /// A large entity takes several values, and leaves none of them behind when it shrinks or goes.
    #[test]
    fn an_entity_of_any_size_is_kept_whole_and_goes_whole() {
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
