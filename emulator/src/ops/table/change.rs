//! A change of one entity: shared code of the entity operations and of transactions.

use smalt_protocol::table::entity::{Entity, EntityBody};
use smalt_protocol::table::key::check_key;
use smalt_protocol::table::tag::{EntityTag, IfMatch};
use smalt_protocol::{ErrorCode, StorageError, Timestamp};

use crate::keys::{self, Generation};
use crate::ops::table::name::TableRef;
use crate::ops::table::range::KeyRange;
use crate::records::EntityRecord;
use crate::store::{Stamp, Transaction, View};

/// The kind of change. The condition of an update is `None` if it may insert the entity.
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

/// A change whose syntax has been checked.
#[derive(Clone, Debug)]
pub struct Change {
    /// The table of the entity.
    pub table: TableRef,
    /// The kind of change.
    pub action: Action,
    /// The entity's partition key.
    pub partition_key: String,
    /// The entity's row key.
    pub row_key: String,
    /// The parsed body.
    pub body: EntityBody,
    /// The entities that the caller may access.
    pub range: KeyRange,
}

/// The result of checking a change.
#[derive(Debug)]
pub struct Checked {
    generation: Generation,
    /// The new record; `None` for a deletion.
    next: Option<EntityRecord>,
}

/// The result of a change.
#[derive(Debug)]
pub struct WrittenEntity {
    /// The table of the entity.
    pub table: TableRef,
    /// The new entity; `None` after a deletion.
    pub entity: Option<Entity>,
    /// The entity's partition key.
    pub partition_key: String,
    /// The entity's row key.
    pub row_key: String,
}

impl Change {
    /// Returns the keys of a write: those of its address, even if its body has others; otherwise
    /// those of its body. Recorded of an address whose keys have half the quotes of the body's:
    /// `python/test_table_entity.test_operations_on_entity_with_partition_key_having_single_quote`.
    ///
    /// # Errors
    /// 400 `PropertiesNeedValue` if a key is missing, and those of [`check_key`].
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

    /// Checks everything that can fail: the range of the signature, the table, the entity, its
    /// ETag, its size.
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

    fn next(
        &self,
        earlier: Option<EntityRecord>,
        timestamp: Timestamp,
    ) -> Result<Option<EntityRecord>, StorageError> {
        // Recorded: an insert keeps the order of properties, an update sorts them by name.
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

    /// Applies the change.
    ///
    /// # Errors
    /// When the store fails.
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
