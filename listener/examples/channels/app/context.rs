//! The entities that a client works on, as it read them: their ETags, and its changes that are not
//! saved yet. A [`MergeOption`] says what a further query of the same entity does to them.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::tables::{Row, TableError, TableResult, Tables};

/// What a query does to an entity that the context already has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum MergeOption {
    /// Nothing: the first ETag stays. Once another process has changed the entity, each save gets
    /// 412, however often the client queries again.
    AppendOnly,
    /// Replaces the ETag and the properties that the client has not changed.
    #[default]
    PreserveChanges,
    /// Replaces the ETag and all properties; the client's changes are lost.
    OverwriteChanges,
}

/// An entity of a context.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Entity {
    /// The properties as the service returned them.
    pub(crate) read: Row,
    /// The properties that the client has set since.
    pub(crate) changes: Row,
    /// The ETag under which the changes are saved.
    pub(crate) tag: String,
}

impl Entity {
    /// Sets a property, which the next save writes.
    pub(crate) fn set(&mut self, name: &str, value: Json) {
        self.changes.insert(name.to_owned(), value);
    }

    /// Merges the answer to a further query.
    pub(crate) fn queried(&mut self, option: MergeOption, read: Row, tag: String) {
        match option {
            MergeOption::AppendOnly => {}
            MergeOption::PreserveChanges => (self.read, self.tag) = (read, tag),
            MergeOption::OverwriteChanges => {
                let changes = Row::new();
                *self = Entity { read, changes, tag };
            }
        }
    }
}

/// The entities of one table that a client works on, by their keys.
pub(crate) struct Context {
    tables: Tables,
    table: &'static str,
    option: MergeOption,
    entities: BTreeMap<(String, String), Entity>,
}

impl Context {
    pub(crate) fn new(tables: &Tables, table: &'static str, option: MergeOption) -> Self {
        Context {
            tables: tables.clone(),
            table,
            option,
            entities: BTreeMap::new(),
        }
    }

    /// Queries an entity and merges the answer; `None` if it does not exist.
    pub(crate) async fn query(
        &mut self,
        (partition, row): (&str, &str),
    ) -> TableResult<Option<&mut Entity>> {
        let keys = (partition.to_owned(), row.to_owned());
        let Some((read, tag)) = self.tables.get(self.table, (partition, row)).await? else {
            self.entities.remove(&keys);
            return Ok(None);
        };
        if let Some(known) = self.entities.get_mut(&keys) {
            known.queried(self.option, read, tag);
        } else {
            let changes = Row::new();
            let entity = Entity { read, changes, tag };
            self.entities.insert(keys.clone(), entity);
        }
        Ok(self.entities.get_mut(&keys))
    }

    /// Merge Entity with the client's changes, under the ETag of the context. Returns the new ETag.
    ///
    /// # Errors
    /// `Missing` if the context does not have the entity or the service does not; `Changed` if its
    /// ETag is another one: query again, change again, save again.
    pub(crate) async fn save(&mut self, (partition, row): (&str, &str)) -> TableResult<String> {
        let keys = (partition.to_owned(), row.to_owned());
        let Some(entity) = self.entities.get_mut(&keys) else {
            return Err(TableError::Missing);
        };
        let mut changed = entity.changes.clone();
        changed.insert("PartitionKey".to_owned(), keys.0.into());
        changed.insert("RowKey".to_owned(), keys.1.into());
        let tag = self.tables.merge(self.table, &changed, &entity.tag).await?;
        entity.read.append(&mut entity.changes);
        entity.tag.clone_from(&tag);
        Ok(tag)
    }
}
