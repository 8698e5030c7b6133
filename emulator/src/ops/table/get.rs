//! Query Entities for a single entity, by its keys.
//!
//! Source: "Query Entities".
//!
//! ```http
//! GET /devstoreaccount1/Customers(PartitionKey='Berlin',RowKey='17')?$select=Name
//!
//! 200 OK
//! ```

use smalt_protocol::table::format::Kind;
use smalt_protocol::table::key::check_key;
use smalt_protocol::table::query::Select;
use smalt_protocol::table::{Entity, Format, Resource as Address, payload};
use smalt_protocol::{ErrorCode, StorageError, Timestamp};

use crate::call::Call;
use crate::keys;
use crate::operation::Read;
use crate::ops::table::answer;
use crate::ops::table::name::TableRef;
use crate::ops::table::parameters;
use crate::ops::table::range::KeyRange;
use crate::records::EntityRecord;
use crate::reply::Reply;
use crate::store::{Store, View};
use crate::target::Resource;

/// The Query Entities operation for a single entity.
pub struct GetEntity {
    format: Format,
    table: TableRef,
    partition_key: String,
    row_key: String,
    select: Option<Select>,
    range: KeyRange,
}

impl Read for GetEntity {
    type Output = (Entity, Timestamp);

    fn parse(call: &Call) -> Result<Self, StorageError> {
        let Resource::Table(Ok(Address::Entity {
            partition_key,
            row_key,
            ..
        })) = &call.target.resource
        else {
            return Err(ErrorCode::InvalidInput.into());
        };
        check_key(partition_key)?;
        check_key(row_key)?;
        Ok(GetEntity {
            format: answer::format(call)?,
            table: TableRef::of(call)?,
            partition_key: partition_key.clone(),
            row_key: row_key.clone(),
            select: parameters::select(call)?,
            range: KeyRange::of_signature(call),
        })
    }

    fn read(&self, view: &dyn View, now: Timestamp) -> Result<Self::Output, StorageError> {
        let (partition_key, row_key) = (&self.partition_key, &self.row_key);
        let table = self.table.find(view)?;
        if !self.range.contains(partition_key, row_key) {
            // Entities outside the signature's range do not exist for the reader.
            return Err(ErrorCode::ResourceNotFound.into());
        }
        let key = keys::entity(table.generation, partition_key, row_key);
        let found = EntityRecord::of_key(view, &key)?.ok_or(ErrorCode::ResourceNotFound)?;
        let entity = found.named(partition_key.clone(), row_key.clone());
        Ok((entity, now))
    }

    fn render(
        self,
        (entity, now): Self::Output,
        call: &Call,
        _: &Store,
    ) -> Result<Reply, StorageError> {
        let endpoint = call.service_endpoint();
        let scope = answer::scope(call, &endpoint, now);
        let (table, select) = (self.table.name.as_str(), self.select.as_ref());
        let bytes = payload::write_entity(self.format, &scope, table, select, &entity);
        Ok(answer::document(200, self.format, Kind::Entry, bytes)
            .header("etag", entity.etag().to_string()))
    }
}
