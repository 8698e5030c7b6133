//! A change of one entity: what the operations on entities and the parts of a transaction share.

use smalt_protocol::table::entity::{Entity, EntityBody};
use smalt_protocol::table::key::check_key;
use smalt_protocol::table::tag::{EntityTag, IfMatch};
use smalt_protocol::{ErrorCode, StorageError, Timestamp};

use crate::keys::{self, Generation};
use crate::ops::table::name::TableRef;
use crate::ops::table::range::KeyRange;
use crate::records::EntityRecord;
use crate::store::{Stamp, Transaction, View};

/// What is done to an entity. The condition of an update is absent where the entity may be new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Insert Entity.
    Insert,
    /// Update Entity, Insert Or Replace Entity.
    Replace(Option<IfMatch>),
    /// Merge Entity, Insert Or Merge Entity.
    Merge(Option<IfMatch>),
    /// Delete Entity.
    Delete(IfMatch),
}

impl Action {
    fn condition(self) -> Option<IfMatch> {
        match self {
            Action::Insert => None,
            Action::Replace(condition) | Action::Merge(condition) => condition,
            Action::Delete(condition) => Some(condition),
        }
    }
}

/// A change, its syntax checked.
#[derive(Clone, Debug)]
pub struct Change {
    /// Table.
    pub table: TableRef,
    /// What is done.
    pub action: Action,
    /// Partition key.
    pub partition_key: String,
    /// Row key.
    pub row_key: String,
    /// What the body says.
    pub body: EntityBody,
    /// What the caller may touch.
    pub range: KeyRange,
}

/// What a change found.
#[derive(Debug)]
pub struct Checked {
    generation: Generation,
    /// What is stored afterwards; absent where the entity goes.
    next: Option<EntityRecord>,
}

/// An entity that was written.
#[derive(Debug)]
pub struct WrittenEntity {
    /// Table.
    pub table: TableRef,
    /// The entity; absent where it is gone.
    pub entity: Option<Entity>,
    /// Partition key.
    pub partition_key: String,
    /// Row key.
    pub row_key: String,
}

impl Change {
    /// The keys that a write names: those of its address, whatever its body says; else those of its
    /// body. Recorded of an address whose keys have half the quotes of the body's:
    /// `python/test_table_entity.test_operations_on_entity_with_partition_key_having_single_quote`.
    ///
    /// # Errors
    /// 400 `PropertiesNeedValue` where one is missing, and those of [`check_key`].
    pub fn keys(
        address: Option<(String, String)>,
        body: &EntityBody,
    ) -> Result<(String, String), StorageError> {
        let named = || body.partition_key.clone().zip(body.row_key.clone());
        let (partition_key, row_key) = address
            .or_else(named)
            .ok_or(ErrorCode::PropertiesNeedValue)?;
        check_key(&partition_key)?;
        check_key(&row_key)?;
        Ok((partition_key, row_key))
    }

    /// Everything that can refuse: the range of the signature, the table, the entity, its tag, its
    /// size.
    ///
    /// # Errors
    /// 403 `AuthorizationFailure`, 404 `TableNotFound` and `ResourceNotFound`, 409
    /// `EntityAlreadyExists`, 412, and 400 for an entity that has become too large.
    pub fn check(&self, view: &dyn View, stamp: &Stamp) -> Result<Checked, StorageError> {
        if !self.range.contains(&self.partition_key, &self.row_key) {
            return Err(ErrorCode::AuthorizationFailure.into());
        }
        let table = self.table.find(view)?;
        let key = keys::entity(table.generation, &self.partition_key, &self.row_key);
        let earlier = EntityRecord::of_key(view, &key)?;
        if self.action == Action::Insert && earlier.is_some() {
            return Err(ErrorCode::EntityAlreadyExists.into());
        }
        if let Some(condition) = self.action.condition() {
            let found = earlier.as_ref().ok_or(ErrorCode::ResourceNotFound)?;
            condition.check(EntityTag::of(found.timestamp))?;
        }
        Ok(Checked {
            generation: table.generation,
            next: self.next(earlier, stamp.tick)?,
        })
    }

    /// What is stored afterwards.
    fn next(
        &self,
        earlier: Option<EntityRecord>,
        timestamp: Timestamp,
    ) -> Result<Option<EntityRecord>, StorageError> {
        // Recorded: what an insert wrote keeps its order, what an update wrote is sorted by name.
        let properties = match self.action {
            Action::Delete(_) => return Ok(None),
            Action::Insert => self.body.properties.clone(),
            Action::Replace(_) | Action::Merge(_) => {
                let merges = matches!(self.action, Action::Merge(_));
                let kept = earlier.filter(|_| merges);
                let mut merged = kept.map(|found| found.properties).unwrap_or_default();
                merged.merge(self.body.properties.clone());
                merged
            }
        };
        let record = EntityRecord {
            timestamp,
            properties,
        };
        let entity = record.named(self.partition_key.clone(), self.row_key.clone());
        entity.check_limits()?;
        Ok(Some(EntityRecord {
            timestamp,
            properties: entity.properties,
        }))
    }

    /// Does it.
    ///
    /// # Errors
    /// The store's own.
    pub fn apply(
        self,
        checked: Checked,
        tx: &mut Transaction<'_>,
    ) -> Result<WrittenEntity, StorageError> {
        let key = keys::entity(checked.generation, &self.partition_key, &self.row_key);
        match &checked.next {
            Some(record) => record.put(tx, key)?,
            None => EntityRecord::remove(tx, key)?,
        }
        let (partition_key, row_key) = (self.partition_key, self.row_key);
        let named = |record: EntityRecord| record.named(partition_key.clone(), row_key.clone());
        Ok(WrittenEntity {
            entity: checked.next.map(named),
            table: self.table,
            partition_key,
            row_key,
        })
    }
}
